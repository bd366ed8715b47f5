package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Replicas plans a node for each free slot of the static pools, as far as the cluster may have more nodes (K-53).
func Replicas(snapshot *cluster.Snapshot) plan.Plan {
	result := plan.Plan{BasedOn: snapshot.Version, Names: snapshot.Names}
	left, ceiling := newReservations(snapshot), snapshot.Ceiling()
	for i, p := range snapshot.Pools {
		if p.Static && !p.Dormant {
			slots := p.FreeSlots
			if most := ceiling.Left(); most != limit.None { // pools that come first have the room of the cluster
				slots = slots[:min(int64(len(slots)), most)]
			}
			launches := fill(snapshot, i, slots, left)
			ceiling = ceiling.Plus(int64(len(launches)))
			result.Launches = append(result.Launches, launches...)
		}
	}
	return result
}

// Surge plans nodes of a static pool that are to replace others of it, at most as many as are asked for.
func Surge(snapshot *cluster.Snapshot, pool *cluster.Pool, most int) []plan.Launch {
	at := slices.Index(snapshot.Pools, pool)
	if left := snapshot.Ceiling().LeftHard(); left != limit.None {
		most = min(most, int(left))
	}
	return fill(snapshot, at, pool.SurgeSlots[:min(most, len(pool.SurgeSlots))], newReservations(snapshot))
}

// fill plans a node for each of these slots of a pool, for no pod: the cheapest that the pool admits.
func fill(snapshot *cluster.Snapshot, index int, slots []int, left reservations) []plan.Launch {
	p := snapshot.Pools[index]
	if p.Blocked != "" || p.Catalog == nil || len(slots) == 0 {
		return nil
	}
	s := &solver{snapshot: snapshot, choices: map[string]*choices{}}
	own := newPool(index, p, snapshot.Daemons, left, &limit.Ceiling{})
	offers := own.offers.Clone()
	for i := range own.offers.All() {
		if slices.ContainsFunc(own.roomOf(i), func(left int64) bool { return left < 0 }) {
			offers.Remove(i) // not even its daemons fit
		}
	}
	var launches []plan.Launch
	for _, slot := range slots {
		b := &planned{outlook: outlook{pool: own, offers: offers.Clone(), custom: own.custom}, slot: slot}
		own.reserve(b.offers, nil)
		first := own.cheapestWithin(b.offers, nil)
		if first < 0 || !own.enough(b.offers) {
			break // the pool's conditions say what is wrong with it
		}
		own.take(first)
		l := s.launch(b)
		l.For = []string{plan.AskReplicas}
		launches = append(launches, l)
	}
	return launches
}
