package provisioning

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// This file recognises nodes that daemons overfilled (K-34). A node was launched for a pod, and a daemon took the room
// that the pod needs. The daemon requests more than the plan counted on, or was not expected there at all. A late
// label that the DaemonSet selects is enough for that. Each further node would end the same way.
//
// While a claim has no node, the brake records what the plan counted on. If the same daemon causes two rounds in vain
// within ten minutes, its requests are learnt for the pool. Then snapshots have them, the next node is launched at
// once, and the pods are told. A lesson holds until the template changes, new nodes of the pool show less, or the
// process ends.

// lessonWithin is the time within which two nodes must have been overfilled.
const lessonWithin = 10 * time.Minute

// filled is a round in vain whose node daemons had filled.
type filled struct {
	at time.Time
	by map[string]resources.Vector // requests of each DaemonSet that asks for more than was counted
}

// Lesson is what a DaemonSet was found to take on new nodes of a pool.
type Lesson struct {
	Pool, Daemon string
	// Requests is what its pod requests there, nil if it comes no more. Counted is what the last plan had counted.
	Requests, Counted resources.Vector
	// Pods are those that waited for nodes because of it; empty when a lesson is corrected.
	Pods []*cluster.Pod
}

// text returns the lesson for people.
func (l Lesson) text(names resources.Names) string {
	takes := names.Format(l.Requests.With(resources.Pods, 0))
	says := fmt.Sprintf("DaemonSet %s takes %s on new nodes of pool %s, where its template does not select them",
		l.Daemon, takes, l.Pool)
	if l.Counted != nil {
		more := l.Requests.Minus(l.Counted)
		for i := range more {
			more[i] = max(more[i], 0)
		}
		says = fmt.Sprintf("DaemonSet %s takes %s more than its template on new nodes of pool %s", l.Daemon,
			names.Format(more), l.Pool)
	}
	return says + ": two nodes for this pod were filled by it; the next one is planned with that"
}

// Lessons returns what was learnt since the last call.
func (b *Brake) Lessons() []Lesson {
	b.mu.Lock()
	defer b.mu.Unlock()
	lessons := b.lessons
	b.lessons = nil
	return lessons
}

// count records what a plan counted on for daemons on the node of a claim, while the claim has no node.
func (t *try) count(s *cluster.Snapshot, node *cluster.Node) {
	t.object = node
	if t.counted != nil || node.Name != "" {
		return
	}
	t.counted = map[string]resources.Vector{}
	for i := range s.Daemons {
		if node.Awaits(&s.Daemons[i]) {
			t.counted[s.Daemons[i].Name] = s.Daemons[i].OnNode(node)
		}
	}
}

// filledBy returns the daemons that took the room for want on a try's node, with their requests. These are the daemons
// that request more than was counted, if want would fit otherwise; nil if there are none.
func (t *try) filledBy(daemons []cluster.Daemon, want resources.Vector) map[string]resources.Vector {
	if t.counted == nil || t.object == nil {
		return nil
	}
	free, more := t.object.Allocatable.Minus(t.object.Used), resources.Vector(nil)
	for i := range daemons {
		if t.object.Awaits(&daemons[i]) {
			free = free.Minus(daemons[i].OnNode(t.object))
		}
	}
	by := map[string]resources.Vector{}
	for _, pod := range t.object.Pods {
		if pod.Daemon == "" {
			continue
		}
		if over := pod.Shape.Requests.Minus(t.counted[pod.Daemon]); over.Max(nil).Short(nil) >= 0 {
			by[pod.Daemon], more = pod.Shape.Requests, more.Plus(over.Max(make(resources.Vector, len(over))))
		}
	}
	if len(by) == 0 || want.Fits(free) || !want.Fits(free.Plus(more)) {
		return nil
	}
	return by
}

// learn records a round in vain, and reports whether a lesson follows from it.
func (b *Brake) learn(t *try, hold cluster.Hold, r *rounds, pods []*cluster.Pod, now time.Time) bool {
	if len(pods) == 0 {
		return false
	}
	by := t.filledBy(b.daemons, pods[0].Shape.Requests)
	if by == nil {
		return false
	}
	r.filled = slices.DeleteFunc(r.filled, func(f filled) bool { return now.Sub(f.at) > lessonWithin })
	r.filled = append(r.filled, filled{now, by})
	if len(r.filled) < 2 {
		return false
	}
	learnt := false
	for _, daemon := range slices.Sorted(maps.Keys(by)) {
		want, before := by[daemon], 0
		for _, f := range r.filled[:len(r.filled)-1] {
			if found, did := f.by[daemon]; did {
				want, before = want.Max(found), before+1
			}
		}
		if before > 0 {
			learnt = true
			b.lessons = append(b.lessons, Lesson{Pool: hold.Pool, Daemon: daemon, Requests: want,
				Counted: t.counted[daemon], Pods: slices.Clone(pods)})
		}
	}
	return learnt
}

// taught is a daemon and a pool about which something was learnt.
type taught struct{ pool, daemon string }

// correct lowers what was learnt if newer nodes show less, and forgets it if the daemon comes no more.
func (b *Brake) correct(s *cluster.Snapshot, now time.Time) {
	known := map[taught]time.Time{}
	for i := range s.Daemons {
		for _, learnt := range s.Daemons[i].Learnt {
			key := taught{learnt.Pool, s.Daemons[i].Name}
			known[key] = now
			if at, old := b.taught[key]; old {
				known[key] = at
			}
			if found, some := shown(s, key, known[key], now); some && !learnt.Requests.Equal(found.Max(nil)) {
				if found.Max(learnt.Requests).Equal(learnt.Requests) {
					b.lessons = append(b.lessons, Lesson{Pool: key.pool, Daemon: key.daemon, Requests: found})
				}
			}
		}
	}
	b.taught = known
}

// shown returns the most that a daemon requests on nodes of a pool that joined after since. It counts nodes old enough
// for the daemon to have come. some is false if there is no such node.
func shown(s *cluster.Snapshot, key taught, since, now time.Time) (most resources.Vector, some bool) {
	for _, node := range s.Nodes {
		if node.Pool != key.pool || !node.Initialized || node.RegisteredAt <= since.Unix() ||
			now.Unix()-node.RegisteredAt < int64(lessonWithin/time.Second) {
			continue
		}
		some = true
		for _, pod := range node.Pods {
			if pod.Daemon == key.daemon {
				most = most.Max(pod.Shape.Requests)
			}
		}
	}
	return most, some
}

// teach stores what was learnt, and tells the pods. It reports whether this changes the snapshot.
func (c *Controller) teach(names resources.Names) bool {
	lessons := c.config.Brake.Lessons()
	for _, l := range lessons {
		c.config.Learn(l.Daemon, l.Pool, l.Requests)
		var told []string
		for _, pod := range l.Pods {
			ref := plan.PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
			c.config.Events.Event(podOf(ref), event.Warning, event.FailedScheduling, l.text(names))
			told = append(told, ref.String())
		}
		c.config.Log.Info("learnt what a daemon takes on new nodes", "pool", l.Pool, "daemonSet", l.Daemon,
			"requests", names.Format(l.Requests), "pods", len(told), "first",
			strings.Join(told[:min(len(told), 1)], ""))
	}
	return len(lessons) > 0
}
