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
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// Unhealthy is the reason by which budgets bound repairs.
const Unhealthy plan.DisruptionReason = "Unhealthy"

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

// protected reports whether a user wants the node to stay, whatever its state.
func (m member) protected() bool {
	return m.node.Annotations[karpenterv1.DoNotDisruptAnnotationKey] == "true" || m.claim.Annotations[karpenterv1.DoNotDisruptAnnotationKey] == "true"
}

func (m member) zone() string { return m.node.Labels[corev1.LabelTopologyZone] }

// situation is what a decision is made of.
type situation struct {
	now     time.Time
	members []member // all nodes of the cluster
	budgets map[string][]engine.Budget
	paused  string // why nothing may be disrupted that budgets bound, "" when it may
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

// decide chooses the nodes to be replaced (D-13). It is pure.
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
	left, staying := s.allowances(), s.staying()
	for _, m := range due {
		why := s.objection(m, staying)
		switch {
		case m.claim.DeletionTimestamp != nil && why == "":
			v.bound = append(v.bound, m)
		case m.leaving():
			// is removed for another reason
		case why != "":
			v.blocked = append(v.blocked, blocked{m, why})
		case m.pool != "" && s.paused != "":
			v.blocked = append(v.blocked, blocked{m, s.paused})
		case left[m.pool] <= 0:
			v.blocked = append(v.blocked, blocked{m, fmt.Sprintf("the disruption budgets of NodePool %s allow no further node for the reason %s", m.pool, Unhealthy)})
		default:
			left[m.pool]--
			v.remove = append(v.remove, m)
		}
	}
	return v
}

// objection says why a node must not be repaired, whatever the budgets; "" when nothing speaks against it.
func (s situation) objection(m member, staying map[string]int) string {
	if m.protected() {
		return karpenterv1.DoNotDisruptAnnotationKey + " is set on the node or its NodeClaim"
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

// allowances returns how many more nodes the budgets of each pool let go; without budgets it is all of them. Nodes on
// their way out count; unhealthy ones that stay do not, although they are not ready: removing them takes nothing away.
func (s situation) allowances() map[string]int {
	left := map[string]int{}
	for _, m := range s.members {
		if _, known := left[m.pool]; !known {
			left[m.pool] = engine.Allowed(s.budgets[m.pool], Unhealthy)
		}
		if m.leaving() {
			left[m.pool]--
		}
	}
	return left
}
