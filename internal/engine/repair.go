package engine

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// This file decides which unhealthy nodes are repaired, and how (D-13, K-49; ADR 0033). The measured conditions of
// nodes are handed in. Who may keep a node, and which budget it takes, stands in the row Unhealthy of the table.

const (
	// mostUnhealthy is the share of the nodes of a pool, in percent and rounded up, that may be unhealthy while
	// repairs still make sense. If there are more, the trouble is not with single machines.
	mostUnhealthy = 20
	// agingSeconds is how long a node waits for repair until it comes before one whose policy is one step more
	// important. So nothing waits for ever behind what is more important.
	agingSeconds = 30 * 60
	// mostReboots is how often a node is rebooted within a day. What does not help twice does not help.
	mostReboots = 2
)

// RepairPolicy says when a condition of a node means trouble, and what helps.
type RepairPolicy struct {
	Condition, Status string
	// Reason is the pattern of the condition's reason. nil is for all reasons that no other policy's pattern matches,
	// of policies with this condition and status.
	Reason    *regexp.Regexp
	Tolerated int64 // seconds
	Bounded   bool  // the drain ends after Drain seconds; else it is as the claim says
	Drain     int64
	Priority  int // the highest goes first
	Reboot    bool
}

// String names the condition.
func (p *RepairPolicy) String() string { return p.Condition + "=" + p.Status }

// NodeCondition is what somebody says of a node's health.
type NodeCondition struct {
	Type, Status, Reason string
	Since                int64 // Unix seconds
}

// Patient is a node of the cluster, healthy or not, ours or not.
type Patient struct {
	Node       *cluster.Node // Claim, Pool, Initialized, Deleting, Disrupting and DoNotDisrupt count
	Zone       string
	Policies   []RepairPolicy // of its provider
	Conditions []NodeCondition
	// Vetoed is set when an annotation of its own forbids repair, and only repair.
	Vetoed bool
	// Ending is set while its claim is being deleted.
	Ending bool
	// Decided is set while a reboot of it is decided, but not yet requested from the provider.
	Decided bool
	// Reboots is how often it was rebooted in the last day, and RebootedAt when the last reboot ended: toleration
	// starts anew then.
	Reboots    int
	RebootedAt int64
	// NoReboot is set when a reboot cannot help: its provider has none, or the last one failed.
	NoReboot bool
}

// Finding is why a node is unhealthy.
type Finding struct {
	Policy *RepairPolicy
	// Reason and Since are those of the condition, and Due is when it is tolerated no longer.
	Reason     string
	Since, Due int64
	// Reboot is what helps; else the node is replaced.
	Reboot bool
	// Drain bounds the drain, in seconds, if Bounded: the shortest of all policies that are due.
	Bounded bool
	Drain   int64

	score int64
}

// String names the condition.
func (f *Finding) String() string { return f.Policy.String() }

// Cure is what becomes of an unhealthy node.
type Cure string

// The cures. CureBound is for a node that goes already: its drain must not take for ever.
const (
	CureReplace Cure = "replace"
	CureReboot  Cure = "reboot"
	CureBound   Cure = "bound"
	// CureWithdraw takes back a reboot that was decided, but not yet requested from the provider.
	CureWithdraw Cure = "withdraw"
	CureNone     Cure = "keep"
	CureLater    Cure = "wait"
)

// Treatment is what becomes of an unhealthy node that is tolerated no longer.
type Treatment struct {
	Patient int // its place among the patients
	Cure    Cure
	Finding Finding
	Why     string // of a node that stays as it is
}

// Repair returns what becomes of unhealthy nodes in one round: reboots that are taken back, then the others, the most
// urgent first. next is when the next condition is tolerated no longer, in Unix seconds; 0 for none. In each pool at
// most one node is cured: what one repair does is seen before the next one. paused says why nothing goes that budgets
// bound; "" when it may.
func Repair(terms Terms, patients []Patient, paused string) (list []Treatment, next int64) {
	r := &repairing{terms: terms, paused: paused, patients: patients}
	r.count()
	due, next := r.due()
	cured := map[string]bool{}
	list = r.withdrawn()
	for _, t := range due {
		p := &patients[t.Patient]
		switch why := cmp.Or(Keeps(r.picture, p.Node, plan.Unhealthy), r.objection(p)); {
		case p.Ending && why == "":
			t.Cure = CureBound
		case p.Node.Deleting:
			continue
		case p.Node.Disrupting: // that may be taken back, and a reboot may fail
			t.Cure, t.Why = CureLater, "it goes for another reason, or is being rebooted"
		case why != "":
			t.Cure, t.Why = CureNone, why
		case cured[p.Node.Pool]:
			t.Cure, t.Why = CureLater, "another node of its pool comes first"
		default:
			t.Cure, t.Why = r.judged(p.Node, t.Finding.Reboot)
			cured[p.Node.Pool] = t.Cure != CureNone
		}
		list = append(list, t)
	}
	return list, next
}

// withdrawn returns the nodes whose reboot is taken back, since they have recovered or somebody now keeps them.
func (r *repairing) withdrawn() (list []Treatment) {
	for i := range r.patients {
		p := &r.patients[i]
		if !p.Decided {
			continue
		}
		if why := Recovered(p, r.terms.Now); why != "" {
			found := Diagnose(p, r.terms.Now)
			if found == nil {
				found = &Finding{}
			}
			list = append(list, Treatment{Patient: i, Cure: CureWithdraw, Finding: *found, Why: why})
		}
	}
	return list
}

// Recovered says why a node whose repair was decided needs none any more; "" when it still does.
func Recovered(p *Patient, now int64) string {
	switch {
	case Diagnose(p, now) == nil:
		return "it is healthy again"
	case p.Vetoed:
		return vetoed
	}
	return Keeps(cluster.New(cluster.Snapshot{Nodes: []*cluster.Node{p.Node}}), p.Node, plan.Unhealthy)
}

// vetoed is why a node with the annotation stays.
const vetoed = "karpenter.sh/do-not-repair is set on the node or its NodeClaim"

// repairing is one round of Repair.
type repairing struct {
	terms    Terms
	paused   string
	patients []Patient
	picture  *cluster.Snapshot // the nodes that have claims
	// By pool, and of the whole cluster under whole: how many nodes there are, and how many of them are unhealthy.
	all, sick map[string]int
	// By zone: the nodes, and those that are healthy and stay.
	inZone, staying map[string]int
}

// whole stands for the whole cluster where nodes are counted by pool.
const whole = ""

// count makes the snapshot, and counts the healthy and the unhealthy.
func (r *repairing) count() {
	r.all, r.sick, r.inZone, r.staying = map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	var parts cluster.Snapshot
	for i := range r.patients {
		p := &r.patients[i]
		if p.Node.Claim != "" {
			parts.Nodes = append(parts.Nodes, p.Node)
		}
		sick := unhealthy(p)
		for _, scope := range slices.Compact([]string{whole, p.Node.Pool}) {
			r.all[scope]++
			if sick {
				r.sick[scope]++
			}
		}
		r.inZone[p.Zone]++
		if !sick && !p.Node.Deleting && !p.Node.Disrupting {
			r.staying[p.Zone]++
		}
	}
	r.picture = cluster.New(parts)
}

// due returns the nodes of ours whose trouble is tolerated no longer, the most urgent first, and when the next one is.
func (r *repairing) due() (list []Treatment, next int64) {
	ranks := ranksOf(r.patients)
	for i := range r.patients {
		p := &r.patients[i]
		if p.Node.Claim == "" || !p.Node.Initialized { // not ours, or the business of the initialization timeout
			continue
		}
		found, later := diagnose(p, r.terms.Now, ranks)
		switch {
		case found != nil:
			list = append(list, Treatment{Patient: i, Finding: *found})
		case later != 0 && (next == 0 || later < next):
			next = later
		}
	}
	slices.SortFunc(list, func(a, b Treatment) int {
		return cmp.Or(cmp.Compare(b.Finding.score, a.Finding.score),
			strings.Compare(r.patients[a.Patient].Node.Name, r.patients[b.Patient].Node.Name))
	})
	return list, next
}

// objection says what speaks against a repair apart from the table, for example that it would not help; "" for
// nothing.
func (r *repairing) objection(p *Patient) string {
	if p.Vetoed {
		return vetoed
	}
	scope := "the cluster"
	if p.Node.Pool != whole {
		scope = "NodePool " + p.Node.Pool
	}
	if sick, all := r.sick[p.Node.Pool], r.all[p.Node.Pool]; sick > (all*mostUnhealthy+99)/100 {
		return fmt.Sprintf(
			"%d of %d nodes of %s are unhealthy, which is more than %d%%: repairing them would not help",
			sick, all, scope, mostUnhealthy)
	}
	if p.Zone != "" && r.staying[p.Zone] == 0 && r.inZone[p.Zone] > 1 {
		return fmt.Sprintf("no node of zone %s is healthy and stays: the zone itself may be in trouble", p.Zone)
	}
	return ""
}

// judged asks the table about a node. A reboot takes what a removal takes, since its pods have to go.
func (r *repairing) judged(node *cluster.Node, reboot bool) (Cure, string) {
	v := Judge(r.picture, r.terms,
		Docket{Paused: r.paused, Intents: []Intent{{Node: node, Reason: plan.Unhealthy}}})[0]
	switch {
	case v.Act != Mark:
		return CureNone, v.Why
	case reboot:
		return CureReboot, ""
	}
	return CureReplace, ""
}

// matching returns the policies that a condition meets: those whose pattern its reason matches, or else those without
// one.
func matching(policies []RepairPolicy, c NodeCondition) (list []*RepairPolicy) {
	var others []*RepairPolicy
	for i := range policies {
		p := &policies[i]
		switch {
		case p.Condition != c.Type || p.Status != c.Status:
		case p.Reason == nil:
			others = append(others, p)
		case p.Reason.MatchString(c.Reason):
			list = append(list, p)
		}
	}
	if list == nil {
		return others
	}
	return list
}

// unhealthy reports whether a node has a condition that means trouble, tolerated or not.
func unhealthy(p *Patient) bool {
	return slices.ContainsFunc(p.Conditions, func(c NodeCondition) bool { return len(matching(p.Policies, c)) > 0 })
}

// ranksOf numbers the priorities that there are, the lowest first.
func ranksOf(patients []Patient) map[int]int {
	ranks := map[int]int{}
	for i := range patients {
		for _, policy := range patients[i].Policies {
			ranks[policy.Priority] = 0
		}
	}
	for rank, priority := range slices.Sorted(maps.Keys(ranks)) {
		ranks[priority] = rank
	}
	return ranks
}

// Diagnose returns why a node is to be repaired at now, whatever keeps it; nil when it is not.
func Diagnose(p *Patient, now int64) *Finding {
	found, _ := diagnose(p, now, nil)
	return found
}

// diagnose also returns when the next condition that is still tolerated will be due; 0 for never. Of several policies
// that are due, one that replaces comes before one that reboots, then the more important, then the one that has been
// due for longer. ranks are those of the priorities of all policies.
func diagnose(p *Patient, now int64, ranks map[int]int) (found *Finding, next int64) {
	for _, c := range p.Conditions {
		for _, policy := range matching(p.Policies, c) {
			due := max(c.Since, p.RebootedAt) + policy.Tolerated
			if now < due {
				if next == 0 || due < next {
					next = due
				}
				continue
			}
			f := &Finding{Policy: policy, Reason: c.Reason, Since: c.Since, Due: due, Bounded: policy.Bounded,
				Drain: policy.Drain, Reboot: policy.Reboot && !p.NoReboot && p.Reboots < mostReboots}
			f.score = int64(ranks[policy.Priority])*agingSeconds + now - due
			found = worse(found, f)
		}
	}
	return found, next
}

// worse joins two findings about a node: the worse one, with the shortest drain and the greatest urgency of both.
func worse(a, b *Finding) *Finding {
	if a == nil {
		return b
	}
	first, other := a, b
	if moreUrgent(b, a) {
		first, other = b, a
	}
	if other.Bounded && (!first.Bounded || other.Drain < first.Drain) {
		first.Bounded, first.Drain = true, other.Drain
	}
	first.score = max(first.score, other.score)
	return first
}

// moreUrgent reports whether a rather than b decides what is done about a node.
func moreUrgent(a, b *Finding) bool {
	if a.Reboot != b.Reboot {
		return b.Reboot
	}
	return cmp.Or(cmp.Compare(b.Policy.Priority, a.Policy.Priority), cmp.Compare(a.Due, b.Due),
		strings.Compare(a.Policy.Condition, b.Policy.Condition)) < 0
}

// String returns it as a line, for the node of these patients.
func (t Treatment) String(patients []Patient) string {
	text := fmt.Sprintf("%s %s", t.Cure, patients[t.Patient].Node.Name)
	if t.Finding.Policy != nil {
		text += ": " + t.Finding.String()
	}
	if t.Finding.Reason != "" {
		text += " (" + t.Finding.Reason + ")"
	}
	if t.Finding.Bounded && t.Why == "" {
		text += fmt.Sprintf(", drained for at most %d s", t.Finding.Drain)
	}
	if t.Why != "" {
		text += ": " + t.Why
	}
	return text
}
