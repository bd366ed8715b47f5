package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Replicas plans a node for each free slot of the static pools, as far as the cluster may have more nodes (K-53).
func Replicas(snapshot *cluster.Snapshot) plan.Plan {
	result := plan.Plan{BasedOn: snapshot.Version, Names: snapshot.Names}
	left, ceiling := newLeft(snapshot), snapshot.Ceiling()
	for i, p := range snapshot.Pools {
		if p.Static && !p.Dormant {
			slots := p.FreeSlots
			if most := ceiling.Left(); most != limit.None { // the first pools get what the cluster has left
				slots = slots[:min(int64(len(slots)), most)]
			}
			launches := fill(snapshot, i, slots, left)
			ceiling = ceiling.Plus(int64(len(launches)))
			result.Launches = append(result.Launches, launches...)
		}
	}
	return result
}

// Surge plans up to most nodes of a static pool, to replace others of it.
func Surge(snapshot *cluster.Snapshot, pool *cluster.Pool, most int) []plan.Launch {
	at := slices.Index(snapshot.Pools, pool)
	if left := snapshot.Ceiling().LeftHard(); left != limit.None {
		most = min(most, int(left))
	}
	return fill(snapshot, at, pool.SurgeSlots[:min(most, len(pool.SurgeSlots))], newLeft(snapshot))
}

// Admits reports whether a node of a static pool could be launched, if it had a slot.
func Admits(snapshot *cluster.Snapshot, pool *cluster.Pool) bool {
	return len(fill(snapshot, slices.Index(snapshot.Pools, pool), []int{0}, newLeft(snapshot))) > 0
}

// fill plans a node for each of these slots of a static pool, for no pod: the cheapest that the pool admits.
func fill(snapshot *cluster.Snapshot, index int, slots []int, left left) []plan.Launch {
	p := snapshot.Pools[index]
	if p.Blocked != "" || p.Catalog == nil || len(slots) == 0 {
		return nil
	}
	bare := newBare(snapshot, newPool(0, p, snapshot.Daemons, left, &limit.Ceiling{}))
	var launches []plan.Launch
	for _, slot := range slots {
		n := bare.add()
		if n == nil {
			break // the pool's conditions say what is wrong with it
		}
		n.slot = slot
		l := bare.launch(n)
		l.For = []string{plan.AskReplicas}
		launches = append(launches, l)
	}
	return launches
}

// Fill plans up to most nodes of a pool that is not static, for no pod: the cheapest that the pool admits, within its
// limits and the cluster's (K-54).
func Fill(snapshot *cluster.Snapshot, pool *cluster.Pool, most int) []plan.Launch {
	if pool.Static || pool.Blocked != "" || pool.Catalog == nil || most <= 0 ||
		Braked(snapshot, pool, plan.AskFloor) != "" {
		return nil
	}
	ceiling := snapshot.Ceiling()
	own := newPool(0, pool, snapshot.Daemons, newLeft(snapshot), &ceiling)
	bare := newBare(snapshot, own)
	var launches []plan.Launch
	for len(launches) < most && own.mayGrow() {
		n := bare.add()
		if n == nil {
			break
		}
		bare.opened(n)
		l := bare.launch(n)
		l.For = []string{plan.AskFloor}
		launches = append(launches, l)
	}
	return launches
}

// bare plans nodes of one pool for no pod. They go through the rules for a shape that asks for nothing.
type bare struct {
	*solver
	pool    *pool
	offers  catalog.Bits
	nothing *shape
}

func newBare(snapshot *cluster.Snapshot, own *pool) *bare {
	offers := own.offers.Clone()
	for i := range own.offers.All() {
		if slices.ContainsFunc(own.roomOf(i), func(left int64) bool { return left < 0 }) {
			offers.Remove(i) // not even its daemons fit
		}
	}
	return &bare{
		solver: &solver{snapshot: snapshot, rules: rules, topology: topology.New(nil, nil),
			choices: map[string]*choices{}},
		pool: own, offers: offers,
		nothing: &shape{Shape: &cluster.Shape{}, topology: &topology.Rules{}, ways: [][]way{{{offers: offers}}}},
	}
}

// add plans a further node; nil when the pool admits none.
func (b *bare) add() *planned {
	n, index := b.addPlanned(b.pool, b.offers)
	if b.tryPlanned(index, b.ask(nil, b.nothing)) != topology.Yes {
		return nil
	}
	return n
}
