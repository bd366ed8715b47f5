package provisioning

import (
	"maps"
	"slices"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// This file gives kube-scheduler its turn (P-23, B-16). While the nodes of a plan come up, the scheduler binds pods
// where it likes. A pod that finds its place taken may still get another. So another node for pods with a promised
// place is launched only when the scheduler has come to rest: no node of ours is on its way, and no pod was bound for
// the idle time. A launch is postponed for at most the longest time of a batch. If the scheduler binds pods, it may
// take as long as the pods waiting at the start need at its pace, but at most a minute. A node counts as on its way
// for a minute at most. A pod whose promise is gone, with its claim or by time, is not postponed.
//
// Pods whose node is being removed, and for which places were found (D-01), count as promised too. Each takes the
// first place that the scheduler gives it. A pod without a place now may find one when all have moved (B-11). So nodes
// that they still have to leave count as on their way, for the longest time of a batch. A longer drain holds up
// nobody.

const (
	// underWay is how long a claim counts as on its way here: most machines have joined by then.
	underWay = engine.UnderWay * time.Second
	// slowest is the longest that launches are postponed, however many pods a slow scheduler still has to bind.
	slowest = time.Minute
)

// turn is the window's record of the scheduler's turn.
type turn struct {
	moved   time.Time // when a pod that needed a node was last bound, or a node was on its way
	since   time.Time // when a launch was first postponed; zero if none is
	waiting int       // unbound pods with a place at that time
	bound   int       // pods that needed a node and were bound since then
	// left are pods that leave their nodes after places were found for them, by the key of their shape. Their
	// successors have other names but the same shape.
	left map[string]left
}

// left is how many pods of a shape leave, and when the last of them started to.
type left struct {
	pods int
	at   time.Time
}

// forget forgets pods that have had enough time to move.
func (t *turn) forget(now time.Time, longest time.Duration) {
	maps.DeleteFunc(t.left, func(_ string, l left) bool { return now.Sub(l.at) >= longest || now.Before(l.at) })
}

// Leave records that pods leave their nodes and that places were found for them.
func (w *Window) Leave(pods []*cluster.Pod, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn.forget(now, w.longest)
	for _, pod := range pods {
		key := pod.Shape.Key()
		w.turn.left[key] = left{w.turn.left[key].pods + 1, now}
	}
}

// Left returns how many pods of each shape leave their nodes, or did recently, by the shape's key.
func (w *Window) Left(now time.Time) map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn.forget(now, w.longest)
	pods := map[string]int{}
	for key, l := range w.turn.left {
		pods[key] = l.pods
	}
	return pods
}

// PutOff returns how long launches for promised pods only are postponed, 0 if they are due. coming says that nodes are
// on their way. waiting is how many pods have a place and are not bound. [Window.Caught] ends it.
func (w *Window) PutOff(now time.Time, coming bool, waiting int) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.turn.since.IsZero() || now.Before(w.turn.since) { // clocks jump
		w.turn.since, w.turn.waiting, w.turn.bound = now, waiting, 0
	}
	if coming || now.Before(w.turn.moved) {
		w.turn.moved = now
	}
	due := w.turn.moved.Add(w.idle)
	if latest := w.turn.since.Add(w.turn.most(now, w.longest)); latest.Before(due) {
		due = latest
	}
	wait := max(0, due.Sub(now))
	w.again = wait > 0
	return wait
}

// most returns the longest that launches are postponed.
func (t *turn) most(now time.Time, longest time.Duration) time.Duration {
	if t.bound == 0 {
		return longest
	}
	pace := now.Sub(t.since) / time.Duration(t.bound)
	return max(longest, min(slowest, time.Duration(t.waiting)*pace))
}

// Caught records that no launch is postponed.
func (w *Window) Caught() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn.since = time.Time{}
}

// takeTurns removes postponed launches from the plan. It returns how long they are postponed, 0 if none is.
func (c *Controller) takeTurns(s *cluster.Snapshot, p plan.Plan, now time.Time) (plan.Plan, time.Duration) {
	left := c.config.Window.Left(now)
	coming := slices.ContainsFunc(s.Nodes, func(n *cluster.Node) bool {
		return engine.OnItsWay(s, n, now.Unix()) || stillLeft(n, left)
	})
	promised := map[string]bool{}
	for _, pod := range s.Pending {
		if promised[pod.UID] = pod.Promised != ""; !promised[pod.UID] && left[pod.Shape.Key()] > 0 {
			promised[pod.UID] = true
			left[pod.Shape.Key()]-- // a growing workload has no more waiting pods than have left
		}
	}
	again := func(l plan.Launch) bool {
		return len(l.Pods) > 0 &&
			!slices.ContainsFunc(l.Pods, func(pod plan.PodRef) bool { return !promised[pod.UID] })
	}
	if !slices.ContainsFunc(p.Launches, again) {
		c.config.Window.Caught()
		return p, 0
	}
	wait := c.config.Window.PutOff(now, coming, len(p.Nominations))
	if wait == 0 {
		c.config.Window.Caught()
		return p, 0
	}
	p.Launches = slices.DeleteFunc(slices.Clone(p.Launches), again)
	return p, wait
}

// stillLeft reports whether a node being removed still runs pods that are to leave it for known places and were not
// evicted yet.
func stillLeft(n *cluster.Node, left map[string]int) bool {
	return n.Deleting && slices.ContainsFunc(n.Pods, func(pod *cluster.Pod) bool {
		return !pod.Fixed && !pod.Terminating && left[pod.Shape.Key()] > 0
	})
}
