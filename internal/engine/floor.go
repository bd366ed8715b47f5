package engine

import (
	"cmp"
	"fmt"
	"math"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// This file is about a pool's floor: the nodes that it always keeps, whatever pods there are (K-54). A pool below its
// floor launches the cheapest nodes that it admits, after the launches for pods and buffers, which count too. A node
// goes for good only from above the floor; a drifted, expired or broken one is replaced all the same. Two things are
// counted. What a pool lacks is counted in NodeClaims that are not being deleted, so that no node on its way is
// launched twice. What it can spare is counted in nodes that are of use now, so that no node goes on the word of one
// that has not come yet. Limits are stronger than the floor.

// Floors reports whether a pool of s is below its floor and may launch nodes.
func Floors(s *cluster.Snapshot) bool {
	for _, pool := range s.Pools {
		if pool.Blocked == "" && lacksFloor(s, pool, nil) > 0 {
			return true
		}
	}
	return false
}

// lacksFloor returns by how many nodes a pool is below its floor, with these launches counted.
func lacksFloor(s *cluster.Snapshot, pool *cluster.Pool, launches []plan.Launch) int {
	if pool.MinNodes <= 0 || pool.Static {
		return 0
	}
	lacks := pool.MinNodes
	for _, node := range s.Nodes {
		if node.Claim != "" && node.Pool == pool.Name && !node.Deleting {
			lacks--
		}
	}
	for _, l := range launches {
		if l.Pool == pool.Name {
			lacks--
		}
	}
	return int(max(0, lacks))
}

// WhyFloor returns by how many nodes a pool is below its floor, and why it does not launch them all; the zero value
// when it does.
func WhyFloor(s *cluster.Snapshot, pool *cluster.Pool) (lacks int, step plan.Step) {
	lacks = lacksFloor(s, pool, nil)
	launches := pack.Fill(s, pool, lacks)
	if len(launches) == lacks {
		return lacks, plan.Step{}
	}
	if pool.Blocked != "" {
		return lacks, plan.Step{Cause: cmp.Or(pool.BlockedBy, cause.PoolNotReady), Detail: pool.Blocked}
	}
	with, _ := withLaunches(s, launches)
	after, ceiling := with.Pool(pool.Name), with.Ceiling()
	switch exceeded, ok := after.Limits.CheckNodes(after.Used.Nodes); {
	case ceiling.Left() == 0:
		return lacks, plan.Step{Cause: pack.CeilingCode(ceiling), Detail: ceiling.Text()}
	case !ok && exceeded.Hard:
		return lacks, plan.Step{Cause: cause.HardLimitNodes, Detail: exceeded.Text(s.Names)}
	case !ok:
		return lacks, plan.Step{Cause: cause.SoftLimitNodes, Detail: exceeded.Text(s.Names)}
	case after.FreeSlots != nil && len(after.FreeSlots) == 0:
		return lacks,
			plan.Step{Cause: cause.HardLimitNodes,
				Detail: "no slot of its hard limit is free: nodes that go take some"}
	case pack.Braked(s, pool, plan.AskFloor) != "":
		return lacks, plan.Step{Cause: cause.LaunchesInVain, Detail: pack.Braked(s, pool, plan.AskFloor)}
	case after.Limits.HasResources():
		return lacks,
			plan.Step{Cause: cause.ResourceLimit, Detail: "its limits on resources leave no room for a further node"}
	}
	return lacks, plan.Step{Cause: cause.NoCapacity, Detail: "every instance type that it admits is sold out"}
}

// withFloors adds to p, a plan for s, launches for pools that are below their floors.
func withFloors(s *cluster.Snapshot, p plan.Plan) plan.Plan {
	for _, pool := range s.Pools {
		if lacks := lacksFloor(s, pool, p.Launches); lacks > 0 && pool.Blocked == "" {
			with, _ := withLaunches(s, p.Launches)
			p.Launches = append(p.Launches, pack.Fill(with, with.Pool(pool.Name), lacks)...)
		}
	}
	return p
}

// spare returns how many nodes of a pool may go for good: its nodes that are of use and stay, less its floor. It is
// negative below the floor, and math.MaxInt for a pool without a floor.
func (h *hearing) spare(name string) int {
	pool := h.s.Pool(name)
	if pool == nil || pool.MinNodes <= 0 || pool.Static {
		return math.MaxInt
	}
	if spare, known := h.floors[name]; known {
		return spare
	}
	staying, _ := Leaving(h.s, name)
	spare := -int(min(pool.MinNodes, math.MaxInt32))
	for _, node := range staying {
		if useful(node) {
			spare++
		}
	}
	if h.floors == nil {
		h.floors = map[string]int{}
	}
	h.floors[name] = spare
	return spare
}

// useful reports whether pods can run on a node now.
func useful(node *cluster.Node) bool { return node.Initialized && !node.NotReady }

// floorKeeps says that a node is part of its pool's floor; "" when it may go for good. A node that goes already is not
// counted, and may go on unless there are too few without it.
func (h *hearing) floorKeeps(node *cluster.Node) string {
	spare, least := h.spare(node.Pool), 1
	if node.Disrupting || node.Deleting {
		least = 0
	}
	if spare >= least {
		return ""
	}
	return floorText(h.s.Pool(node.Pool))
}

func floorText(pool *cluster.Pool) string {
	return fmt.Sprintf("NodePool %s always keeps %s (annotation joiner.sh/min-nodes), and has no more to spare",
		pool.Name, nodesText(int(min(pool.MinNodes, math.MaxInt32))))
}

// recount adjusts what a pool can spare by the last verdict, which is about this intent.
func (j *judging) recount(i Intent) {
	pool := i.Node.Pool
	if spare := j.spare(pool); spare < math.MaxInt && useful(i.Node) {
		switch act := j.verdicts[len(j.verdicts)-1].Act; {
		case act == Undo && i.Node.Disrupting:
			j.floors[pool] = spare + 1
			j.returning[pool]++
		case act == Mark && !i.Marked:
			j.floors[pool] = spare - 1
		}
	}
}

// holdForReturns lets nodes wait that may go only because others of their pool are taken back in this round. Those
// stay once that is written and seen, and the write may fail (K-54).
func (j *judging) holdForReturns() {
	for n := range j.verdicts {
		v := &j.verdicts[n]
		for _, i := range v.Intents {
			r, returning := ruleOf(i.Reason), j.returning[i.Node.Pool]
			if v.Act == Delete && (r.room == lessMoney || r.kept&byFloor != 0) && returning > 0 &&
				j.spare(i.Node.Pool) < returning {
				v.Act, v.Why = Wait, "its NodePool can spare it when another node of it has been taken back"
			}
		}
	}
}

// belowFloor says why nodes may not go to save money although all their replacements are there: their pool would be
// below its floor, with fewer nodes than before they were marked. A pool that a limit keeps below its floor may still
// get cheaper nodes.
func (j *judging) belowFloor(m *move) string {
	if m.rule().room != lessMoney {
		return ""
	}
	fewer := map[string]int{}
	for _, i := range m.intents {
		fewer[i.Node.Pool]++
	}
	for _, node := range m.replacements {
		fewer[node.Pool]--
	}
	for _, i := range m.intents {
		if text := j.floorKeeps(i.Node); text != "" && fewer[i.Node.Pool] > 0 {
			return text
		}
	}
	return ""
}

// spareOf returns how many more nodes of a pool may go for good, beside what was chosen.
func (d *disruption) spareOf(name string) int {
	spare := d.heard.spare(name)
	if spare == math.MaxInt {
		return spare
	}
	for _, c := range d.chosen {
		spare -= fewer(name, c.nodes, c.launches)
	}
	return spare
}

// fewer returns how many nodes fewer a pool has after a command.
func fewer(pool string, nodes []*cluster.Node, launches []plan.Launch) (n int) {
	for _, node := range nodes {
		if node.Pool == pool {
			n++
		}
	}
	for _, l := range launches {
		if l.Pool == pool {
			n--
		}
	}
	return n
}

// keepsFloors reports whether no pool falls below its floor when these launches replace these nodes.
func (d *disruption) keepsFloors(nodes []*cluster.Node, launches []plan.Launch) bool {
	for _, node := range nodes {
		if fewer(node.Pool, nodes, launches) > max(0, d.spareOf(node.Pool)) {
			return false
		}
	}
	return true
}

// refill plans launches that keep the pool of a renewed group at its floor, once the group is gone and these launches
// are there, as far as limits allow. s is the cluster without the group. What limits leave out is launched once the
// nodes are gone.
func (d *disruption) refill(s *cluster.Snapshot, group []*cluster.Node, launches []plan.Launch) []plan.Launch {
	pool := group[0].Pool // no command is about nodes of two pools
	spare := d.spareOf(pool)
	lacks := min(fewer(pool, group, launches)-max(0, spare), len(group))
	if spare == math.MaxInt || lacks <= 0 {
		return nil
	}
	with, _ := withLaunches(s, launches)
	return pack.Fill(with, with.Pool(pool), lacks)
}
