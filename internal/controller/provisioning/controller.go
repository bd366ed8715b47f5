// Package provisioning turns pending pods into NodeClaims, and keeps the nodes of static pools (P-20 to P-25). It
// waits until a batch of pods is complete, takes a snapshot, lets the engine plan, and passes the plan to the applier.
// All decisions are in the engine; only the applier writes NodeClaims.
//
// It never waits for a claim to launch: the claim counts as capacity with what it promised (P-23). A pod that was
// promised a place is planned for again as long as it is pending. The scheduler decides who gets which place. If it
// gives one pod's place to another, the first must not wait until its promise expires. It only waits until the
// scheduler has come to rest (turn.go).
package provisioning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// retryAfter is when pending pods are planned for again without an event: promises expire silently.
const retryAfter = 10 * time.Second

// refusedAfter is how soon to plan again after the applier found a plan out of date, so that a watch can catch up.
const refusedAfter = time.Second

// notReadyAfter is how soon to ask again while the snapshot is incomplete.
const notReadyAfter = 100 * time.Millisecond

// Picture provides snapshots.
type Picture interface {
	Snapshot() *cluster.Snapshot
}

// Applier carries plans out.
type Applier interface {
	Apply(ctx context.Context, p plan.Plan) (apply.Outcome, error)
	// Begin makes the hard limit of the whole cluster known to other processes. Call it before each round.
	Begin(ctx context.Context) error
}

// Config configures the controller. All fields except Planned, Buffered, Later and Release are required.
type Config struct {
	Picture Picture
	Applier Applier
	Window  *Window
	Brake   *Brake
	Events  event.Recorder
	Metrics metrics.Plans
	InVain  metrics.Renamed // rounds in vain, by pool
	// Told is called for each pool whose Brake.Message may have changed.
	Told func(pool string)
	// Learn tells the store what a DaemonSet takes on new nodes of a pool, whatever its template says. Nil requests
	// delete that.
	Learn func(daemon, pool string, requests resources.Vector)
	// Ready reports whether snapshots have all existing objects. A plan on half of them would launch existing nodes
	// again.
	Ready func() bool
	// Planned is called with each plan and its input; nil does nothing.
	Planned func(question string, s *cluster.Snapshot, terms engine.Terms, p plan.Plan)
	// Buffered is called with each plan, for what it says of CapacityBuffers; nil does nothing.
	Buffered func(s *cluster.Snapshot, p plan.Plan)
	// Later reports whether a plan may be needed later although no pod waits and no event comes: room is kept for pods
	// to come, or pods wait for others that end. Nil means never.
	Later func() bool
	// Release frees room that is kept for pods on nodes; nil does nothing.
	Release func(ctx context.Context, pods []*cluster.Pod)
	Now     func() time.Time
	Log     logr.Logger
}

// Controller is the singleton that plans for pending pods.
type Controller struct {
	config  Config
	waits   *waits
	denials denials
	unsure  bool // the last round left open whether static pools have their nodes
}

// New returns the controller.
func New(config Config) *Controller {
	return &Controller{config: config, waits: &waits{}, denials: denials{}}
}

// Reconcile plans when it is time to. It ignores the request.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !c.config.Ready() {
		return reconcile.Result{RequeueAfter: notReadyAfter}, nil
	}
	if wait := c.config.Window.Wait(c.config.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if err := c.config.Applier.Begin(ctx); err != nil {
		return reconcile.Result{}, err
	}
	snapshot := c.config.Picture.Snapshot()
	now := c.config.Now()
	if wait := c.config.Window.Wait(now); wait > 0 { // its pods came meanwhile; the snapshot has only some
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	c.config.Brake.Look(snapshot, now)
	defer c.tell(snapshot)
	held, due := c.holds(now)
	if c.overdue(due) {
		c.config.Window.Urge()
	}
	result := again(snapshot, len(held) > 0 || c.config.Later != nil && c.config.Later())
	if !c.config.Window.Close(snapshot.Version) {
		c.config.Metrics.Last.Set(float64(now.Unix()))
		return result, nil
	}
	result, err := c.plan(ctx, snapshot, now, result)
	c.config.Window.CarriedOut(err, c.config.Now())
	return result, err
}

// plan plans first for static pools and then for pending pods. It returns when to come again: result, unless something
// else has to be waited for.
func (c *Controller) plan(
	ctx context.Context, snapshot *cluster.Snapshot, now time.Time, result reconcile.Result,
) (reconcile.Result, error) {
	var failures []error
	var planned []plan.Launch
	begin := c.config.Now()
	if p := c.replicas(snapshot, now); len(p.Launches) > 0 {
		planned = p.Launches
		c.config.Metrics.Duration.WithLabelValues(metrics.Static).Observe(c.config.Now().Sub(begin).Seconds())
		outcome, err := c.carryOut(ctx, snapshot, p)
		if len(outcome.Launched) > 0 || len(outcome.Refused) > 0 {
			result = reconcile.Result{RequeueAfter: refusedAfter}
		}
		if failures = append(failures, err); len(outcome.Launched) > 0 {
			c.config.Window.Urge() // pods are planned for with a snapshot that has the new nodes
			return result, err
		}
		if c.unsure = outcome.Open > 0 && !c.unsure; c.unsure {
			// the nodes may come, and planning for pods would ignore them; twice in a row is an outage
			return result, err
		}
	} else {
		c.unsure = false
	}
	if nobodyWaits(snapshot) {
		c.shown(snapshot, plan.Plan{}) // the last pod without a place may be gone
		c.waits.news(nil)
	} else {
		c.config.Window.Planned(snapshot.Pending)
		start := c.config.Now()
		c.config.Metrics.Running.Begin(metrics.Provisioner, len(snapshot.Pending), start)
		p := c.provision(snapshot, now)
		if c.teach(snapshot.Names) {
			snapshot = c.config.Picture.Snapshot()
			p = c.provision(snapshot, now)
		}
		c.config.Metrics.Running.End(metrics.Provisioner)
		took := c.config.Now().Sub(start).Seconds()
		c.config.Metrics.Duration.WithLabelValues(metrics.Provisioner).Observe(took)
		c.config.Metrics.Seconds.Observe(took)
		c.config.Metrics.Pods.Observe(float64(len(snapshot.Pending)))
		planned = slices.Concat(planned, p.Launches)
		p, wait := c.takeTurns(snapshot, p, now)
		if wait > 0 {
			result = reconcile.Result{RequeueAfter: min(wait, retryAfter)}
		}
		c.shown(snapshot, p)
		outcome, err := c.carryOut(ctx, snapshot, p)
		if len(outcome.Launched) > 0 && len(snapshot.Daemons) > 0 { // records what was counted on before a node joins
			c.config.Brake.Look(c.config.Picture.Snapshot(), now)
		}
		c.release(ctx, snapshot, p)
		c.reportUnplaced(snapshot, p)
		if failures = append(failures, err); len(outcome.Refused) > 0 {
			result = reconcile.Result{RequeueAfter: refusedAfter}
		}
	}
	c.forgetDenials(snapshot, planned, now)
	return result, errors.Join(failures...)
}

// shown exports what was planned for the pending pods: metrics and buffers.
func (c *Controller) shown(snapshot *cluster.Snapshot, p plan.Plan) {
	if c.config.Buffered != nil {
		c.config.Buffered(snapshot, p)
	}
	now := c.config.Now()
	c.config.Metrics.Begin()
	c.config.Metrics.Unschedulable.WithLabelValues(metrics.Provisioner).Set(float64(len(p.Unplaced)))
	c.config.Metrics.ShowPending(snapshot)
	unplaced := make(map[string]bool, len(p.Unplaced))
	for _, u := range p.Unplaced {
		unplaced[u.Pod.UID] = true
	}
	for _, pod := range snapshot.Pending {
		c.config.Metrics.Times.Decided(pod.UID, !unplaced[pod.UID], now)
	}
	c.config.Metrics.Last.Set(float64(now.Unix()))
	p.BasedOn = snapshot.Version
	c.config.Metrics.Latest.Set(p)
}

// planned passes a plan and its input on.
func (c *Controller) planned(question string, s *cluster.Snapshot, now time.Time, p plan.Plan) {
	if c.config.Planned != nil {
		c.config.Planned(question, s, engine.Terms{Now: now.Unix()}, p)
	}
}

// carryOut applies a plan and reports it. A launch that was out of date makes the controller plan again.
func (c *Controller) carryOut(ctx context.Context, snapshot *cluster.Snapshot, p plan.Plan) (apply.Outcome, error) {
	outcome, err := c.config.Applier.Apply(ctx, p)
	c.report(snapshot, p, outcome)
	c.learnDenials(snapshot, outcome, c.config.Now())
	if len(outcome.Refused) > 0 {
		c.config.Window.Urge()
	}
	if err != nil {
		err = fmt.Errorf("applying a plan of %d launches for %d pending pods: %w", len(p.Launches),
			len(snapshot.Pending), err)
	}
	return outcome, err
}

// again returns when to plan again without an event. more says that time may change something outside the snapshot.
func again(snapshot *cluster.Snapshot, more bool) reconcile.Result {
	if nobodyWaits(snapshot) && !more {
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: retryAfter}
}

// nobodyWaits reports whether there is nothing to plan for: no pod, buffer or floor.
func nobodyWaits(s *cluster.Snapshot) bool {
	return len(s.Pending)+len(s.Buffers) == 0 && !engine.Floors(s)
}

// podOf returns as much of a pod as an event needs.
func podOf(ref plan.PodRef) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name,
		UID: types.UID(ref.UID)}}
}
