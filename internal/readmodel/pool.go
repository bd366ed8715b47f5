package readmodel

import (
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// Pool is a NodePool.
type Pool struct {
	Name   string `json:"name"`
	Weight int32  `json:"weight,omitempty"`
	// Nodes counts all nodes of the pool, including those OnTheWay, which are not initialized, and those Leaving.
	Nodes    int `json:"nodes"`
	OnTheWay int `json:"onTheWay"`
	Leaving  int `json:"leaving"`
	// Waiting counts the pods for which this pool is the nearest to taking them.
	Waiting int          `json:"waiting"`
	Limits  []view.Bound `json:"limits"`
	// Replicas is spec.replicas of a static pool; nil for others.
	Replicas *int64 `json:"replicas,omitempty"`
	// PricePerHour is the price of the machines with a known price, in dollars; nil when there are none. Unpriced
	// counts the others.
	PricePerHour *float64 `json:"pricePerHour"`
	Unpriced     int      `json:"unpriced"`
	// Offers counts the offerings that the pool's requirements allow, and those that are unavailable now.
	Offers view.Offers `json:"offers"`
	// Cause is why the pool may launch nothing; nil when it may.
	Cause *view.Cause `json:"cause,omitempty"`
}

// tally sums up the nodes and pods of a pool.
type tally struct {
	nodes, onTheWay, leaving, waiting, unpriced int
	price                                       resources.Money
}

// addPools adds the pools, in the order of their names.
func (b *builder) addPools() {
	s := b.in.Snapshot
	for _, pool := range s.Pools {
		t := b.pools[pool.Name]
		p := Pool{Name: pool.Name, Weight: pool.Weight, Nodes: t.nodes, OnTheWay: t.onTheWay, Leaving: t.leaving,
			Waiting: t.waiting, Limits: view.Bounds(s, pool), Unpriced: t.unpriced, Offers: view.OffersOf(pool)}
		if p.Limits == nil {
			p.Limits = []view.Bound{}
		}
		if pool.Static {
			p.Replicas = new(pool.Replicas)
		}
		if t.price > 0 || t.unpriced == 0 {
			p.PricePerHour = new(t.price.Dollars())
		}
		if step, blocked := blocks(pool); blocked {
			p.Cause = view.Pool(pool.Name, "", []plan.Step{step}).Cause
		}
		b.m.Pools = append(b.m.Pools, p)
	}
	slices.SortFunc(b.m.Pools, func(a, b Pool) int { return strings.Compare(a.Name, b.Name) })
}

// blocks returns the cause of a pool that may launch nothing.
func blocks(pool *cluster.Pool) (plan.Step, bool) {
	return plan.Step{Cause: cause.PoolNotReady, Detail: pool.Blocked}, pool.Blocked != ""
}
