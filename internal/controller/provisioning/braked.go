package provisioning

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// provision plans for the pending pods under the brake. If a plan repeats launches in vain, that is counted and it
// plans again.
func (c *Controller) provision(s *cluster.Snapshot, now time.Time) plan.Plan {
	for {
		held, due := c.holds(now)
		asked := with(s, s.Pending, s.Buffers, without(held, due))
		p := engine.Provision(asked)
		c.planned("provision", asked, now, p)
		if len(due) > 0 {
			p = oneEach(tryAgain(s, p, held, due), due)
		}
		if !c.config.Brake.Judge(s, p, now) { // else it has used up a claim, so this loop ends
			return p
		}
	}
}

// without returns what is held back, without floors that may try a node again.
func without(held map[cluster.Hold]string, due map[cluster.Hold]bool) map[cluster.Hold]string {
	for hold := range due {
		if hold.Ask == plan.AskFloor {
			held = maps.Clone(held)
			maps.DeleteFunc(held, func(h cluster.Hold, _ string) bool { return h.Ask == plan.AskFloor && due[h] })
			break
		}
	}
	return held
}

// oneEach limits the plan to one node for each floor that may try a node again.
func oneEach(p plan.Plan, due map[cluster.Hold]bool) plan.Plan {
	tried := map[string]bool{}
	p.Launches = slices.DeleteFunc(slices.Clone(p.Launches), func(l plan.Launch) bool {
		if !slices.Contains(l.For, plan.AskFloor) || !due[cluster.Hold{Pool: l.Pool, Ask: plan.AskFloor}] {
			return false
		}
		before := tried[l.Pool]
		tried[l.Pool] = true
		return before
	})
	return p
}

// with returns the snapshot with other pending pods, buffers and holds.
func with(s *cluster.Snapshot, pending, buffers []*cluster.Pod, held map[cluster.Hold]string) *cluster.Snapshot {
	fresh := *s
	fresh.Pending, fresh.Buffers, fresh.Held = pending, buffers, held
	return &fresh
}

// tryAgain plans again for asks that may try a node again. Of the pods without a place in p, it takes one for each
// such ask.
func tryAgain(s *cluster.Snapshot, p plan.Plan, held map[cluster.Hold]string, due map[cluster.Hold]bool) plan.Plan {
	asks := map[string]bool{} // asks to try, and whether a pod was chosen
	for hold := range due {
		asks[hold.Ask] = false
	}
	unplaced := map[string]bool{}
	for _, u := range slices.Concat(p.Unplaced, p.Buffers.Unplaced) {
		unplaced[u.Pod.UID] = true
	}
	left, chosen := map[string]bool{}, false
	take := func(all []*cluster.Pod) (some []*cluster.Pod) {
		for _, pod := range all {
			if unplaced[pod.UID] {
				tried, done := spendTry(asks, pod.Shape.Asks())
				if done {
					left[pod.UID] = true
					continue
				}
				chosen = chosen || tried
			}
			some = append(some, pod)
		}
		return some
	}
	pending, buffers := take(s.Pending), take(s.Buffers)
	if !chosen {
		return p
	}
	free := maps.Clone(held)
	maps.DeleteFunc(free, func(hold cluster.Hold, _ string) bool { return due[hold] })
	again := engine.Provision(with(s, pending, buffers, free))
	again.Unplaced = andLeft(again.Unplaced, p.Unplaced, left)
	again.Buffers.Unplaced = andLeft(again.Buffers.Unplaced, p.Buffers.Unplaced, left)
	return again
}

// spendTry reports whether a node may be tried for any of a pod's asks (tried), and whether a pod was chosen for one
// before (done). It marks the asks as chosen.
func spendTry(asks map[string]bool, own []string) (tried, done bool) {
	for _, ask := range own {
		chosen, may := asks[ask]
		tried, done = tried || may, done || chosen
	}
	for _, ask := range own {
		if _, may := asks[ask]; may {
			asks[ask] = true
		}
	}
	return tried, done
}

// andLeft adds to a list the entries of another list for the pods that were left out.
func andLeft(list, before []plan.Unplaced, left map[string]bool) []plan.Unplaced {
	for _, u := range before {
		if left[u.Pod.UID] {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, func(a, b plan.Unplaced) int {
		return strings.Compare(a.Pod.String()+" "+a.Pod.UID, b.Pod.String()+" "+b.Pod.UID)
	})
	return list
}

// replicas plans for static pools: nothing for those held back, or one node if they may try again.
func (c *Controller) replicas(s *cluster.Snapshot, now time.Time) plan.Plan {
	p := engine.Replicas(s)
	c.planned("replicas", s, now, p)
	held, due := c.holds(now)
	if len(held) == 0 {
		return p
	}
	p.Launches = slices.DeleteFunc(slices.Clone(p.Launches), func(l plan.Launch) bool {
		hold := cluster.Hold{Pool: l.Pool, Ask: plan.AskReplicas}
		if held[hold] == "" || due[hold] {
			delete(due, hold)
			return false
		}
		return true
	})
	return p
}

// tell reports what the brake has begun or stopped to hold back.
func (c *Controller) tell(s *cluster.Snapshot) {
	news := c.config.Brake.News()
	for _, name := range slices.Sorted(maps.Keys(news)) {
		said := news[name]
		c.config.InVain.Add(float64(said.Rounds), name)
		if said.Text != "" && said.Rounds > 0 {
			pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
			if known := s.Pool(name); known != nil {
				pool.UID = types.UID(known.UID)
			}
			c.config.Events.Event(pool, event.Warning, event.LaunchesInVain, said.Text)
			c.config.Log.Info("launches are held back", "pool", name, "reason", said.Text)
		}
		c.config.Told(name)
	}
}
