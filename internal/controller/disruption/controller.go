// Package disruption removes nodes that are not needed, or no longer right (D-01 to D-10). One method acts at a time.
// Trimming removes nodes above a limit or a static pool's replicas, and emptiness those that no pod needs. Expiration
// removes expired nodes, and drift those that differ from what their pool would make. Consolidation removes nodes that
// cost more than necessary. All except trimming keep to the pools' budgets. The engine chooses, and the applier writes
// the intent onto claim and node. In a later step, once the watches show the intent, the removal is judged again on
// the newest snapshot and carried out or undone. All memory is on the API objects, so a restart continues where the
// last process stopped.
//
// proceed.go continues what is under way, as engine.Judge says; trim.go counts surplus nodes; move.go begins commands;
// replacement.go handles replacements; blocked.go reports what blocks a removal. Start with [Controller.Reconcile].
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
	// pollEvery is how often to check without an event: budgets open by schedule.
	pollEvery = time.Minute
	// proceedAfter is when to check intents that were just written.
	proceedAfter = time.Second
	// notReadyAfter is how soon to ask again while the snapshot is incomplete.
	notReadyAfter = time.Second
)

// Picture provides snapshots.
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

// Owners says which pools and claims are ours; see package fleet.
type Owners interface {
	OwnsPool(pool *karpenterv1.NodePool) bool
	OwnsClaim(claim *karpenterv1.NodeClaim) bool
}

// Config configures the controller; all fields except Recovered, Each and Planned are required.
type Config struct {
	Client  client.Client // reads from a cache
	Live    client.Reader // reads from the API server, where a cache could be too old
	Picture Picture
	Applier Applier
	Fleet   Owners
	// Namespace is the namespace of the pause switch and of the first start's ConfigMap.
	Namespace string
	// Grace is how long nothing is removed voluntarily after the first start on another program's cluster; 0 means no
	// grace (K-27).
	Grace time.Duration
	// MinSaving is the minimum saving of a replacement per hour, MinSavingPercent the same as a percentage of what is
	// replaced. SpotToSpot says whether spot may replace spot (D-04, D-05).
	MinSaving        resources.Money
	MinSavingPercent int
	SpotToSpot       bool
	Events           event.Recorder
	Metrics          *metrics.Set
	Ready            func() bool // snapshots have everything that exists
	// Recovered returns why a claim marked as unhealthy need not be repaired any more, "" if repair is still due
	// (K-49). It is nil if no nodes are repaired.
	Recovered func(ctx context.Context, claim string) (string, error)
	// Each calls do with 0 to n-1, possibly concurrently, and returns when all calls have. Nil: one after the other.
	Each func(n int, do func(i int))
	// Leave is called, before nodes are removed, with the pods that leave them for places that were found.
	Leave func(pods []*cluster.Pod)
	// Planned is called with each plan and its input; nil does nothing.
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

// round is the data of one step.
type round struct {
	snapshot *cluster.Snapshot
	now      time.Time
	pools    map[string]*karpenterv1.NodePool
	budgets  map[string][]engine.Budget
	// moving are the pools with nodes that have pods and are marked for removal.
	moving map[string]bool
	// claims are those read with their intents, by name.
	claims map[string]*karpenterv1.NodeClaim
	// counted are claims as the API server has them, filled when pools are counted.
	counted map[string]*karpenterv1.NodeClaim
	// paused is why disruption under budgets is paused; "" if it is not (D-14). The pause ends at pausedUntil, unless
	// that is zero (U-27).
	paused      string
	pausedUntil time.Time
	asked       bool // the switch was read from the API server in this round
	// graced says that the grace of the first start is active, which also stops trimming (K-27).
	graced bool
}

// Reconcile continues removals under way and begins new ones. It ignores the request.
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
	if trimming || err != nil { // the cluster has changed: decide the rest on the next snapshot
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
	failure = errors.Join(failure, err)
	if !c.memory.goesOn(failure, r.now) {
		return reconcile.Result{}, failure
	}
	var begun bool
	rest := pollEvery
	// One method acts at a time: each must see what the others have written.
	if !released && len(outcome.Marked) == 0 {
		begun, rest, err = c.move(ctx, r)
		failure = errors.Join(failure, err)
	}
	if failure != nil {
		return reconcile.Result{}, failure
	}
	cameOn := !r.asked && !c.memory.switchIsOff(r.now) // the switch was turned on within this round
	if underway || released || begun || len(outcome.Marked) > 0 || cameOn {
		return reconcile.Result{RequeueAfter: proceedAfter}, nil
	}
	return reconcile.Result{RequeueAfter: min(rest, c.untilNext(r))}, nil
}

// planned passes a plan and its input on.
func (c *Controller) planned(question string, r round, terms engine.Terms, p plan.Plan) {
	if c.config.Planned != nil {
		c.config.Planned(question, r.snapshot, terms, p)
	}
}

// gather collects the snapshot and the current budgets.
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
	for _, pool := range r.snapshot.Pools { // a pool missing in the list for a moment has unknown budgets
		r.budgets[pool.Name] = []engine.Budget{{Max: 0}}
	}
	sizes := engine.Sizes(r.snapshot)
	for i := range pools.Items {
		pool := &pools.Items[i]
		if !c.config.Fleet.OwnsPool(pool) {
			continue
		}
		budgets, err := translate.ActiveBudgets(pool, r.now, sizes[pool.Name])
		if err != nil { // counts as a budget of 0: whoever wrote it wanted protection
			c.config.Events.Event(pool, event.Warning, event.DisruptionBlocked,
				"A disruption budget cannot be read, nothing is disrupted: "+err.Error())
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
	if r.graced = why != ""; r.graced && r.paused == "" { // a pause may last longer, and has a written reason
		r.paused, r.pausedUntil = why, until
	}
	c.pause(&r)
	c.memory.foundPools(slices.Collect(maps.Keys(r.pools)))
	return r, nil
}

// untilNext returns the time until something changes by time alone, at most pollEvery: a node's quiet time or rest
// ends, a budget starts or ends, a pool's pause ends.
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
