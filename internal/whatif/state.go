package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/foretell"
)

// Totals are what a cluster comes to at one moment. Unpriced counts nodes whose price nobody knows; they are not in
// PricePerHour.
type Totals struct {
	Nodes        int     `json:"nodes"`
	PricePerHour Dollars `json:"pricePerHour"`
	Unpriced     int     `json:"unpriced,omitempty"`
	// CommittedPerHour is what commitments pay of the prices of the nodes (K-55). It is not in PricePerHour, but in
	// those of pools.
	CommittedPerHour Dollars `json:"committedPerHour,omitempty"`
	// Pools are ordered by name; nodes of no pool come last, with the name "".
	Pools []PoolTotals `json:"pools"`
	// Machines are groups of nodes that are alike, ordered by pool, type, zone and capacity type.
	Machines []Machines `json:"machines"`
	// WaitingPods counts the pods of Waiting, which are groups of one workload that wait for the same.
	WaitingPods int       `json:"waitingPods"`
	Waiting     []Waiting `json:"waiting"`
}

// PoolTotals are those of one pool.
type PoolTotals struct {
	Pool         string  `json:"pool"`
	Nodes        int     `json:"nodes"`
	PricePerHour Dollars `json:"pricePerHour"`
	Unpriced     int     `json:"unpriced,omitempty"`
	// Limit is the most nodes that the pool may have, and Hard whether it is its hard limit; nil for none.
	Limit *int64 `json:"limit,omitempty"`
	Hard  bool   `json:"hard,omitempty"`
}

// Machines is a number of nodes that are alike.
type Machines struct {
	Pool         string   `json:"pool"`
	Offering     Offering `json:"offering"`
	Nodes        int      `json:"nodes"`
	PricePerHour *Dollars `json:"pricePerHour"` // of each; nil when nobody knows
}

// totals returns the totals of a stage as it is now. Its waiting pods are those without a node in the current plan.
func (w *World) totals(s *foretell.Stage) Totals {
	t := Totals{Pools: []PoolTotals{}, Machines: []Machines{}}
	snapshot := s.Snapshot()
	for _, pool := range snapshot.Pools {
		t.Pools = append(t.Pools, poolTotals(pool))
	}
	for _, node := range snapshot.Nodes {
		t.add(node)
	}
	t.CommittedPerHour = Dollars(snapshot.Ledger().Saved())
	t.PricePerHour -= t.CommittedPerHour
	slices.SortFunc(t.Pools, func(a, b PoolTotals) int {
		return cmp.Or(boolean(a.Pool == "")-boolean(b.Pool == ""), strings.Compare(a.Pool, b.Pool))
	})
	slices.SortFunc(t.Machines, func(a, b Machines) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(a.Offering.Type, b.Offering.Type),
			strings.Compare(a.Offering.Zone, b.Offering.Zone),
			strings.Compare(a.Offering.CapacityType, b.Offering.CapacityType))
	})
	t.Waiting = w.waits(plan.Plan{Unplaced: s.Unplaced()})
	for _, group := range t.Waiting {
		t.WaitingPods += group.Pods
	}
	return t
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

func poolTotals(pool *cluster.Pool) PoolTotals {
	t := PoolTotals{Pool: pool.Name}
	if most, hard := pool.Limits.Nodes(); most != limit.None {
		t.Limit, t.Hard = &most, hard
	}
	return t
}

// add counts a node.
func (t *Totals) add(node *cluster.Node) {
	i := slices.IndexFunc(t.Pools, func(p PoolTotals) bool { return p.Pool == node.Pool })
	if i < 0 {
		i, t.Pools = len(t.Pools), append(t.Pools, PoolTotals{Pool: node.Pool})
	}
	t.Nodes++
	t.Pools[i].Nodes++
	if node.Price == resources.Unpriced {
		t.Unpriced++
		t.Pools[i].Unpriced++
	} else {
		t.PricePerHour += Dollars(node.Price)
		t.Pools[i].PricePerHour += Dollars(node.Price)
	}
	kind := Offering{Type: node.InstanceType, Zone: node.Labels[string(catalog.LabelZone)],
		CapacityType: node.Labels[string(catalog.LabelCapacityType)]}
	at := slices.IndexFunc(t.Machines, func(m Machines) bool { return m.Pool == node.Pool && m.Offering == kind })
	if at < 0 {
		at, t.Machines = len(t.Machines), append(t.Machines, Machines{Pool: node.Pool, Offering: kind})
		if node.Price != resources.Unpriced {
			price := Dollars(node.Price)
			t.Machines[at].PricePerHour = &price
		}
	}
	t.Machines[at].Nodes++
}

// pool returns the totals of a pool.
func (t Totals) pool(name string) PoolTotals {
	for _, p := range t.Pools {
		if p.Pool == name {
			return p
		}
	}
	return PoolTotals{Pool: name}
}

// waitingOf returns the number of waiting pods by workload.
func (t Totals) waitingOf() map[string]int {
	counts := map[string]int{}
	for _, group := range t.Waiting {
		counts[group.Workload] += group.Pods
	}
	return counts
}

// nodesText formats the number of nodes, with the limit if there is one.
func (p PoolTotals) nodesText() string {
	if p.Limit == nil {
		return fmt.Sprint(p.Nodes)
	}
	return fmt.Sprintf("%d of %d (%s)", p.Nodes, *p.Limit, limit.Kind(p.Hard))
}
