package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Replicas plans a node for each free slot of the static pools.
func Replicas(snapshot *cluster.Snapshot) plan.Plan {
	s := &solver{snapshot: snapshot, choices: map[string]*choices{}}
	result := plan.Plan{BasedOn: snapshot.Version, Names: snapshot.Names}
	left := newReservations(snapshot)
	for i, p := range snapshot.Pools {
		if !p.Static || p.Blocked != "" || p.Catalog == nil || len(p.FreeSlots) == 0 {
			continue
		}
		own := newPool(i, p, snapshot.Daemons, left)
		offers := own.offers.Clone()
		for i := range own.offers.All() {
			if slices.ContainsFunc(own.roomOf(i), func(left int64) bool { return left < 0 }) {
				offers.Remove(i) // not even its daemons fit
			}
		}
		for _, slot := range p.FreeSlots {
			b := &bin{pool: own, offers: offers.Clone(), custom: own.custom, slot: slot}
			first := own.settle(b, b.offers)
			if first < 0 {
				break // the pool's conditions say what is wrong with it
			}
			own.take(first)
			result.Launches = append(result.Launches, s.launch(b))
		}
	}
	return result
}
