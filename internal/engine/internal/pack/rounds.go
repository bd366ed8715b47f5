package pack

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/mix"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// maxRounds bounds how often a plan is made anew because a node that was opened late moved the minimum of a spread
// constraint. The next round knows the minimum, up to round knowing. From then on it takes 0, which is always right
// for that constraint. What it places differently may move the minimum of another one. So the last round takes 0 for
// all of them.
const (
	knowing   = 2
	maxRounds = 8
	// maxCare bounds in how many rounds daemons may turn out to be in the way.
	maxCare = 6
)

// trial says how a try differs from the first one.
type trial struct {
	first map[string]bool // UIDs of pods that are placed before all others (see again.go)
	sizes map[string]int  // by pool: the offer whose size new nodes have (see even.go)
	// pods that only need room are placed before those that constraints tie (see orders.go)
	plainFirst bool
	thrifty    bool             // tied pods go where they add least to the price (see thrifty.go)
	drafted    bool             // nodes are drafted before pods are placed (see draft.go)
	without    map[prepaid]bool // what is paid for anyway and not planned on (see again.go)
	choice     choice           // of existing nodes (see tightest.go)
	hosts      hosts            // nodes that pods spread over hostnames open first (see hosts.go)
	stay       bool             // running pods that keep together stay where they are (see topology.go)
}

// try makes a plan.
func try(snapshot *cluster.Snapshot, pods []*cluster.Pod, packing mix.Way, other trial) plan.Plan {
	p, _ := tryUnless(snapshot, pods, packing, other, func(*solver) bool { return false })
	return p
}

// tryUnless makes a plan. If a round has to be made anew and lost says so, it gives up and returns false.
func tryUnless(snapshot *cluster.Snapshot, pods []*cluster.Pod, packing mix.Way, other trial,
	lost func(*solver) bool) (plan.Plan, bool) {
	pods, blocked := able(pods)
	var floors topology.Floors
	var minded care
	for round, cared := 1, 0; ; round++ {
		s := newSolver(snapshot, pods, floors)
		s.packing, s.first, s.care, s.plainFirst = packing, other.first, minded, other.plainFirst
		s.drafted, s.choice, s.hosts, s.thrifty = other.drafted, other.choice, other.hosts, other.thrifty
		s.stay = other.stay
		for _, p := range s.pools {
			p.leaveOut(other.without)
			if offer, found := other.sizes[p.Name]; found {
				p.keepEven(offer, other.drafted)
			}
		}
		s.run(pods)
		violated := s.topology.Violated()
		if violated == nil {
			violated = s.unreachable(floors)
		}
		if violated == nil || round >= maxRounds {
			if cared < maxCare {
				if next := s.inTheWay(pods, cared >= maxCare/2); next != nil {
					cared++
					minded = *next
					continue
				}
			}
			s.grantWishes()
			s.failed = append(s.failed, blocked...)
			return s.plan(), true
		}
		if lost(s) {
			return plan.Plan{}, false
		}
		if floors == nil {
			floors = topology.Floors{}
		}
		if round == maxRounds-1 {
			violated = s.topology.Late()
		}
		for i, floor := range violated {
			floors[i] = floor
			if round > knowing {
				floors[i] = 0
			}
		}
	}
}
