package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// This file judges nodes that go although pods run on them (D-09, D-10). Such nodes are marked first, and their
// replacements are launched after that. The new claims name the old ones, and say how many new ones there are. No
// other state is needed, so any process can go on. A node is deleted once all its replacements are there and its pods
// still have a place; otherwise everything is taken back.

// move is marked nodes that go together or not at all, and what replaces them.
type move struct {
	intents      []Intent
	replacements []*cluster.Node
}

func (m *move) nodes() []*cluster.Node {
	var list []*cluster.Node
	for _, i := range m.intents {
		list = append(list, i.Node)
	}
	return list
}

// rule is that of the first node: all have the same reason.
func (m *move) rule() *rule { return ruleOf(m.intents[0].Reason) }

// movesOf joins intents whose nodes are replaced together.
func movesOf(s *cluster.Snapshot, intents []Intent) []*move {
	of := map[string]*move{} // by claim
	var list []*move
	for _, i := range intents {
		m := &move{intents: []Intent{i}}
		of[i.Node.Claim] = m
		list = append(list, m)
	}
	for _, node := range s.Nodes {
		if node.Leaves() {
			continue // it will not be there: as good as none
		}
		var whole *move
		for _, name := range node.Replaces {
			part := of[name]
			switch {
			case part == nil || part == whole:
			case whole == nil:
				whole = part
				whole.replacements = append(whole.replacements, node)
			default:
				whole.intents = append(whole.intents, part.intents...)
				whole.replacements = append(whole.replacements, part.replacements...)
				list = slices.DeleteFunc(list, func(m *move) bool { return m == part })
				for _, i := range part.intents {
					of[i.Node.Claim] = whole
				}
			}
		}
	}
	return list
}

// refusal is why a move does not hold any more; the zero value when it holds.
type refusal struct {
	why    string
	ground Ground
	alone  bool // it may hold beside others that go, or once their replacements are there
}

// unplaced is a move that does not hold alone.
type unplaced struct {
	*move
	no refusal
}

// moved judges one move. One that does not hold alone is judged last.
func (j *judging) moved(m *move) {
	no := j.objectionToMove(m)
	if j.docket.Paused != "" {
		no = refusal{why: j.docket.Paused, ground: GroundBudget}
	}
	if no.why == "" && m.rule().room != ifAny {
		var part []*cluster.Node
		if no, part = j.wanting(m); len(part) > 0 {
			j.narrowed(m, no, part)
			return
		}
	}
	switch {
	case no.alone:
		j.alone = append(j.alone, unplaced{m, no})
	case no.why != "":
		j.undo(m, no)
	default:
		j.count(m)
		j.holding = append(j.holding, m.nodes()...)
		if m.waits() {
			j.coming[m.rule().reason] = true
		}
		j.goesOn(m)
	}
}

// movedLast judges moves that do not hold alone. Moves are planned together, and pods on the nodes of one may be in
// the way of another: for a spread constraint a zone counts as long as any of its nodes is there. So a move waits for
// those that hold, if its pods have places once their nodes are gone. It also waits for the replacements of other
// nodes, where its pods may have their places. What holds only together goes together.
func (j *judging) movedLast() {
	var moves []unplaced
	all := slices.Clone(j.leaving)
	for _, m := range j.alone {
		if no := j.objectionToMove(m.move); no.why != "" { // the others have left less of the budget
			j.undo(m.move, no)
			continue
		}
		j.count(m.move)
		moves, all = append(moves, m), append(all, m.nodes()...)
	}
	apart := func(m unplaced) bool { return !m.tainted() || j.belowFloor(m.move) != "" || !j.fits(m.move, all) }
	together := len(moves) > 1 && !slices.ContainsFunc(moves, apart)
	for _, m := range moves {
		switch {
		case together:
			j.give(m.move, Delete, "")
		case j.coming[m.rule().reason]:
			j.putOff(m.move, "what replaces other nodes is on its way, and it may go once that is there")
		case len(j.holding) > 0 && j.belowFloor(m.move) == "" &&
			j.fits(m.move, append(slices.Clone(j.holding), m.nodes()...)):
			j.putOff(m.move, "its pods have a place once other nodes that go are gone")
		default:
			j.undo(m.move, m.no)
		}
	}
}

// putOff lets a move wait, once it is marked in full.
func (j *judging) putOff(m *move, why string) {
	if !m.tainted() {
		j.give(m, Mark, "")
		return
	}
	j.give(m, Wait, why)
}

// verdictOn returns a verdict on a move, still without its outcome.
func (j *judging) verdictOn(m *move) Verdict {
	lost, _ := m.lost()
	return Verdict{Intents: m.intents, Replacements: m.replacements, Failed: lost > 0 || m.late(j.now) != ""}
}

// give adds the verdict on a move that goes on, now or later.
func (j *judging) give(m *move, act Act, why string) {
	v := j.verdictOn(m)
	v.Act, v.Why = act, why
	j.verdicts = append(j.verdicts, v)
}

// count adds the nodes of a move to the used budgets.
func (j *judging) count(m *move) {
	for _, i := range m.intents {
		if !i.Gone {
			j.used[i.Node.Pool]++
		}
	}
}

// undo takes a move back.
func (j *judging) undo(m *move, no refusal) {
	v := j.verdictOn(m)
	v.Act, v.Why, v.Ground = Undo, no.why, no.ground
	j.verdicts = append(j.verdicts, v)
	for _, i := range m.intents {
		j.recount(i)
	}
}

// tainted reports whether all of the nodes are marked in full.
func (m *move) tainted() bool {
	return !slices.ContainsFunc(m.intents, func(i Intent) bool { return !i.Tainted })
}

// wanting says what is wrong with the replacements of a move, and which part of its nodes may go for those that came.
func (j *judging) wanting(m *move) (no refusal, part []*cluster.Node) {
	lost, of := m.lost()
	late := m.late(j.now)
	switch {
	case lost > 0:
		no = refusal{why: fmt.Sprintf("%d of %d replacements failed", lost, of), ground: GroundChurn}
		if part, known := j.part(m); len(part) > 0 || known {
			return no, part
		}
		no = refusal{} // it waits
	case late != "":
		return refusal{ground: GroundChurn,
			why: fmt.Sprintf("its replacement %s joined and is not ready after %s", late, settlesWithin)}, nil
	}
	if m.waits() {
		return no, nil
	}
	if no = j.misfit(m); no.why == "" {
		if why := j.belowFloor(m); why != "" {
			no = refusal{why: why, ground: GroundChurn, alone: true}
		}
	}
	return no, nil
}

// goesOn says how far a move that holds may go now.
func (j *judging) goesOn(m *move) {
	together, anyway := append(slices.Clone(j.leaving), m.nodes()...), m.rule().room == ifAny
	switch {
	case !m.tainted():
		j.give(m, Mark, "")
	case anyway && m.begins(j.now):
		j.give(m, Wait, "it was marked a moment ago, and what replaces it is to be launched")
	case m.waits() && !(anyway && m.inVain(j.now)):
		j.give(m, Wait, "what replaces it is on its way")
	case !anyway && len(j.leaving) > 0 && !j.s.Pool(m.intents[0].Node.Pool).Static && !j.fits(m, together):
		j.give(m, Wait, "its pods and those of other nodes that go have no place together")
	default:
		if j.give(m, Delete, ""); !j.safe[m] {
			j.safe = nil // nobody has asked about the others beside this one
		}
		j.leaving = together
	}
}

// narrowed lets a part of a move go on for the replacements that came.
func (j *judging) narrowed(m *move, no refusal, part []*cluster.Node) {
	v := j.verdictOn(m)
	for _, node := range part {
		j.used[node.Pool]++
	}
	v.Act, v.Part, v.Ground = Narrow, part, no.ground
	v.Why = fmt.Sprintf("%s; of the %d nodes of the command %d go, for what came", no.why, len(v.Intents), len(part))
	j.verdicts = append(j.verdicts, v)
}

// part returns which nodes of a move that lost replacements may still go: none when it is not for money, or when no
// part of it saves enough. known is false while that cannot be told yet.
func (j *judging) part(m *move) (part []*cluster.Node, known bool) {
	if m.late(j.now) != "" || len(m.replacements) == 0 ||
		slices.ContainsFunc(m.intents, func(i Intent) bool { return !ForMoney(i.Reason) }) {
		return nil, true
	}
	return Part(j.s, j.terms, m.nodes(), m.replacements)
}

// objectionToMove says why a move does not hold any more, apart from room and from its replacements.
func (j *judging) objectionToMove(m *move) refusal {
	count := map[string]int{}
	for _, i := range m.intents {
		why := j.docket.Recovered[i.Node.Claim]
		if m.rule().room != ifAny { // who measures the health of that node knows who may keep it as well
			why = j.objectionTo(ruleOf(i.Reason), i)
		}
		if why != "" {
			return refusal{why: "node " + i.Node.ID() + ": " + why, ground: GroundChurn}
		}
		if i.Gone {
			continue
		}
		pool := i.Node.Pool
		if why := j.beyond(pool, i.Reason, j.used[pool]+count[pool]); why != "" {
			return refusal{why: why, ground: GroundBudget}
		}
		count[pool]++
	}
	return refusal{}
}

// settlesWithin is how long a replacement that has joined may take to be initialized, before its move is given up.
// Meanwhile the node that it replaces is of use. The claim itself is given up by the initialization timeout, which is
// longer.
const settlesWithin = 10 * time.Minute

// late names a replacement that joined too long ago and is not initialized, or not ready any more; "" when there is
// none. One that reboots comes back.
func (m *move) late(now int64) string {
	for _, n := range m.replacements {
		if n.Registered && (!n.Initialized || n.NotReady && !n.Rebooting) && n.RegisteredAt != 0 &&
			now-n.RegisteredAt > int64(settlesWithin/time.Second) {
			return n.ID()
		}
	}
	return ""
}

// lost returns how many of the replacements that were launched together are gone, and how many they were.
func (m *move) lost() (lost, of int) {
	for _, replacement := range m.replacements {
		of = max(of, replacement.Together)
	}
	return max(0, of-len(m.replacements)), of
}

// waits reports whether a replacement is still on its way, or reboots.
func (m *move) waits() bool {
	return slices.ContainsFunc(m.replacements, func(n *cluster.Node) bool {
		return !n.Initialized || n.NotReady || n.Rebooting
	})
}

// misfit says why the pods of a move have no place any more. At a limit, waiting pods may have taken the place that
// was launched. Then the pool is above its limit, and one node has to go all the same (L-40). It is the one to be
// replaced: otherwise the roll would begin anew for ever (L-31).
func (j *judging) misfit(m *move) refusal {
	pool := j.s.Pool(m.intents[0].Node.Pool)
	switch {
	case pool.Static:
		return j.misfitStatic(pool, m)
	case j.fits(m, m.nodes()):
		return refusal{}
	case m.rule().room == anyPrice && m.aboveLimits(j.s):
		return refusal{}
	case len(m.replacements) == 0 && m.rule().room == anyPrice && (letsGoFirst(pool) || j.vacates(pool, m)):
		return j.misfitFirst(pool, m)
	case len(m.replacements) == 0:
		return refusal{"its pods have no place elsewhere, and nothing was launched that replaces it", GroundScheduling,
			true}
	}
	return refusal{"its pods have no place elsewhere any more", GroundScheduling, true}
}

// misfitStatic is misfit for a static pool. Its nodes are replaced one for one, whatever pods there are, as long as
// their drains end.
func (j *judging) misfitStatic(pool *cluster.Pool, m *move) refusal {
	for _, i := range m.intents {
		if stuck := j.stuck(i.Node); stuck != "" {
			return refusal{why: stuck, ground: GroundChurn}
		}
	}
	switch {
	case len(m.replacements) > 0:
		return refusal{}
	case !j.staticFirst(pool, m):
		return refusal{why: "nothing was launched that replaces it", ground: GroundChurn}
	case lackingIn(j.s, pool) > Allowed(j.terms.Budgets[pool.Name], m.intents[0].Reason):
		return refusal{why: "its NodePool lacks other nodes, and the disruption budget allows no more",
			ground: GroundBudget}
	}
	return refusal{}
}

// staticFirst reports whether marked nodes of a static pool go before their replacements.
func (j *judging) staticFirst(pool *cluster.Pool, m *move) bool {
	d := j.begun()
	return !slices.ContainsFunc(m.intents, func(i Intent) bool {
		first, _ := d.whyStaticFirst(pool, i.Node)
		return first == ""
	}) && (terminatesFirst(pool) || d.surgesNowhere(pool))
}

// aboveLimits reports whether the replacements have brought a pool above its limits.
func (m *move) aboveLimits(s *cluster.Snapshot) bool {
	return slices.ContainsFunc(m.replacements, func(n *cluster.Node) bool {
		pool := s.Pool(n.Pool)
		return pool != nil && pool.Limits.Above(pool.Used)
	})
}

// fits reports whether the pods on nodes have places. Without any replacement they must find them on existing nodes: a
// process may have ended before it launched anything.
func (j *judging) fits(m *move, nodes []*cluster.Node) bool {
	switch {
	case j.safe[m]:
		return true
	case len(m.replacements) == 0:
		return j.hasRoom(nodes)
	}
	return j.holds(m.intents[0].Reason, nodes)
}

// String returns a verdict as a line for each node, for scripts.
func (v Verdict) String() string {
	var b strings.Builder
	for _, i := range v.Intents {
		act, why := v.Act, v.Why
		switch {
		case act == Narrow && slices.Contains(v.Part, i.Node):
			why = ""
		case act == Narrow:
			act = Undo
		}
		fmt.Fprintf(&b, "%s %s", act, i.Node.Claim)
		if i.Reason != "" {
			fmt.Fprintf(&b, " %s", i.Reason)
		}
		if why != "" {
			fmt.Fprintf(&b, ": %s", why)
		}
		if act == Undo && v.Ground != "" {
			fmt.Fprintf(&b, " (%s)", v.Ground)
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}
