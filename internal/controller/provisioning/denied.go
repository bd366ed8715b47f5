package provisioning

import (
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// This file holds back launches whose NodeClaims the API server refuses for what they are: an admission policy or
// webhook forbids them, or they are invalid. The answer would be the same the next time. So the pool launches nothing
// for such pods for a while, then one node as a try; the wait doubles each time. Other pools may take the pods, and
// nothing else is slowed. The brake does the same for nodes that came and helped nobody (P-35), but a try costs no
// machine here: the waits are shorter, and the first refusal counts.

const (
	deniedFirst = 10 * time.Second
	deniedMost  = 5 * time.Minute
)

// denial is what the API server has refused again and again.
type denial struct {
	times   int
	until   time.Time
	why     string
	planned bool // since until
}

func (d *denial) text() string {
	return fmt.Sprintf("the API server refuses its NodeClaims: %s; that was try %d, the next one is after %s", d.why,
		d.times, d.until.UTC().Format(time.RFC3339))
}

// denials are the refusals by pool and ask. Only the one worker uses them.
type denials map[cluster.Hold]*denial

// holds returns what the brake and denials hold back at now, with the reason. due are those of which one node each may
// be tried.
func (c *Controller) holds(now time.Time) (held map[cluster.Hold]string, due map[cluster.Hold]bool) {
	held, due = c.config.Brake.Holds(now)
	if len(c.denials) > 0 && held == nil {
		held, due = map[cluster.Hold]string{}, map[cluster.Hold]bool{}
	}
	for hold, d := range c.denials {
		if now.Before(d.until) {
			held[hold] = d.text()
			delete(due, hold)
		} else if held[hold] == "" { // else the brake says when
			held[hold], due[hold] = d.text(), true
		}
	}
	return held, due
}

// overdue reports whether time alone has changed something: a try is due, and no plan was made since. What the API
// server has refused may stay due for long, if another pool takes the pods.
func (c *Controller) overdue(due map[cluster.Hold]bool) bool {
	for hold := range due {
		if d := c.denials[hold]; d == nil || !d.planned {
			return true
		}
	}
	return false
}

// learnDenials records what the API server has refused and accepted, and reports it on the pools.
func (c *Controller) learnDenials(s *cluster.Snapshot, outcome apply.Outcome, now time.Time) {
	for _, launched := range outcome.Launched {
		for _, ask := range launched.For {
			hold := cluster.Hold{Pool: launched.Pool, Ask: ask}
			if c.denials[hold] != nil {
				delete(c.denials, hold)
				c.config.Window.Urge() // one was a try: now for the others
			}
		}
	}
	counted, told := map[cluster.Hold]bool{}, map[string]bool{}
	for _, refused := range outcome.Refused {
		if !refused.Denied {
			continue
		}
		for _, ask := range refused.For {
			hold := cluster.Hold{Pool: refused.Pool, Ask: ask}
			if counted[hold] {
				continue
			}
			counted[hold] = true
			d := c.denials[hold]
			if d == nil {
				d = &denial{}
				c.denials[hold] = d
			}
			d.until = now.Add(min(deniedMost, deniedFirst<<min(d.times, 10)))
			d.times, d.why, d.planned = d.times+1, refused.Why, false
			if !told[refused.Pool] {
				told[refused.Pool] = true
				c.tellDenied(s, refused.Pool, d.text())
			}
		}
	}
}

// tellDenied tells a pool that its NodeClaims are refused. The pods are told by the plans that hold them back.
func (c *Controller) tellDenied(s *cluster.Snapshot, name, text string) {
	object := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if known := s.Pool(name); known != nil {
		object.UID = types.UID(known.UID)
	}
	c.config.Events.Event(object, event.Warning, event.LaunchesInVain, text)
}

// forgetDenials drops what may be tried again and is not wanted any more. launches are those that were planned.
func (c *Controller) forgetDenials(s *cluster.Snapshot, launches []plan.Launch, now time.Time) {
	if len(c.denials) == 0 {
		return
	}
	asks, wanted := map[string]bool{}, map[cluster.Hold]bool{}
	for _, pod := range s.Pending {
		for _, ask := range pod.Shape.Asks() {
			asks[ask] = true
		}
	}
	for _, pod := range s.Buffers {
		asks[pod.Shape.Ask()] = true
	}
	for _, launch := range launches {
		for _, ask := range launch.For {
			wanted[cluster.Hold{Pool: launch.Pool, Ask: ask}] = true
		}
	}
	maps.DeleteFunc(c.denials, func(hold cluster.Hold, d *denial) bool {
		switch {
		case s.Pool(hold.Pool) == nil:
			return true
		case now.Before(d.until):
			return false
		}
		d.planned = true
		if plan.ForItself(hold.Ask) { // it never waits, so only a plan says that a node is missing
			return !wanted[hold]
		}
		return !asks[hold.Ask]
	})
}
