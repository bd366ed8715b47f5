// Package joiner is the composition root of the controller: it puts the store, the applier, the provider and the
// controllers together.
//
// [Compose] does so over ports and knows no API server. It returns step functions and the events that wake them, so
// the simulator runs the same controllers that are shipped. [Run] is the other half, for a real cluster: client,
// caches, leader election, servers, signals. Only here and in package serve do goroutines begin and end.
//
//	compose.go   ports → controllers
//	feed.go      what a watch event means for the store, and whom it wakes
//	watches.go   which objects wake which controller
//	run.go       a real cluster: the manager and its caches
//	conversion.go  v1beta1 beside v1: the webhook, its certificates, and the versions in the CRDs (definitions.go)
//	standing.go  how the cluster stands, as metrics; requests.go counts calls to the API server
//	check.go     is the cluster there, are the CRDs there, are the ports free: one clear line each
//	plugins.go   all providers, and those whose kinds a cluster serves
package joiner

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/buffer"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/disruption"
	"github.com/joiner-autoscaler/joiner/internal/controller/interruption"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/node"
	"github.com/joiner-autoscaler/joiner/internal/controller/notice"
	"github.com/joiner-autoscaler/joiner/internal/controller/overlay"
	"github.com/joiner-autoscaler/joiner/internal/controller/pool"
	"github.com/joiner-autoscaler/joiner/internal/controller/provisioning"
	"github.com/joiner-autoscaler/joiner/internal/controller/repair"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/kube"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/kube/unseen"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// Names of the controllers. They are those of Karpenter's controllers with the same job (K-11), since dashboards
// select by them.
const (
	Provisioning = "provisioner"
	Disruption   = "disruption"
	Claims       = "nodeclaim.lifecycle"
	Garbage      = "nodeclaim.garbagecollection"
	Nodes        = "node.termination"
	Pools        = "nodepool"
	Overlays     = "nodeoverlay.controller"
	Buffers      = "capacitybuffer"
	PodNotices   = "notice.pod"
	NodeNotices  = "notice.node"
	Interruption = "interruption"
	Repair       = "node.repair"
)

// Settings is the part of the configuration that the controllers need.
type Settings struct {
	BatchIdle, BatchMax time.Duration
	Timeouts            claim.Timeouts
	SystemNamespace     string // where the pause switch is, and the table of the hard limit of the cluster
	MaxClaims           int64  // the hard limit of the whole cluster, 0 for none (K-53)
	SpotToSpot          bool
	MinSaving           resources.Money // per hour
	NodeRepair          bool            // replaces unhealthy nodes (D-13)
	RepairOnlyOwnVeto   bool            // karpenter.sh/do-not-disrupt does not keep nodes from repair (K-49)
	TakeoverGrace       time.Duration   // after the first start on a cluster that another program managed (K-27)
	MinSavingPercent    int             // of the price of what is replaced
	StaticOff           bool            // nobody acts on spec.replicas (D-12)
	BuffersServed       bool            // there are CapacityBuffers (K-35)
	BuffersOff          bool            // no room is kept for them
	// DeprecatedMetrics measures conditions by their old names too. Unobserved measures none. ConditionEvents sends
	// events when conditions change.
	DeprecatedMetrics, Unobserved, ConditionEvents bool
	// ObserveOnly leaves out the controllers that act (K-26).
	ObserveOnly bool
}

// Deps are the ports to everything outside.
type Deps struct {
	Client client.Client // reads from caches with the index fields of Indexes, writes to the API server
	Live   client.Reader // reads from the API server
	// Applied is the client that writes decisions; nil means Client.
	Applied client.Client
	Store   *world.Store
	// Plugged are the providers. Fleet holds the same ones; Store uses it too.
	Plugged []plugin.Parts
	Fleet   *fleet.Fleet
	Events  event.Recorder
	// Registerer takes the metrics. Each call of Compose needs its own.
	Registerer prometheus.Registerer
	// Ready reports whether the store has seen everything that exists.
	Ready func() bool
	// Identity distinguishes this process from others that may run at the same time.
	Identity string
	// Wake calls a controller with a request after a delay. Equal waiting requests may be merged into the earliest.
	Wake func(controller string, request reconcile.Request, after time.Duration)
	// Each calls do with 0 to n-1, possibly at the same time, and returns when all calls have. Nil calls them one
	// after the other.
	Each func(n int, do func(i int))
	// Planned gets the question (dump.Question), the inputs and the result of each plan; nil tells nobody.
	Planned func(question string, s *cluster.Snapshot, terms engine.Terms, p plan.Plan)
	// Decided is told each decision and returns its ID; nil keeps no history.
	Decided func(apply.Decision, apply.About) string
	Now     func() time.Time
	// Ran returns how long the process has run, by a monotonic clock; nil uses Now.
	Ran func() time.Duration
	Log logr.Logger
}

// Parts are the result of Compose.
type Parts struct {
	Feed        *Feed
	Controllers []kube.Controller

	metrics  *metrics.Set
	pending  *pendingPods // for a process that only observes
	standing *standing    // no controller: it decides nothing, and nothing waits for it
}

// Compose wires the controllers. It calls none of the ports.
func Compose(settings Settings, deps Deps) Parts {
	c := newComposition(settings, deps)
	controllers := slices.Concat(c.decide(), c.machines(), c.pools(), c.buffers(), c.tell(), c.repair(), c.provided())
	if settings.ObserveOnly {
		controllers = c.onlooking()
	}
	for i := range controllers {
		controllers[i].Reconciler = serve.NewCalm(controllers[i].Reconciler)
	}
	feed := &Feed{
		store: deps.Store, window: c.window, podEvents: c.podEvents, brake: c.brake, times: c.metrics.Pods.Times,
		conditions: c.conditions(), events: deps.Events, tells: settings.ConditionEvents, fleet: deps.Fleet,
		idle: settings.BatchIdle,
		wake: deps.Wake, claimOf: claimByNode(deps.Client), now: deps.Now, log: deps.Log.WithName("world"),
	}
	return Parts{Feed: feed, Controllers: controllers, metrics: c.metrics, pending: c.pending,
		standing: &standing{conditions: feed.conditions,
			client: deps.Client, picture: deps.Store, fleet: deps.Fleet, metrics: c.metrics, settings: settings,
			paused: c.disrupting.LastPaused, ready: deps.Ready, now: deps.Now, log: deps.Log.WithName("standing"),
		}}
}

// composition is what several controllers share.
type composition struct {
	Settings
	Deps
	metrics    *metrics.Set
	window     *provisioning.Window
	places     *provisioning.Places
	brake      *provisioning.Brake
	podEvents  *claim.PodEvents
	catalogs   wakingCatalogs
	applier    *apply.Applier
	disrupting *disruption.Controller
	repairing  *repair.Controller // nil where no node is repaired
	pending    *pendingPods
	board      *buffer.Board
	unseen     *unseen.Objects
}

func newComposition(settings Settings, deps Deps) *composition {
	c := &composition{
		Settings: settings, Deps: deps, metrics: metrics.New(deps.Registerer),
		places: &provisioning.Places{Client: deps.Client, Now: deps.Now, Log: deps.Log.WithName(Provisioning)},
		window: provisioning.NewWindow(settings.BatchIdle, settings.BatchMax, deps.Store.Untried),
		brake:  provisioning.NewBrake(), podEvents: claim.NewPodEvents(),
		catalogs: wakingCatalogs{store: deps.Store, wake: deps.Wake},
		pending:  &pendingPods{now: deps.Now, ready: deps.Ready}, board: &buffer.Board{}, unseen: unseen.New(deps.Now),
	}
	c.Client = c.unseen.Client(deps.Client)
	applied := c.Client
	if deps.Applied != nil {
		applied = c.unseen.Client(deps.Applied)
	}
	c.metrics.Claims.Moving = c.moving
	deps.Store.OnBinding(func(expected bool) {
		place := metrics.PlaceElsewhere
		if expected {
			place = metrics.PlaceExpected
		}
		c.metrics.Own.Bound.WithLabelValues(place).Inc()
	})
	limit := apply.NewClusterLimit(settings.MaxClaims, settings.SystemNamespace)
	if settings.ObserveOnly {
		limit = nil // it creates nothing, and writes no table
	}
	c.applier = apply.New(apply.Config{
		Client: applied, Live: deps.Live, Store: deps.Store, Fleet: deps.Fleet,
		Each: deps.Each, Now: deps.Now, Log: deps.Log.WithName("applier"),
		Cluster: limit,
		Decided: func(d apply.Decision, about apply.About) string {
			c.metrics.Own.Decisions.WithLabelValues(string(d.Verb), d.Cause, string(d.Outcome)).Inc()
			c.countCreated(d, about)
			if deps.Decided == nil {
				return ""
			}
			return deps.Decided(d, about)
		},
	})
	var recovered func(context.Context, string) (string, error)
	if settings.NodeRepair {
		c.repairing = c.newRepair()
		recovered = c.repairing.Recovered
	}
	c.disrupting = disruption.New(disruption.Config{
		Client: deps.Client, Live: deps.Live, Picture: deps.Store, Applier: c.applier, Fleet: deps.Fleet,
		Namespace: settings.SystemNamespace, Grace: settings.TakeoverGrace, SpotToSpot: settings.SpotToSpot,
		MinSaving: settings.MinSaving, MinSavingPercent: settings.MinSavingPercent,
		Recovered: recovered, Events: deps.Events, Metrics: c.metrics, Ready: deps.Ready, Each: deps.Each,
		Leave:   func(pods []*cluster.Pod) { c.window.Leave(pods, deps.Now()) },
		Planned: deps.Planned, Now: deps.Now,
		Log: deps.Log.WithName(Disruption),
	})
	c.metrics.Own.Grace.Measure(c.disrupting.GraceLeft)
	return c
}

// conditions returns the metrics of conditions, nil when they are switched off.
func (c *composition) conditions() *metrics.Conditions {
	if c.Unobserved {
		return nil
	}
	return metrics.NewConditions(c.Registerer, classLabels(c.Plugged), c.DeprecatedMetrics)
}

// countCreated counts a created NodeClaim by its reason.
func (c *composition) countCreated(d apply.Decision, about apply.About) {
	if d.Outcome != apply.Done || d.Verb == apply.Remove {
		return
	}
	reason := metrics.Provisioned
	if d.Verb == apply.Replace {
		reason = metrics.Reason(d.Cause)
	}
	c.metrics.Claims.Created.WithLabelValues(reason, about.Pool, strconv.FormatBool(about.Relaxed)).Inc()
}

// moving returns how many pods have to move when a claim goes.
func (c *composition) moving(claim string) (pods int) {
	for _, node := range c.Store.Snapshot().Nodes {
		if node.Claim != claim {
			continue
		}
		for _, pod := range node.Pods {
			if !pod.Fixed {
				pods++
			}
		}
	}
	return pods
}

// podsOf returns the pods that are promised a place on a claim, with the fields that an event needs.
func (c *composition) podsOf(claim string) (pods []*corev1.Pod) {
	for _, pod := range c.Store.Snapshot().Pending {
		if pod.Promised == claim {
			pods = append(pods,
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name,
					UID: types.UID(pod.UID)}})
		}
	}
	return pods
}

// keep keeps the places of pods on a claim's node that is about to open, and returns how long the node should stay
// closed.
func (c *composition) keep(ctx context.Context, claim, node string) time.Duration {
	return c.places.Open(ctx, c.Store.Snapshot(), claim, node)
}

// removed records the removal of a NodeClaim by a controller that found it failed, broken or losing its machine.
func (c *composition) removed(claim *karpenterv1.NodeClaim, cause, why string) {
	if c.Decided != nil {
		c.Decided(apply.Decision{Verb: apply.Remove, Cause: cause, Outcome: apply.Done}, apply.About{Why: why,
			Pool: translate.PoolOf(claim), Claim: claim.Name, Node: claim.Status.NodeName, Before: resources.Unpriced})
	}
}

// joined records that the node of a NodeClaim is ready for pods.
func (c *composition) joined(claim *karpenterv1.NodeClaim, after time.Duration) {
	if c.Decided != nil {
		c.Decided(apply.Decision{Verb: apply.Launch, Cause: "Launched", Outcome: apply.Joined}, apply.About{
			Pool: translate.PoolOf(claim), Claim: claim.Name, Node: claim.Status.NodeName, Before: resources.Unpriced,
			After: resources.Unpriced, Why: "after " + after.Round(time.Second).String()})
	}
}

// clouds returns the providers as one controller calls them: each call is measured.
func (c *composition) clouds(controller string) *fleet.Fleet {
	return c.Fleet.Through(func(cloud provider.Provider) provider.Provider {
		m := measured{Provider: cloud, controller: controller, metrics: c.metrics.Cloud, now: c.Now}
		if reboots, can := cloud.(provider.Rebooter); can {
			return rebooter{m, reboots}
		}
		return m
	})
}

// decide returns the controllers that plan: what to launch for pods, and which nodes go.
func (c *composition) decide() []kube.Controller {
	return []kube.Controller{
		{Name: Provisioning, Workers: 1, Start: true, Reconciler: provisioning.New(provisioning.Config{
			Picture: c.Store, Applier: c.applier, Window: c.window, Brake: c.brake, Events: c.Events,
			Metrics: c.metrics.Plans,
			InVain:  c.metrics.Pools.InVain, Told: func(pool string) { c.Wake(Pools, kube.Requests(pool)[0], 0) },
			Learn: c.Store.Learn, Later: func() bool { return c.Store.HasBuffers() || c.Store.HasPreempting() },
			Ready: c.Ready, Planned: c.Planned, Buffered: c.buffered, Release: c.places.Release,
			Now: c.Now, Log: c.Log.WithName(Provisioning),
		})},
		{Name: Disruption, Workers: 1, Start: true, Reconciler: c.disrupting, Watches: disruptionWatches()},
	}
}

// buffered takes in what a plan says of CapacityBuffers and headroom, and wakes the controllers of those whose state
// changed.
func (c *composition) buffered(s *cluster.Snapshot, p plan.Plan) {
	for _, name := range c.board.Take(s, p) {
		if pool, is := cluster.PoolOfHeadroom(name.String()); is {
			c.Wake(Pools, kube.Requests(pool)[0], 0)
			continue
		}
		c.Wake(Buffers, reconcile.Request{NamespacedName: name}, 0)
	}
}

// headroom returns the state of the room that a NodePool keeps free.
func (c *composition) headroom(name string) pool.Headroom {
	pods, on := c.Store.Headroom(name)
	room, _ := c.board.Of(types.NamespacedName{Namespace: cluster.HeadroomNamespace, Name: name})
	return pool.Headroom{On: on, Pods: pods, Room: room}
}

// buffers returns the controller of CapacityBuffers, if that kind is served.
func (c *composition) buffers() []kube.Controller {
	if !c.BuffersServed {
		return nil
	}
	return []kube.Controller{
		{Name: Buffers, Workers: 1, Watches: bufferWatches(), Reconciler: buffer.New(buffer.Config{
			Client: c.Client, Verdicts: c.Store, Board: c.board, Off: c.BuffersOff, Events: c.Events, Now: c.Now,
		})}}
}

// machines returns the controllers of a machine's life: from claim to node, and back.
func (c *composition) machines() []kube.Controller {
	claims := claim.Config{
		Client: c.Client, Live: c.Live, Fleet: c.clouds(Claims), Catalogs: c.catalogs, PodEvents: c.podEvents,
		Timeouts: c.Timeouts, PodsOf: c.podsOf, Keep: c.keep, Holder: c.Identity, Events: c.Events, Removed: c.removed,
		Joined:  c.joined,
		Reboots: c.NodeRepair, Unseen: c.unseen, Metrics: c.metrics, Now: c.Now, Ran: c.Ran,
		Log: c.Log.WithName(Claims),
	}
	nodes := node.Config{
		Client: c.Client, Live: c.Live, Fleet: c.clouds(Nodes), Events: c.Events, Metrics: c.metrics,
		Unseen: c.unseen, Now: c.Now, Log: c.Log.WithName(Nodes),
	}
	if c.NodeRepair {
		nodes.Rebooter = c.clouds(Nodes)
	}
	return []kube.Controller{
		// It starts at once, to know which claims are older than the process (P-40). Each launch waits for its cloud,
		// and clouds launch many in one call: hence the many workers (E-29).
		{Name: Claims, Workers: 500, Start: true, Reconciler: claim.New(claims),
			Watches: claimWatches(c.Client, c.Plugged)},
		{Name: Garbage, Workers: 1, Start: true, Reconciler: claim.NewCollector(claims)},
		{Name: Nodes, Workers: 20, Reconciler: node.New(nodes), Watches: nodeWatches(c.Client)},
	}
}

// pools returns the controllers of what users write: NodePools and NodeOverlays.
func (c *composition) pools() []kube.Controller {
	var held time.Duration
	for _, parts := range c.Plugged {
		held = max(held, parts.Held)
	}
	pools := pool.Config{
		Client: c.Client, Live: c.Live, Fleet: c.clouds(Pools), Catalogs: c.catalogs, Picture: c.Store, Held: held,
		Paused: c.disrupting.LastPaused, StaticOff: c.StaticOff, InVain: c.brake.Message, Headroom: c.headroom,
		Events: c.Events, Metrics: c.metrics.Pools, Now: c.Now, Log: c.Log.WithName(Pools),
	}
	overlays := overlay.Config{Client: c.Client, Verdicts: c.Store, Events: c.Events, Now: c.Now}
	return []kube.Controller{
		{Name: Pools, Workers: 5, Reconciler: pool.New(pools), Watches: poolWatches(c.Client, c.Plugged)},
		{Name: Overlays, Workers: 1, Reconciler: overlay.New(overlays), Watches: overlayWatches(c.Client)},
	}
}

// tell returns the controllers that pass on what clouds announce and what users should know.
func (c *composition) tell() []kube.Controller {
	return []kube.Controller{
		{Name: Interruption, Workers: 1, Start: true, Reconciler: interruption.New(interruption.Config{
			Client: c.Client, Fleet: c.clouds(Interruption), Catalogs: c.catalogs, Events: c.Events,
			Removed: c.removed,
			Claims:  c.metrics.Claims, Metrics: c.metrics.Interruptions, Now: c.Now, Log: c.Log.WithName(Interruption),
		}), Watches: interruptionWatches(c.Plugged)},
		{Name: PodNotices, Workers: 1, Watches: podNoticeWatches(),
			Reconciler: &notice.Pods{Client: c.Client, Events: c.Events, Now: c.Now}},
		{Name: NodeNotices, Workers: 1, Watches: nodeNoticeWatches(),
			Reconciler: &notice.Nodes{Client: c.Client, Fleet: c.Fleet, Events: c.Events}},
	}
}

// repair returns the controller of unhealthy nodes, if that is on.
func (c *composition) repair() []kube.Controller {
	if !c.NodeRepair {
		return nil
	}
	return []kube.Controller{
		{Name: Repair, Workers: 1, Start: true, Reconciler: c.repairing, Watches: repairWatches()},
	}
}

func (c *composition) newRepair() *repair.Controller {
	return repair.New(repair.Config{
		Client: c.Client, Live: c.Live, Picture: c.Store, Applier: c.applier, Fleet: c.Fleet,
		Paused: func(ctx context.Context) (string, error) { return c.disrupting.Paused(ctx) }, Events: c.Events,
		Removed: c.removed, Metrics: c.metrics.Claims, Decisions: c.metrics.Disruption, Ready: c.Ready, Now: c.Now,
		Log: c.Log.WithName(Repair), OnlyOwnVeto: c.RepairOnlyOwnVeto,
	})
}

// provided returns the controllers that the providers bring along.
func (c *composition) provided() []kube.Controller {
	var controllers []kube.Controller
	for _, parts := range c.Plugged {
		controllers = append(controllers, parts.Controllers...)
	}
	return controllers
}
