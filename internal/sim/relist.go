package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
)

// This file breaks watches. A watch that reconnects with too old a version has lost events for good. The informer then
// lists the kind. It sees only the newest states and deletions by absence, and a recreated object looks changed.

// lostAll means that the watch of a kind is broken: no event arrives.
const lostAll = math.MaxUint64

// relistVerbs returns the script lines of this file.
func relistVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{"relist": (*World).relistOne}
}

// relistOne breaks the youngest replica's watch of a kind. After a while the replica lists the kind.
func (w *World) relistOne(a arguments) error {
	d, err := time.ParseDuration(a[1])
	if err != nil || len(w.replicas) == 0 {
		return err
	}
	r, kind := w.replicas[len(w.replicas)-1], a[0]
	if !w.ground.kinds.Has(kind) {
		return fmt.Errorf("kind %q is none that the simulated API server has: want Pod, Node, NodeClaim or the like",
			kind)
	}
	if !r.cache.Serves(kind) || r.lost[kind] == lostAll { // not listed yet, or broken already
		return nil
	}
	r.lost[kind] = lostAll
	w.after(d, func() { r.relist(kind) })
	return nil
}

// relist lists a kind again, and takes in the differences one by one, like an informer.
func (r *replica) relist(kind string) {
	if r.dead || r.held(func() { r.relist(kind) }) {
		return
	}
	d := newDice(r.world.script.Seed, "relist", r.String(), kind, r.world.now.String())
	changes := r.cache.Relist(kind, d.chance(0.5))
	r.lost[kind] = r.world.server.Version()
	if r.world.verbose() {
		r.world.tell("%s lists %s anew: %d differ", r, kind, len(changes))
	}
	due := max(r.stalled[kind], r.world.now)
	for _, e := range changes {
		due += d.between(0, 5*time.Millisecond)
		r.world.at(due, func() { r.receive(e) })
	}
	r.stalled[kind] = due
}

// misses reports whether an event was lost with a watch, or was found by an earlier list than the last one.
func (r *replica) misses(e apiserver.Event) bool {
	lost := r.lost[e.Kind()]
	return e.Version < lost || e.Version == lost && !e.Listed
}

// relists adds broken watches to some scripts. It has its own dice, so that scripts of other seeds do not change.
func (g *generator) relists() {
	d := newDice(g.script.Seed, "relists")
	if !d.chance(0.3) {
		return
	}
	for range 1 + d.n(5) {
		kind := of(&d, "NodeClaim", "NodeClaim", "Node", "Node", "Pod", "Pod", "NodePool", "PodDisruptionBudget")
		lasts := of(&d, 50*time.Millisecond, 2*time.Second, 20*time.Second, time.Minute)
		g.add(d.between(5*time.Second, g.script.Heal-time.Second), "relist", kind, fmt.Sprint(d.between(0, lasts)))
	}
}
