package joiner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/readmodel"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// This file shows the state of the cluster as metrics (U-10), from the current snapshot and its last plan. It runs in
// a goroutine of its own, so that planning waits for nothing. Only the leader does so; other replicas show none of it.

const (
	// lookEvery is how often the cluster is looked at: a series disappears that long after its object.
	lookEvery = 10 * time.Second
	// stayEvery is how often, at most, the engine is asked which nodes stay and why: it has to plan for that.
	stayEvery = 30 * time.Second
	// stayShare keeps that question to a small part of the time: after an answer the pause is at least so many times
	// as long as the answer took.
	stayShare = 20
	// stayFor is how long an answer is shown while nothing has changed that it depends on.
	stayFor = 10 * time.Minute
)

// standing measures the state of the cluster.
type standing struct {
	client  client.Client // reads from a cache
	picture interface{ Snapshot() *cluster.Snapshot }
	fleet   interface {
		OwnsPool(*karpenterv1.NodePool) bool
	}
	metrics  *metrics.Set
	settings Settings
	paused   func() string
	ready    func() bool
	now      func() time.Time
	log      logr.Logger
	lasting  *lasting // nil where no history is kept

	leads      atomic.Bool
	conditions *metrics.Conditions // nil when they are not measured

	pools    map[string]bool // those with metrics
	unpriced map[string]bool // claims already counted as having no price
	staying  map[view.CauseOfPool]int
	nextStay time.Time
	shown    shown
}

// shown is what the answer shown depends on.
type shown struct {
	question engine.Question
	memory   map[string]view.Memory // by pool
	at       time.Time
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: Start is called in the leader.
func (*standing) NeedLeaderElection() bool { return true }

// Start looks until ctx ends.
func (s *standing) Start(ctx context.Context) error {
	s.metrics.Own.Leader.Set(oneIf(!s.settings.ObserveOnly))
	s.lead(true)
	defer func() {
		s.metrics.Own.Leader.Set(0)
		s.lead(false)
		s.metrics.Own.Standing.Show(nil)
	}()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if s.ready() {
			if err := s.look(ctx); err != nil && ctx.Err() == nil {
				s.log.Info("could not look at how the cluster stands", "reason", err.Error())
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// lead passes on whether this replica leads, to the parts that only show or measure in a leader.
func (s *standing) lead(leads bool) {
	s.leads.Store(leads)
	s.metrics.Pods.Times.Lead(leads)
	if s.conditions != nil {
		s.conditions.Lead(leads)
	}
}

// countUnpriced counts each claim whose machine has no known price, once.
func (s *standing) countUnpriced(snapshot *cluster.Snapshot) {
	unpriced := map[string]bool{}
	for _, node := range snapshot.Nodes {
		if node.Claim == "" || !node.Launched || node.Price != resources.Unpriced {
			continue
		}
		unpriced[node.ClaimUID] = true
		if !s.unpriced[node.ClaimUID] {
			s.metrics.Pools.CostErrors.WithLabelValues(node.Pool).Inc()
		}
	}
	s.unpriced = unpriced
}

// look shows the current state of the cluster.
func (s *standing) look(ctx context.Context) error {
	var pools karpenterv1.NodePoolList
	var claims karpenterv1.NodeClaimList
	if err := s.client.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing NodePools: %w", err)
	}
	if err := s.client.List(ctx, &claims, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing NodeClaims: %w", err)
	}
	snapshot, now := s.picture.Snapshot(), s.now()
	s.lasting.found(view.PodGroups(snapshot, s.metrics.Plans.Latest.Get()), s.paused(), now)
	n := view.NumbersOf(snapshot, s.metrics.Plans.Latest.Get())
	s.stay(&n, snapshot, pools.Items, now)
	rows := append(rowsOf(n), metrics.Row{Family: metrics.Looked, Value: float64(now.Unix())})
	for i := range pools.Items {
		if pool := &pools.Items[i]; s.fleet.OwnsPool(pool) {
			rows = append(rows, metrics.Row{Family: metrics.NodepoolReady, Labels: []string{pool.Name},
				Value: oneIf(condition.IsTrue(pool.Status.Conditions, karpenterv1.ConditionTypeReady))})
		}
	}
	s.metrics.Own.Standing.Show(append(rows, drains(snapshot, claims.Items, now)...))
	s.countUnpriced(snapshot)
	s.forget(snapshot)
	return nil
}

// stay counts the nodes that stay, by cause. Where nothing has changed, the last answer holds (B-22).
func (s *standing) stay(n *view.Numbers, snapshot *cluster.Snapshot, pools []karpenterv1.NodePool, now time.Time) {
	if begun := s.now(); !begun.Before(s.nextStay) {
		terms := s.terms(snapshot, pools, now)
		asked := shown{question: terms.Question(snapshot), memory: s.memory(pools, now), at: now}
		if asked.question != s.shown.question || !maps.Equal(asked.memory, s.shown.memory) ||
			now.Sub(s.shown.at) >= stayFor {
			n.Stay(snapshot, terms, lookedUp(asked.memory))
			s.staying, s.shown = n.Staying, asked
		}
		done := s.now()
		s.nextStay = done.Add(max(stayEvery, stayShare*done.Sub(begun)))
	}
	n.Staying = s.staying
}

// input returns what consoles show (U-41). It does not change s: readers call it while s looks.
func (s *standing) input(ctx context.Context) (readmodel.Input, error) {
	if !s.ready() {
		return readmodel.Input{}, errors.New("caches are being filled")
	}
	var pools karpenterv1.NodePoolList
	if err := s.client.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
		return readmodel.Input{}, fmt.Errorf("listing NodePools: %w", err)
	}
	snapshot, now := s.picture.Snapshot(), s.now()
	return readmodel.Input{Snapshot: snapshot, Plan: s.metrics.Plans.Latest.Get(),
		Terms:      s.terms(snapshot, pools.Items, now),
		Remembered: lookedUp(s.memory(pools.Items, now)), Paused: s.paused()}, nil
}

// terms returns those of the disruption controller, with the budgets of now.
func (s *standing) terms(snapshot *cluster.Snapshot, pools []karpenterv1.NodePool, now time.Time) engine.Terms {
	terms := engine.Terms{Now: now.Unix(), Budgets: map[string][]engine.Budget{}, MinSaving: s.settings.MinSaving,
		MinSavingPercent: s.settings.MinSavingPercent, SpotToSpot: s.settings.SpotToSpot}
	sizes := engine.Sizes(snapshot)
	for i := range pools {
		// An unreadable budget counts as 0; the disruption controller reports it.
		terms.Budgets[pools[i].Name], _ = translate.ActiveBudgets(&pools[i], now, sizes[pools[i].Name])
	}
	return terms
}

// memory returns what is remembered of each pool, by name.
func (s *standing) memory(pools []karpenterv1.NodePool, now time.Time) map[string]view.Memory {
	remembered, paused := map[string]view.Memory{}, s.paused()
	for i := range pools {
		remembered[pools[i].Name] = view.Memory{
			Paused: paused, Held: translate.PoolPauseOf(&pools[i]).Holds(pools[i].Name),
			BacksOffUntil: translate.BacksOffUntil(&pools[i], now),
		}
	}
	return remembered
}

// lookedUp returns a function that looks a pool up.
func lookedUp(remembered map[string]view.Memory) func(pool string) view.Memory {
	return func(pool string) view.Memory { return remembered[pool] }
}

// forget deletes the metrics of pools that are gone together with their nodes.
func (s *standing) forget(snapshot *cluster.Snapshot) {
	known := map[string]bool{}
	for _, pool := range snapshot.Pools {
		known[pool.Name] = true
	}
	for _, node := range snapshot.Nodes {
		known[node.Pool] = true
	}
	for pool := range s.pools {
		if !known[pool] {
			s.metrics.Own.Stages.DeletePartialMatch(map[string]string{"nodepool": pool})
		}
	}
	s.pools = known
}

// drains returns, for each pool with nodes being removed, how long its first removal has been running.
func drains(snapshot *cluster.Snapshot, claims []karpenterv1.NodeClaim, now time.Time) (rows []metrics.Row) {
	since := map[string]time.Time{}
	for i := range claims {
		if at := claims[i].DeletionTimestamp; at != nil {
			since[claims[i].Name] = at.Time
		}
	}
	oldest := map[string]float64{}
	for _, node := range snapshot.Nodes {
		if at, going := since[node.Claim]; going && node.Name != "" {
			oldest[node.Pool] = max(oldest[node.Pool], now.Sub(at).Seconds())
		}
	}
	for pool, seconds := range oldest {
		rows = append(rows, metrics.Row{Family: metrics.OldestDrain, Labels: []string{pool}, Value: seconds})
	}
	return rows
}

// rowsOf returns the metric series of the numbers.
func rowsOf(n view.Numbers) (rows []metrics.Row) {
	add := func(family metrics.Family, value float64, labels ...string) {
		rows = append(rows, metrics.Row{Family: family, Labels: labels, Value: value})
	}
	for group, pods := range n.Waiting {
		add(metrics.PodsWaiting, float64(pods), string(group.Cause), group.Pool)
	}
	for which, holds := range n.Limited {
		add(metrics.NodepoolLimited, oneIf(holds), which.Pool, which.Limit)
	}
	for which, price := range n.Price {
		add(metrics.Price, price.Dollars(), which.Pool, which.CapacityType)
	}
	add(metrics.UnpricedNodes, float64(n.Unpriced))
	for group, nodes := range n.Staying {
		add(metrics.NodesStaying, float64(nodes), group.Pool, string(group.Cause))
	}
	for which, nodes := range n.Nodes {
		add(metrics.NodesByState, float64(nodes), which.Pool, string(which.State))
	}
	for pool, offers := range n.Offers {
		add(metrics.Offerings, float64(offers.All), pool)
		add(metrics.OfferingsUnavailable, float64(offers.Unavailable), pool)
	}
	for pool, hard := range n.Hard {
		add(metrics.HardLimit, float64(hard.Most), pool)
		add(metrics.HardLimitUsed, float64(hard.Used), pool)
	}
	if n.Ceiling.Most != 0 {
		add(metrics.MaxNodes, float64(n.Ceiling.Most))
		add(metrics.MaxNodesUsed, float64(n.Ceiling.Used))
	}
	if n.Ceiling.HardMost != 0 {
		add(metrics.MaxClaims, float64(n.Ceiling.HardMost))
		add(metrics.MaxClaimsUsed, float64(n.Ceiling.Claims))
	}
	for _, c := range n.Commitments {
		add(metrics.Commitment, c.Amount, c.Name, c.Unit)
		add(metrics.CommitmentUsed, c.Used, c.Name, c.Unit)
	}
	for which, pods := range n.Room {
		add(metrics.BufferPods, float64(pods), which.Namespace, which.Buffer, which.State)
	}
	return rows
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
