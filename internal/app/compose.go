// Package app is the composition root: it puts the store, the applier, the provider and the controllers together.
//
// [Compose] does so over ports and knows no API server: what it returns are step functions and the events that wake
// them, so that the simulator runs the very controllers that are shipped. [Run] is the other half, for a real cluster:
// client, caches, leader election, servers, signals. Only here do goroutines begin and end.
//
//	compose.go   ports → controllers
//	feed.go      what a watch event means for the store, and whom it wakes
//	watches.go   which objects wake which controller
//	run.go       a real cluster: the manager and its caches
//	conversion.go  v1beta1 beside v1: the webhook, its certificates, and the versions in the CRDs (definitions.go)
//	check.go     is the cluster there, are the CRDs there, are the ports free: one clear line each
//	cluster.go   the cluster as the kwok provider sees it
package app

import (
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/disruption"
	"github.com/joiner-autoscaler/joiner/internal/controller/event"
	"github.com/joiner-autoscaler/joiner/internal/controller/interruption"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/node"
	"github.com/joiner-autoscaler/joiner/internal/controller/notice"
	"github.com/joiner-autoscaler/joiner/internal/controller/overlay"
	"github.com/joiner-autoscaler/joiner/internal/controller/pool"
	"github.com/joiner-autoscaler/joiner/internal/controller/provisioning"
	"github.com/joiner-autoscaler/joiner/internal/controller/repair"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// Names of the controllers.
const (
	Provisioning = "provisioning"
	Disruption   = "disruption"
	Claims       = "nodeclaim"
	Garbage      = "nodeclaim.garbage"
	Nodes        = "node.termination"
	Pools        = "nodepool"
	Overlays     = "nodeoverlay"
	PodNotices   = "notice.pod"
	NodeNotices  = "notice.node"
	Interruption = "interruption"
	Repair       = "node.repair"
	Boot         = "kwok.boot"
)

// Settings are what of the configuration the controllers need.
type Settings struct {
	BatchIdle, BatchMax time.Duration
	Timeouts            claim.Timeouts
	SystemNamespace     string // where the pause switch is
	SpotToSpot          bool
	MinSaving           resources.Money // per hour
	NodeRepair          bool            // replaces unhealthy nodes (D-13)
	MinSavingPercent    int             // of what is replaced
	StaticOff           bool            // nobody acts on spec.replicas (D-12)
}

// Deps are the ports to everything outside.
type Deps struct {
	Client client.Client // reads from caches with the index fields of indexes.go, writes to the API server
	Live   client.Reader // reads from the API server
	Store  *world.Store
	// Fleet is the clouds, as Store has it. One that also is a [Booter] gets a controller that boots its machines.
	Fleet  *fleet.Fleet
	Events event.Recorder
	// Registerer takes the metrics; each Compose needs its own.
	Registerer prometheus.Registerer
	// Ready reports whether the store has seen everything that exists.
	Ready func() bool
	// Identity names this process among those that may work at the same time.
	Identity string
	// Wake calls a controller with a request, after a delay; equal requests that wait may be merged into the earliest.
	Wake func(controller string, request reconcile.Request, after time.Duration)
	// Each calls do with 0 to n-1, possibly at the same time, and returns when all calls have. Nil: one after the other.
	Each func(n int, do func(i int))
	Now  func() time.Time
	Log  logr.Logger
}

// Controller is a step function with its name and what wakes it.
type Controller struct {
	Name       string
	Reconciler reconcile.Reconciler
	Workers    int
	// Start is called once at the beginning.
	Start bool
	// Watches wake it, beside what the feed does.
	Watches []Watch
}

// Parts are the result of Compose.
type Parts struct {
	Feed        *Feed
	Controllers []Controller
}

// singleton is the one request of a controller that has only one.
func singleton() reconcile.Request { return reconcile.Request{} }

// Compose wires the controllers. It calls none of the ports.
func Compose(settings Settings, deps Deps) Parts {
	set := metrics.New(deps.Registerer)
	window := provisioning.NewWindow(settings.BatchIdle, settings.BatchMax)
	podEvents, brake := claim.NewPodEvents(), provisioning.NewBrake()
	clouds := func(controller string) *fleet.Fleet {
		return deps.Fleet.Through(func(cloud provider.Provider) provider.Provider {
			return measured{Provider: cloud, controller: controller, metrics: set.Cloud, now: deps.Now}
		})
	}
	catalogs := wakingCatalogs{store: deps.Store, wake: deps.Wake}
	applier := apply.New(apply.Config{
		Client: deps.Client, Live: deps.Live, Store: deps.Store, Fleet: deps.Fleet, Now: deps.Now, Log: deps.Log.WithName("applier"),
		Each:    deps.Each,
		Created: func(pool string) { set.Claims.Created.WithLabelValues("provisioned", pool, "false").Inc() },
	})
	claims := claim.Config{
		Client: deps.Client, Live: deps.Live, Fleet: clouds(Claims), Catalogs: catalogs, PodEvents: podEvents, Timeouts: settings.Timeouts,
		Holder: deps.Identity, Events: deps.Events, Metrics: set, Now: deps.Now, Log: deps.Log.WithName(Claims),
	}
	disrupting := disruption.New(disruption.Config{
		Client: deps.Client, Live: deps.Live, Picture: deps.Store, Applier: applier, Fleet: deps.Fleet, Events: deps.Events, Metrics: set,
		Namespace: settings.SystemNamespace, SpotToSpot: settings.SpotToSpot, MinSaving: settings.MinSaving, MinSavingPercent: settings.MinSavingPercent,
		Ready: deps.Ready, Now: deps.Now, Log: deps.Log.WithName(Disruption),
	})
	controllers := []Controller{
		{Name: Provisioning, Workers: 1, Start: true, Reconciler: provisioning.New(provisioning.Config{
			Picture: deps.Store, Applier: applier, Window: window, Brake: brake, Events: deps.Events, Metrics: set.Plans,
			InVain: set.Pools.InVain, Told: func(pool string) { deps.Wake(Pools, requests(pool)[0], 0) },
			Ready: deps.Ready, Now: deps.Now, Log: deps.Log.WithName(Provisioning),
		})},
		{Name: Disruption, Workers: 1, Start: true, Reconciler: disrupting},
		{Name: Claims, Workers: 50, Reconciler: claim.New(claims), Watches: claimWatches(deps.Client)},
		{Name: Garbage, Workers: 1, Start: true, Reconciler: claim.NewCollector(claims)},
		{Name: Nodes, Workers: 20, Reconciler: node.New(node.Config{
			Client: deps.Client, Live: deps.Live, Fleet: clouds(Nodes), Events: deps.Events, Metrics: set, Now: deps.Now, Log: deps.Log.WithName(Nodes),
		}), Watches: nodeWatches(deps.Client)},
		{Name: Pools, Workers: 5, Reconciler: pool.New(pool.Config{
			Client: deps.Client, Live: deps.Live, Fleet: clouds(Pools), Catalogs: catalogs, Picture: deps.Store, Paused: disrupting.LastPaused, StaticOff: settings.StaticOff,
			InVain: brake.Message,
			Events: deps.Events, Metrics: set.Pools, Now: deps.Now, Log: deps.Log.WithName(Pools),
		}), Watches: poolWatches(deps.Client)},
		{Name: Overlays, Workers: 1, Reconciler: overlay.New(overlay.Config{Client: deps.Client, Verdicts: deps.Store, Now: deps.Now}), Watches: overlayWatches(deps.Client)},
		{Name: Interruption, Workers: 1, Start: true, Reconciler: interruption.New(interruption.Config{
			Client: deps.Client, Fleet: clouds(Interruption), Catalogs: catalogs, Events: deps.Events, Claims: set.Claims, Metrics: set.Interruptions,
			Now: deps.Now, Log: deps.Log.WithName(Interruption),
		}), Watches: interruptionWatches()},
		{Name: PodNotices, Workers: 1, Reconciler: &notice.Pods{Client: deps.Client, Events: deps.Events}, Watches: podNoticeWatches()},
		{Name: NodeNotices, Workers: 1, Watches: nodeNoticeWatches(),
			Reconciler: &notice.Nodes{Client: deps.Client, Fleet: deps.Fleet, Events: deps.Events}},
	}
	if settings.NodeRepair {
		controllers = append(controllers, Controller{Name: Repair, Workers: 1, Start: true, Reconciler: repair.New(repair.Config{
			Client: deps.Client, Live: deps.Live, Fleet: deps.Fleet, Paused: disrupting.Paused, Events: deps.Events, Metrics: set.Claims,
			Ready: deps.Ready, Now: deps.Now, Log: deps.Log.WithName(Repair),
		}), Watches: repairWatches()})
	}
	for cloud := range deps.Fleet.All() {
		if machines, boots := cloud.(Booter); boots {
			controllers = append(controllers, Controller{Name: Boot, Workers: 1, Start: true, Reconciler: booter{machines, deps.Now}, Watches: bootWatches()})
		}
	}
	for i := range controllers {
		controllers[i].Reconciler = newCalm(controllers[i].Reconciler)
	}
	feed := &Feed{
		store: deps.Store, window: window, podEvents: podEvents, brake: brake, idle: settings.BatchIdle, wake: deps.Wake,
		claimOf: claimByNode(deps.Client), now: deps.Now, log: deps.Log.WithName("world"),
	}
	return Parts{Feed: feed, Controllers: controllers}
}
