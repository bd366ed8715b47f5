// Package provisioning turns pending pods into NodeClaims, and keeps the nodes of static pools: it waits for a batch of pods to be
// complete, takes the picture of the cluster, has the engine plan, and hands the plan to the applier (P-20 to P-25). Everything
// that decides is in the engine, everything that writes NodeClaims is in the applier.
//
// It never waits for a claim that is not launched yet: such a claim counts as capacity with what it promised (P-23). A pod that was
// promised a place is planned for again as long as it pends: the scheduler decides who gets which place, and when it has given one
// pod's to another, the first must not wait for its promise to run out. It waits until the scheduler has come to rest (turn.go).
package provisioning

import (
	"context"
	"errors"
	"fmt"
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

// retryAfter is when pods that stayed pending are looked at again although nothing was heard: promises run out without
// an event.
const retryAfter = 10 * time.Second

// refusedAfter is how soon to plan again when the applier found a plan out of date: time for a watch to catch up.
const refusedAfter = time.Second

// notReadyAfter is how soon to ask again while the picture of the cluster is not complete yet.
const notReadyAfter = 100 * time.Millisecond

// Picture is where snapshots come from.
type Picture interface {
	Snapshot() *cluster.Snapshot
}

// Applier carries plans out.
type Applier interface {
	Apply(ctx context.Context, p plan.Plan) (apply.Outcome, error)
	// Begin makes the hard limit of the whole cluster known to other processes; it does so once.
	Begin(ctx context.Context) error
}

// Config is what the controller works with; all fields but Planned are required.
type Config struct {
	Picture Picture
	Applier Applier
	Window  *Window
	Brake   *Brake
	Events  event.Recorder
	Metrics metrics.Plans
	InVain  metrics.Renamed // rounds of launches in vain, by pool
	// Told is called with each pool of which Brake.Message says something else than before.
	Told func(pool string)
	// Learn has the picture know what a DaemonSet takes on new nodes of a pool, whatever its template says; nil forgets that.
	Learn func(daemon, pool string, requests resources.Vector)
	// Ready reports whether the picture holds everything that exists. Planning on half of it would launch nodes that
	// are there already.
	Ready func() bool
	// Planned is told what was planned with and what came out; nil tells nobody.
	Planned func(question string, s *cluster.Snapshot, terms engine.Terms, p plan.Plan)
	// Buffered is told what each plan says of CapacityBuffers; nil tells nobody.
	Buffered func(s *cluster.Snapshot, p plan.Plan)
	// Keeps reports whether room is kept for pods to come, so that a plan may be needed though no pod waits; nil for never.
	Keeps func() bool
	// Release gives back room that is kept for pods on nodes; nil does nothing.
	Release func(ctx context.Context, pods []*cluster.Pod)
	Now     func() time.Time
	Log     logr.Logger
}

// Controller is the singleton that plans for pending pods.
type Controller struct {
	config Config
	waits  *waits
	unsure bool // whether the last round left open if static pools have their nodes
}

// New returns the controller.
func New(config Config) *Controller { return &Controller{config: config, waits: &waits{}} }

// Reconcile plans when it is time to. The request means nothing: there is one for everything.
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
	if wait := c.config.Window.Wait(now); wait > 0 { // its pods came meanwhile, and some of them are in the picture
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	c.config.Brake.Look(snapshot, now)
	defer c.tell(snapshot)
	held, due := c.config.Brake.Holds(now)
	if len(due) > 0 {
		c.config.Window.Urge() // time alone has changed something
	}
	result := again(snapshot, len(held) > 0 || c.config.Keeps != nil && c.config.Keeps())
	if !c.config.Window.Close(snapshot.Version) {
		c.config.Metrics.Last.Set(float64(now.Unix()))
		return result, nil
	}
	result, err := c.plan(ctx, snapshot, now, result)
	c.config.Window.CarriedOut(err, c.config.Now())
	return result, err
}

// plan plans what static pools lack, and then for pending pods. It returns when to come again, which is result if
// nothing else is to be waited for.
func (c *Controller) plan(
	ctx context.Context, snapshot *cluster.Snapshot, now time.Time, result reconcile.Result,
) (reconcile.Result, error) {
	var failures []error
	begin := c.config.Now()
	if p := c.replicas(snapshot, now); len(p.Launches) > 0 {
		c.config.Metrics.Duration.WithLabelValues(metrics.Static).Observe(c.config.Now().Sub(begin).Seconds())
		outcome, err := c.carryOut(ctx, snapshot, p)
		if len(outcome.Launched) > 0 || len(outcome.Refused) > 0 {
			result = reconcile.Result{RequeueAfter: refusedAfter}
		}
		if failures = append(failures, err); len(outcome.Launched) > 0 {
			c.config.Window.Urge() // pods are planned for on the picture that has the new nodes
			return result, err
		}
		if c.unsure = outcome.Open > 0 && !c.unsure; c.unsure {
			return result, err // the nodes may come, and pods would be planned for as if they did not; twice in a row is an outage
		}
	} else {
		c.unsure = false
	}
	if nobodyWaits(snapshot) {
		c.shown(snapshot, plan.Plan{}) // the last one that had no place may be gone
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
		p, wait := c.takeTurns(snapshot, p, now)
		if wait > 0 {
			result = reconcile.Result{RequeueAfter: min(wait, retryAfter)}
		}
		c.shown(snapshot, p)
		outcome, err := c.carryOut(ctx, snapshot, p)
		if len(outcome.Launched) > 0 && len(snapshot.Daemons) > 0 { // what was counted on is noted before a node joins
			c.config.Brake.Look(c.config.Picture.Snapshot(), now)
		}
		c.release(ctx, snapshot, p)
		c.reportUnplaced(snapshot, p)
		if failures = append(failures, err); len(outcome.Refused) > 0 {
			result = reconcile.Result{RequeueAfter: refusedAfter}
		}
	}
	return result, errors.Join(failures...)
}

// shown shows in the metrics what was planned for the pending pods.
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

// planned passes on what was planned with.
func (c *Controller) planned(question string, s *cluster.Snapshot, now time.Time, p plan.Plan) {
	if c.config.Planned != nil {
		c.config.Planned(question, s, engine.Terms{Now: now.Unix()}, p)
	}
}

// carryOut applies a plan and tells about it. What was out of date makes the next look plan again.
func (c *Controller) carryOut(ctx context.Context, snapshot *cluster.Snapshot, p plan.Plan) (apply.Outcome, error) {
	outcome, err := c.config.Applier.Apply(ctx, p)
	c.report(snapshot, p, outcome)
	if len(outcome.Refused) > 0 {
		c.config.Window.Urge()
	}
	if err != nil {
		err = fmt.Errorf("applying a plan of %d launches for %d pending pods: %w", len(p.Launches), len(snapshot.Pending), err)
	}
	return outcome, err
}

// again is when to look again though nothing is heard. more says that what the snapshot does not show may change by time.
func again(snapshot *cluster.Snapshot, more bool) reconcile.Result {
	if nobodyWaits(snapshot) && !more {
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: retryAfter}
}

// nobodyWaits reports whether there is nothing that a plan could be for: no pod, no room, no floor.
func nobodyWaits(s *cluster.Snapshot) bool {
	return len(s.Pending)+len(s.Buffers) == 0 && !engine.Floors(s)
}

// podOf makes of a reference as much of a pod as an event needs.
func podOf(ref plan.PodRef) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: types.UID(ref.UID)}}
}
