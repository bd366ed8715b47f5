package engine

import (
	"cmp"
	"fmt"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// A removal has two halves. First a method chooses nodes; whoever carries out its plan marks them and launches their
// replacements. From then on, each round asks [Judge] what becomes of the marks. It uses the table by which they were
// chosen, on the newest snapshot (D-09, D-10).

// Intent is a node that is marked to go, or that somebody asks about.
type Intent struct {
	Node   *cluster.Node
	Reason plan.DisruptionReason // "" where a taint is all there is
	// Marked is set when the intent stands on the claim; without it the question is whether it may be written.
	Marked bool
	// Tainted is set when it stands on the node too, or when there is no node.
	Tainted bool
	// Since is when it was written, in Unix seconds; 0 where nobody knows.
	Since int64
	// Gone is set when the claim has been deleted, and the snapshot does not show that yet. The node uses up its
	// budget, whatever is decided about it.
	Gone bool
}

// Docket is what Judge decides about, with the facts that are not in the snapshot.
type Docket struct {
	Intents []Intent
	// Paused says why no removal goes that budgets bound; "" when they may (D-14).
	Paused string
	// Unlisted are pools of the snapshot that the API server does not list as ours.
	Unlisted map[string]bool
	// Counts are the claims of pools that have too many nodes; intents of a pool without a count wait.
	Counts map[string]Count
	// Recovered says, by claim, why a node that is marked as unhealthy needs no repair any more.
	Recovered map[string]string
}

// Act is what has to be done about intents.
type Act string

// What is done. Keep is about nodes that are not marked, Mark about both, the others about marked ones.
const (
	Keep   Act = "keep"   // nothing: the node stays
	Mark   Act = "mark"   // write the intent, or what is lacking of it
	Wait   Act = "wait"   // nothing yet
	Narrow Act = "narrow" // let what came replace Part only, and take the other intents back
	Delete Act = "delete" // delete the claims
	Undo   Act = "undo"   // take the intents back
)

// Ground is the kind of reason for which an intent is taken back: a closed set (K-16).
type Ground string

// The grounds.
const (
	GroundBudget     Ground = "budget"
	GroundScheduling Ground = "scheduling"
	GroundChurn      Ground = "churn"
)

// Verdict is what becomes of intents that go together or not at all.
type Verdict struct {
	Act     Act
	Intents []Intent
	// Replacements are the nodes that replace them, and that stay themselves.
	Replacements []*cluster.Node
	// Why says in words why the nodes stay or wait, and Ground what kind of reason that is; "" when they go.
	Why    string
	Ground Ground
	// Part is which of the nodes still go, where the command is narrowed.
	Part []*cluster.Node
	// Failed says that a replacement was lost, or came and is of no use.
	Failed bool
}

// ForMoney reports whether reason is to save money.
func ForMoney(reason plan.DisruptionReason) bool {
	r := ruleOf(reason)
	return r != nil && r.room == lessMoney
}

// Renews reports whether nodes that go for reason are replaced at any price, since others have to take their place.
func Renews(reason plan.DisruptionReason) bool {
	r := ruleOf(reason)
	return r != nil && (r.room == anyPrice || r.room == ifAny)
}

// Moves reports whether nodes that go for reason may run pods that need places first.
func Moves(reason plan.DisruptionReason) bool {
	r := ruleOf(reason)
	return r != nil && r.room != noRoom
}

// TooMany reports whether reason is that a pool has too many nodes: judging that needs a [Count].
func TooMany(reason plan.DisruptionReason) bool {
	r := ruleOf(reason)
	return r != nil && r.budget == ifGentle
}

// judging is one call of Judge.
type judging struct {
	*hearing
	terms  Terms
	docket Docket
	// used counts, by pool, the nodes that use up its budget, with the intents that were allowed so far.
	used      map[string]int
	broken    map[string]int // see [broken]
	returning map[string]int // by pool with a floor: nodes of use that these verdicts take back
	verdicts  []Verdict
	leaving   []*cluster.Node // deleted by these verdicts: their pods need places, too
	holding   []*cluster.Node // of moves that hold, and go now or later
	// coming are the reasons of moves that hold and wait for their replacements.
	coming map[plan.DisruptionReason]bool
	alone  []unplaced // moves that do not hold alone, and are judged last
	// safe are moves that may all be deleted in this round as far as room goes. It is dropped as soon as something
	// else is deleted beside them.
	safe  map[*move]bool
	first *disruption // see begun
}

// Judge returns verdicts on intents: first on nodes that go each for itself, in the order of the docket, then on nodes
// that are replaced together. Verdicts do not contradict each other: no two of them use the same room or the same
// budget.
func Judge(s *cluster.Snapshot, terms Terms, docket Docket) []Verdict {
	j := &judging{hearing: hear(s, terms.Now), terms: terms, docket: docket, used: usedBeside(s, docket.Intents),
		broken: broken(s), returning: map[string]int{}, coming: map[plan.DisruptionReason]bool{}}
	surpluses := map[string]*surplus{}
	var moves []Intent
	for _, i := range docket.Intents {
		switch {
		case i.Marked && Moves(i.Reason):
			moves = append(moves, i)
		case i.Marked && TooMany(i.Reason):
			pool := i.Node.Pool
			if count, known := docket.Counts[pool]; known && surpluses[pool] == nil {
				surpluses[pool] = count.surplus(s, pool)
			}
			j.trimmed(i, surpluses[pool])
		default:
			j.single(i)
		}
	}
	list := movesOf(s, moves)
	j.safe = j.safeOf(list)
	for _, m := range list {
		j.moved(m)
	}
	j.safe = nil
	j.movedLast()
	j.holdForReturns()
	return j.verdicts
}

// usedBeside counts, by pool, the nodes that use up its budget whatever becomes of these intents.
func usedBeside(s *cluster.Snapshot, intents []Intent) map[string]int {
	used := Taken(s)
	for _, i := range intents {
		if i.Marked && !i.Gone && usesBudget(i.Node) && i.Node.Disrupting && !i.Node.Deleting {
			used[i.Node.Pool]--
		}
	}
	return used
}

// say adds a verdict about one intent.
func (j *judging) say(i Intent, act Act, ground Ground, why string) {
	j.verdicts = append(j.verdicts, Verdict{Act: act, Intents: []Intent{i}, Ground: ground, Why: why})
}

// beyond says why the budgets of a pool let no further node go for a reason, beside those used; "" when they do.
func (j *judging) beyond(pool string, reason plan.DisruptionReason, used int) string {
	if reason == plan.Unhealthy {
		used -= j.broken[pool]
	}
	found, _ := WhyBudget(pool, Allowed(j.terms.Budgets[pool], reason), used, reason)
	return found.Text
}

// single judges a node that goes for itself and is not replaced.
func (j *judging) single(i Intent) {
	r, pool, stays := ruleOf(i.Reason), i.Node.Pool, Undo
	if !i.Marked {
		stays = Keep
	}
	defer j.recount(i)
	if j.docket.Paused != "" && pool != "" { // budgets bound nothing that belongs to no pool
		j.say(i, stays, GroundBudget, j.docket.Paused)
		return
	}
	if why := j.objectionTo(r, i); why != "" {
		j.say(i, stays, GroundChurn, why)
		return
	}
	bound, _ := r.takes(i.Node, false)
	why := j.beyond(pool, bound, j.used[pool])
	switch {
	case !i.Marked && r.budget == ownLater: // nothing runs on it, so it can wait for the budget once it is marked
		why = ""
	case why != "" && r.budget == ownLater:
		stays = Wait
	}
	if why != "" {
		j.say(i, stays, GroundBudget, why)
		return
	}
	j.used[pool]++
	if i.Marked && i.Tainted {
		j.say(i, Delete, "", "")
	} else {
		j.say(i, Mark, "", "")
	}
}

// objectionTo says why an intent does not hold, apart from room and budgets; "" when it does.
func (j *judging) objectionTo(r *rule, i Intent) string {
	switch {
	case i.Reason == "":
		return "there is no reason for its removal; whoever wanted it has given up"
	case r == nil:
		return fmt.Sprintf("the reason %s is none that this controller acts on", i.Reason)
	case !r.poolless && j.docket.Unlisted[i.Node.Pool]:
		return poolGone
	}
	return j.objection(r, i.Node, i.Marked)
}

// trimmed judges a node of a pool that has too many; of is nil where nobody has counted.
func (j *judging) trimmed(i Intent, of *surplus) {
	pool, r := i.Node.Pool, ruleOf(i.Reason)
	if !i.Gone {
		j.used[pool]++
	}
	if of == nil || of.gone(i.Node.Claim) {
		j.say(i, Wait, GroundChurn, "the claims of its NodePool were not counted, or it is not among them any more")
		return
	}
	why, ground := of.stays[i.Node.Claim], GroundChurn
	if !of.claims[i.Node.Claim].Marked {
		why = "the intent was taken back, which the watch has not shown yet"
	}
	if why == "" && of.gentle {
		why = cmp.Or(j.docket.Paused, j.kept(i.Node, r.keepers(i.Node, true)))
		if bound, _ := r.takes(i.Node, true); why == "" {
			why, ground = j.beyond(pool, bound, j.used[pool]-1), GroundBudget
		}
	}
	switch {
	case why != "":
		j.say(i, Undo, ground, why)
	case of.above > 0:
		j.say(i, Wait, GroundChurn,
			"more nodes of its NodePool are leaving than have to: the others are taken back first")
	case !i.Tainted:
		j.say(i, Mark, "", "")
	default:
		j.say(i, Delete, "", "")
	}
}
