// Package disruption removes nodes that are not needed, or not as they are (D-01 to D-10). Its methods, of which one acts at a
// time: trimming, of nodes above a limit or above the replicas of a static pool; emptiness, of nodes that no pod needs; drift,
// of nodes that are not any more what their pool would make; and consolidation, of nodes that cost more than necessary. All
// but the first keep to the budgets of the pools. The engine chooses; the applier writes the intent onto claim and node;
// and in a later step, once the watches show the intent, the removal is judged again on the newest picture and carried
// out or undone. All memory is on the API objects, so a restart goes on where the last process stopped.
//
// proceed.go goes on with what is under way, as engine.Judge says; trim.go counts what is too many; move.go begins commands,
// replacement.go looks after what was launched for them, blocked.go says what holds a removal up.
// Start with [Controller.Reconcile].
package disruption

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

const (
	// pollEvery is when to look again although nothing was heard: budgets open by the clock.
	pollEvery = time.Minute
	// proceedAfter is when to look at intents that were just written.
	proceedAfter = time.Second
	// notReadyAfter is how soon to ask again while the picture of the cluster is not complete yet.
	notReadyAfter = time.Second
)

// Picture is where snapshots come from.
type Picture interface {
	Snapshot() *cluster.Snapshot
}

// Applier writes intents, carries them out and takes them back.
type Applier interface {
	Apply(ctx context.Context, p plan.Plan) (apply.Outcome, error)
	Mark(ctx context.Context, remove plan.Remove) (bool, error)
	Delete(ctx context.Context, remove plan.Remove) (bool, error)
	DeleteUnchanged(ctx context.Context, remove plan.Remove, resourceVersion string) (bool, error)
	Undo(ctx context.Context, remove plan.Remove) error
	Release(ctx context.Context, remove plan.Remove, replaced []string) error
	Narrow(ctx context.Context, replacement plan.Remove, replaces []string, together int) error
}

// Owners says whose pools and claims are; see package fleet.
type Owners interface {
	OwnsPool(pool *karpenterv1.NodePool) bool
	OwnsClaim(claim *karpenterv1.NodeClaim) bool
}

// Config is what the controller works with; all fields but Recovered, Each and Planned are required.
type Config struct {
	Client  client.Client // reads from a cache
	Live    client.Reader // reads from the API server: where the truth must not be late
	Picture Picture
	Applier Applier
	Fleet   Owners
	// Namespace is where the pause switch is, and what the first start found.
	Namespace string
	// Grace is how long nothing is removed voluntarily after the first start on a cluster of another program's; 0 is none
	// (K-27).
	Grace time.Duration
	// MinSaving is what a replacement has to save per hour, MinSavingPercent the same as a part of what is replaced, SpotToSpot
	// whether it may be spot for spot (D-04, D-05).
	MinSaving        resources.Money
	MinSavingPercent int
	SpotToSpot       bool
	Events           event.Recorder
	Metrics          *metrics.Set
	Ready            func() bool // the picture holds everything that exists
	// Recovered says why a claim that is marked as unhealthy is not to be repaired any more, "" when it still is (K-49); nil when
	// no node is repaired.
	Recovered func(ctx context.Context, claim string) (string, error)
	// Each calls do with 0 to n-1 and returns when all calls have; they may run at the same time. Nil: one after the other.
	Each func(n int, do func(i int))
	// Leave is told, before nodes are removed, of the pods that leave them for places that were found.
	Leave func(pods []*cluster.Pod)
	// Planned is told what was planned with and what came out; nil tells nobody.
	Planned func(question string, s *cluster.Snapshot, terms engine.Terms, p plan.Plan)
	Now     func() time.Time
	Log     logr.Logger
}

// Controller is the singleton that removes nodes.
type Controller struct {
	config Config
	memory *memory
}

// New returns the controller.
func New(config Config) *Controller {
	if config.Each == nil {
		config.Each = func(n int, do func(i int)) {
			for i := range n {
				do(i)
			}
		}
	}
	c := &Controller{config: config, memory: newMemory()}
	if config.Metrics != nil {
		config.Metrics.Disruption.Eligible.Measure(c.eligible)
	}
	return c
}

// round is what one step works on.
type round struct {
	snapshot *cluster.Snapshot
	now      time.Time
	pools    map[string]*karpenterv1.NodePool
	budgets  map[string][]engine.Budget
	// moving are the pools of which nodes with pods on them are marked to go.
	moving map[string]bool
	// claims are filled as intents are read.
	claims map[string]*karpenterv1.NodeClaim
	// counted are claims as the API server has them, filled as pools are counted.
	counted map[string]*karpenterv1.NodeClaim
	// paused says why nothing is disrupted that budgets bound; "" when it may be (D-14). That ends at pausedUntil,
	// unless that is zero (U-27).
	paused      string
	pausedUntil time.Time
	asked       bool // the API server, in this round
	// graced says that the grace of the first start is why, which holds trimming too (K-27).
	graced bool
}

// Reconcile goes on with removals under way and begins new ones. The request means nothing: there is one for everything.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !c.config.Ready() {
		return reconcile.Result{RequeueAfter: notReadyAfter}, nil
	}
	r, err := c.gather(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	underway, failure := c.proceed(ctx, r)
	var released bool
	if r.paused == "" {
		released, err = c.release(ctx, r)
		failure = errors.Join(failure, err)
	}
	trimming, err := c.trim(ctx, r)
	if trimming || err != nil { // the picture has changed: what else may go is decided on the next one
		return reconcile.Result{RequeueAfter: proceedAfter}, errors.Join(failure, err)
	}
	if r.paused != "" {
		rest := pollEvery
		if !r.pausedUntil.IsZero() {
			rest = min(rest, max(r.pausedUntil.Sub(r.now), proceedAfter))
		}
		return reconcile.Result{RequeueAfter: rest}, failure
	}
	done := c.evaluates(plan.Empty)
	p := engine.Emptiness(r.snapshot, r.now.Unix(), r.budgets)
	done()
	c.planned("emptiness", r, engine.Terms{Now: r.now.Unix(), Budgets: r.budgets}, p)
	c.reportBlocked(r, p)
	outcome, err := c.begin(ctx, r, p)
	c.countEmpty(p, outcome)
	if err := errors.Join(failure, err); err != nil {
		return reconcile.Result{}, err
	}
	var begun bool
	rest := pollEvery
	// One method acts at a time: each has to see what the others have written.
	if !released && len(outcome.Marked) == 0 {
		if begun, rest, err = c.move(ctx, r); err != nil {
			return reconcile.Result{}, err
		}
	}
	cameOn := !r.asked && !c.memory.switchIsOff(r.now) // the switch, within this round
	if underway || released || begun || len(outcome.Marked) > 0 || cameOn {
		return reconcile.Result{RequeueAfter: proceedAfter}, nil
	}
	return reconcile.Result{RequeueAfter: min(rest, c.untilNext(r))}, nil
}

// planned passes on what was planned with.
func (c *Controller) planned(question string, r round, terms engine.Terms, p plan.Plan) {
	if c.config.Planned != nil {
		c.config.Planned(question, r.snapshot, terms, p)
	}
}

// gather takes the picture, and the budgets of this moment.
func (c *Controller) gather(ctx context.Context) (round, error) {
	r := round{
		snapshot: c.config.Picture.Snapshot(), now: c.config.Now(),
		pools: map[string]*karpenterv1.NodePool{}, budgets: map[string][]engine.Budget{}, moving: map[string]bool{},
		claims: map[string]*karpenterv1.NodeClaim{}, counted: map[string]*karpenterv1.NodeClaim{},
	}
	var pools karpenterv1.NodePoolList
	if err := c.config.Client.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
		return r, fmt.Errorf("listing NodePools: %w", err)
	}
	for _, pool := range r.snapshot.Pools { // of one that is not listed, for a moment, nobody knows the budgets
		r.budgets[pool.Name] = []engine.Budget{{Max: 0}}
	}
	sizes := engine.Sizes(r.snapshot)
	for i := range pools.Items {
		pool := &pools.Items[i]
		if !c.config.Fleet.OwnsPool(pool) {
			continue
		}
		budgets, err := translate.ActiveBudgets(pool, r.now, sizes[pool.Name])
		if err != nil { // counts as a budget of 0: whoever wrote it wanted to be protected
			c.config.Events.Event(pool, event.Warning, event.DisruptionBlocked, "A disruption budget cannot be read, nothing is disrupted: "+err.Error())
		}
		r.pools[pool.Name], r.budgets[pool.Name] = pool, budgets
		c.recall(pool)
	}
	if err := c.glance(ctx, &r); err != nil {
		return r, err
	}
	why, until, err := c.grace(ctx, r)
	if err != nil {
		return r, err
	}
	if r.graced = why != ""; r.graced && r.paused == "" { // a pause may last longer, and somebody wrote why
		r.paused, r.pausedUntil = why, until
	}
	c.pause(&r)
	c.memory.foundPools(slices.Collect(maps.Keys(r.pools)))
	return r, nil
}

// untilNext returns when something next changes by time alone, and a while when nothing does soon: a node's quiet time or rest ends, a
// budget comes into force or goes out of it, a pool is not left alone any more.
func (c *Controller) untilNext(r round) time.Duration {
	next := pollEvery
	for _, pool := range r.pools {
		if at := translate.NextBudgetChange(pool, r.now); !at.IsZero() {
			next = min(next, at.Sub(r.now))
		}
	}
	if at := c.memory.pauseEnds(r.now); !at.IsZero() {
		next = min(next, at.Sub(r.now))
	}
	if at := c.memory.passingEnds(r.now); !at.IsZero() {
		next = min(next, at.Sub(r.now))
	}
	for _, node := range r.snapshot.Nodes {
		if node.ConsolidatableAt == cluster.Never {
			continue
		}
		for _, at := range []int64{node.ConsolidatableAt, node.ReplaceableAt()} {
			if left := time.Unix(at, 0).Sub(r.now); left > 0 && left < next {
				next = left
			}
		}
	}
	return next
}
