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
	"slices"
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
	c := newComposition(settings, deps)
	controllers := slices.Concat(c.decide(), c.machines(), c.pools(), c.tell(), c.repair(), c.boot())
	for i := range controllers {
		controllers[i].Reconciler = newCalm(controllers[i].Reconciler)
	}
	feed := &Feed{
		store: deps.Store, window: c.window, podEvents: c.podEvents, brake: c.brake, idle: settings.BatchIdle,
		wake: deps.Wake, claimOf: claimByNode(deps.Client), now: deps.Now, log: deps.Log.WithName("world"),
	}
	return Parts{Feed: feed, Controllers: controllers}
}

// composition is what several controllers share.
type composition struct {
	Settings
	Deps
	metrics    *metrics.Set
	window     *provisioning.Window
	brake      *provisioning.Brake
	podEvents  *claim.PodEvents
	catalogs   wakingCatalogs
	applier    *apply.Applier
	disrupting *disruption.Controller
}

func newComposition(settings Settings, deps Deps) *composition {
	c := &composition{
		Settings: settings, Deps: deps, metrics: metrics.New(deps.Registerer),
		window: provisioning.NewWindow(settings.BatchIdle, settings.BatchMax),
		brake:  provisioning.NewBrake(), podEvents: claim.NewPodEvents(),
		catalogs: wakingCatalogs{store: deps.Store, wake: deps.Wake},
	}
	c.applier = apply.New(apply.Config{
		Client: deps.Client, Live: deps.Live, Store: deps.Store, Fleet: deps.Fleet,
		Each: deps.Each, Now: deps.Now, Log: deps.Log.WithName("applier"),
		Created: func(pool string) { c.metrics.Claims.Created.WithLabelValues("provisioned", pool, "false").Inc() },
	})
	c.disrupting = disruption.New(disruption.Config{
		Client: deps.Client, Live: deps.Live, Picture: deps.Store, Applier: c.applier, Fleet: deps.Fleet,
		Namespace: settings.SystemNamespace, SpotToSpot: settings.SpotToSpot,
		MinSaving: settings.MinSaving, MinSavingPercent: settings.MinSavingPercent,
		Events: deps.Events, Metrics: c.metrics, Ready: deps.Ready, Now: deps.Now, Log: deps.Log.WithName(Disruption),
	})
	return c
}

// clouds are the providers as a controller calls them: each call is measured.
func (c *composition) clouds(controller string) *fleet.Fleet {
	return c.Fleet.Through(func(cloud provider.Provider) provider.Provider {
		return measured{Provider: cloud, controller: controller, metrics: c.metrics.Cloud, now: c.Now}
	})
}

// decide are the controllers that plan: what is launched for pods, and what goes.
func (c *composition) decide() []Controller {
	return []Controller{
		{Name: Provisioning, Workers: 1, Start: true, Reconciler: provisioning.New(provisioning.Config{
			Picture: c.Store, Applier: c.applier, Window: c.window, Brake: c.brake, Events: c.Events, Metrics: c.metrics.Plans,
			InVain: c.metrics.Pools.InVain, Told: func(pool string) { c.Wake(Pools, requests(pool)[0], 0) },
			Ready: c.Ready, Now: c.Now, Log: c.Log.WithName(Provisioning),
		})},
		{Name: Disruption, Workers: 1, Start: true, Reconciler: c.disrupting},
	}
}

// machines are the controllers of a machine's life: from claim to node, and back.
func (c *composition) machines() []Controller {
	claims := claim.Config{
		Client: c.Client, Live: c.Live, Fleet: c.clouds(Claims), Catalogs: c.catalogs, PodEvents: c.podEvents,
		Timeouts: c.Timeouts, Holder: c.Identity, Events: c.Events, Metrics: c.metrics,
		Now: c.Now, Log: c.Log.WithName(Claims),
	}
	nodes := node.Config{
		Client: c.Client, Live: c.Live, Fleet: c.clouds(Nodes), Events: c.Events, Metrics: c.metrics,
		Now: c.Now, Log: c.Log.WithName(Nodes),
	}
	return []Controller{
		{Name: Claims, Workers: 50, Reconciler: claim.New(claims), Watches: claimWatches(c.Client)},
		{Name: Garbage, Workers: 1, Start: true, Reconciler: claim.NewCollector(claims)},
		{Name: Nodes, Workers: 20, Reconciler: node.New(nodes), Watches: nodeWatches(c.Client)},
	}
}

// pools are the controllers of what users write: NodePools and NodeOverlays.
func (c *composition) pools() []Controller {
	pools := pool.Config{
		Client: c.Client, Live: c.Live, Fleet: c.clouds(Pools), Catalogs: c.catalogs, Picture: c.Store,
		Paused: c.disrupting.LastPaused, StaticOff: c.StaticOff, InVain: c.brake.Message,
		Events: c.Events, Metrics: c.metrics.Pools, Now: c.Now, Log: c.Log.WithName(Pools),
	}
	overlays := overlay.Config{Client: c.Client, Verdicts: c.Store, Now: c.Now}
	return []Controller{
		{Name: Pools, Workers: 5, Reconciler: pool.New(pools), Watches: poolWatches(c.Client)},
		{Name: Overlays, Workers: 1, Reconciler: overlay.New(overlays), Watches: overlayWatches(c.Client)},
	}
}

// tell are the controllers that pass on: what clouds announce, and what users should know.
func (c *composition) tell() []Controller {
	return []Controller{
		{Name: Interruption, Workers: 1, Start: true, Reconciler: interruption.New(interruption.Config{
			Client: c.Client, Fleet: c.clouds(Interruption), Catalogs: c.catalogs, Events: c.Events,
			Claims: c.metrics.Claims, Metrics: c.metrics.Interruptions, Now: c.Now, Log: c.Log.WithName(Interruption),
		}), Watches: interruptionWatches()},
		{Name: PodNotices, Workers: 1, Watches: podNoticeWatches(),
			Reconciler: &notice.Pods{Client: c.Client, Events: c.Events}},
		{Name: NodeNotices, Workers: 1, Watches: nodeNoticeWatches(),
			Reconciler: &notice.Nodes{Client: c.Client, Fleet: c.Fleet, Events: c.Events}},
	}
}

// repair is the controller of unhealthy nodes, if that is on.
func (c *composition) repair() []Controller {
	if !c.NodeRepair {
		return nil
	}
	return []Controller{{Name: Repair, Workers: 1, Start: true, Reconciler: repair.New(repair.Config{
		Client: c.Client, Live: c.Live, Fleet: c.Fleet, Paused: c.disrupting.Paused, Events: c.Events,
		Metrics: c.metrics.Claims, Ready: c.Ready, Now: c.Now, Log: c.Log.WithName(Repair),
	}), Watches: repairWatches()}}
}

// boot are the controllers of providers whose machines Joiner boots itself.
func (c *composition) boot() []Controller {
	var controllers []Controller
	for cloud := range c.Fleet.All() {
		if machines, boots := cloud.(Booter); boots {
			controllers = append(controllers, Controller{
				Name: Boot, Workers: 1, Start: true, Reconciler: booter{machines, c.Now}, Watches: bootWatches(),
			})
		}
	}
	return controllers
}
