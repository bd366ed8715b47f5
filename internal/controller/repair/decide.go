package repair

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// mostUnhealthy is the share of the nodes of a pool, in percent and rounded up, that may be unhealthy while repairs still
// make sense. When there are more, something else is wrong than single machines.
const mostUnhealthy = 20

// member is a node of the cluster.
type member struct {
	node  *corev1.Node
	claim *karpenterv1.NodeClaim // nil: another program's
	pool  string                 // "" when it has none
	sick  *sickness              // nil: healthy
}

// sickness is the condition by which a node is unhealthy.
type sickness struct {
	policy provider.RepairPolicy
	since  time.Time
}

// due returns when the condition has been tolerated long enough.
func (s *sickness) due() time.Time { return s.since.Add(s.policy.Toleration) }

// String names the condition.
func (s *sickness) String() string {
	return fmt.Sprintf("%s=%s", s.policy.ConditionType, s.policy.ConditionStatus)
}

// sicknessOf returns the condition by which a node is unhealthy, of several the one that is tolerated no longer first;
// nil when it is healthy.
func sicknessOf(node *corev1.Node, policies []provider.RepairPolicy) *sickness {
	var worst *sickness
	for _, policy := range policies {
		for _, c := range node.Status.Conditions {
			if c.Type != policy.ConditionType || c.Status != policy.ConditionStatus {
				continue
			}
			found := &sickness{policy: policy, since: c.LastTransitionTime.Time}
			if worst == nil || found.due().Before(worst.due()) {
				worst = found
			}
		}
	}
	return worst
}

// leaving reports whether the node goes, or is about to.
func (m member) leaving() bool {
	return m.node.DeletionTimestamp != nil || m.claim != nil && (m.claim.DeletionTimestamp != nil ||
		condition.IsTrue(m.claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason))
}

// value is the node of a claim as the engine judges it. What is unhealthy and stays does not use up a budget,
// although it is not ready: removing it takes nothing away. With veto, do-not-disrupt keeps repair away, too (K-49).
func (m member) value(veto bool) *cluster.Node {
	own := func(annotations map[string]string) bool {
		return veto && annotations[karpenterv1.DoNotDisruptAnnotationKey] == "true"
	}
	return &cluster.Node{Name: m.node.Name, Claim: m.claim.Name, Pool: m.pool, Initialized: true, Deleting: m.leaving(),
		DoNotDisrupt: own(m.node.Annotations) || own(m.claim.Annotations)}
}

func (m member) zone() string { return m.node.Labels[corev1.LabelTopologyZone] }

// situation is what a decision is made of.
type situation struct {
	now     time.Time
	members []member // all nodes of the cluster
	budgets map[string][]engine.Budget
	paused  string // why nothing may be disrupted that budgets bound, "" when it may
	// onlyOwnVeto lets do-not-disrupt keep no node from repair: do-not-repair alone does.
	onlyOwnVeto bool
}

// leaveOut takes nodes out of a pool that another program manages: its budgets are none of ours, and nobody is told there.
func (s *situation) leaveOut(pool string) {
	for i := range s.members {
		if s.members[i].pool == pool {
			s.members[i].pool = ""
		}
	}
}

// verdict is what is to be done.
type verdict struct {
	remove  []member // to be removed now
	bound   []member // on their way out already: their drain must not take for ever, since nothing there answers
	blocked []blocked
	next    time.Time // when the next node's toleration ends; zero when no node waits
}

// blocked is an unhealthy node that stays, and why.
type blocked struct {
	member member
	why    string
}

// decide chooses the nodes to be replaced (D-13). It is pure. Here it is measured which nodes are due, and whether
// that is one machine's trouble; who may keep a node, and which budget it takes, is for the engine's table to say.
func decide(s situation) verdict {
	var v verdict
	var due []member
	for _, m := range s.members {
		switch {
		case m.sick == nil || m.claim == nil || !condition.IsTrue(m.claim.Status.Conditions, karpenterv1.ConditionTypeInitialized):
			// healthy, not ours, or the business of the initialization timeout
		case s.now.Before(m.sick.due()):
			if v.next.IsZero() || m.sick.due().Before(v.next) {
				v.next = m.sick.due()
			}
		default:
			due = append(due, m)
		}
	}
	slices.SortFunc(due, func(a, b member) int { // the longest unhealthy goes first
		return cmp.Or(a.sick.since.Compare(b.sick.since), strings.Compare(a.node.Name, b.node.Name))
	})
	picture, values := s.picture()
	staying := s.staying()
	docket, asked := engine.Docket{Paused: s.paused}, map[*cluster.Node]member{}
	for _, m := range due {
		value := values[m.claim]
		why := cmp.Or(engine.Keeps(picture, value, plan.Unhealthy), s.objection(m, staying))
		switch {
		case m.claim.DeletionTimestamp != nil && why == "":
			v.bound = append(v.bound, m)
		case m.leaving():
			// is removed for another reason
		case why != "":
			v.blocked = append(v.blocked, blocked{m, why})
		default:
			asked[value] = m
			docket.Intents = append(docket.Intents, engine.Intent{Node: value, Reason: plan.Unhealthy})
		}
	}
	for _, verdict := range engine.Judge(picture, engine.Terms{Now: s.now.Unix(), Budgets: s.budgets}, docket) {
		if m := asked[verdict.Intents[0].Node]; verdict.Act == engine.Delete {
			v.remove = append(v.remove, m)
		} else {
			v.blocked = append(v.blocked, blocked{m, verdict.Why})
		}
	}
	return v
}

// picture is what the engine has to know of the nodes that have claims, and which of them is which.
func (s situation) picture() (*cluster.Snapshot, map[*karpenterv1.NodeClaim]*cluster.Node) {
	var parts cluster.Snapshot
	values := map[*karpenterv1.NodeClaim]*cluster.Node{}
	for _, m := range s.members {
		if m.claim != nil {
			values[m.claim] = m.value(!s.onlyOwnVeto)
			parts.Nodes = append(parts.Nodes, values[m.claim])
		}
	}
	return cluster.New(parts), values
}

// objection says what speaks against a repair of a node beside what the engine knows, such as that it would not help;
// "" for nothing.
func (s situation) objection(m member, staying map[string]int) string {
	const veto = karpenterv1.DoNotRepairAnnotationKey
	if m.node.Annotations[veto] == "true" || m.claim.Annotations[veto] == "true" {
		return veto + " is set on the node or its NodeClaim"
	}
	scope, of := "the cluster", func(member) bool { return true }
	if m.pool != "" {
		scope, of = "NodePool "+m.pool, func(other member) bool { return other.pool == m.pool }
	}
	if sick, all := s.count(of); sick > (all*mostUnhealthy+99)/100 {
		return fmt.Sprintf("%d of %d nodes of %s are unhealthy, which is more than %d%%: replacing them would not help", sick, all, scope, mostUnhealthy)
	}
	if zone := m.zone(); zone != "" && staying[zone] == 0 {
		if _, all := s.count(func(other member) bool { return other.zone() == zone }); all > 1 {
			return fmt.Sprintf("no node of zone %s is healthy and stays: the zone itself may be in trouble", zone)
		}
	}
	return ""
}

// count returns how many nodes there are, and how many of them are unhealthy.
func (s situation) count(of func(member) bool) (sick, all int) {
	for _, m := range s.members {
		if !of(m) {
			continue
		}
		all++
		if m.sick != nil {
			sick++
		}
	}
	return sick, all
}

// staying counts by zone the nodes that are healthy and stay.
func (s situation) staying() map[string]int {
	n := map[string]int{}
	for _, m := range s.members {
		if m.sick == nil && !m.leaving() {
			n[m.zone()]++
		}
	}
	return n
}
