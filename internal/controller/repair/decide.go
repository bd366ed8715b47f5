package repair

import (
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// member is a node of the cluster.
type member struct {
	node     *corev1.Node
	claim    *karpenterv1.NodeClaim // nil: another program's
	pool     string                 // "" when it has none
	policies []engine.RepairPolicy
	reboots  bool // its provider can reboot machines
}

// policiesOf converts a provider's policies for the engine. Invalid patterns were refused at the start.
func policiesOf(list []provider.RepairPolicy) (policies []engine.RepairPolicy) {
	for _, p := range list {
		policy := engine.RepairPolicy{Condition: string(p.ConditionType), Status: string(p.ConditionStatus),
			Tolerated: seconds(p.Toleration), Priority: p.Priority, Reboot: p.Reboot}
		if p.Reason != "" {
			pattern, err := regexp.Compile(p.Reason)
			if err != nil {
				continue
			}
			policy.Reason = pattern
		}
		if p.TerminationGracePeriod != nil {
			policy.Bounded, policy.Drain = true, seconds(*p.TerminationGracePeriod)
		}
		policies = append(policies, policy)
	}
	return policies
}

// seconds rounds up, so that no toleration gets shorter.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// patient returns what the engine needs to know of a node. With veto, do-not-disrupt prevents repair too (K-49). An
// unhealthy node that stays uses up no budget, although it is not ready: removing it takes nothing away.
func (m member) patient(now time.Time, veto bool) engine.Patient {
	p := engine.Patient{Policies: m.policies, Zone: m.node.Labels[corev1.LabelTopologyZone],
		Node: &cluster.Node{Name: m.node.Name, Pool: m.pool, Deleting: m.node.DeletionTimestamp != nil}}
	for _, c := range m.node.Status.Conditions {
		p.Conditions = append(p.Conditions, engine.NodeCondition{Type: string(c.Type), Status: string(c.Status),
			Reason: c.Reason, Since: sinceWhen(c, now).Unix()})
	}
	if m.claim == nil {
		return p
	}
	says := func(key string) bool { return m.node.Annotations[key] == "true" || m.claim.Annotations[key] == "true" }
	conditions, reboot := m.claim.Status.Conditions, rebootOf(m.claim)
	p.Ending = m.claim.DeletionTimestamp != nil
	p.Decided = reboot.decided && !p.Ending
	p.Vetoed = says(karpenterv1.DoNotRepairAnnotationKey)
	p.Reboots, p.RebootedAt = len(rebootsSince(m.claim, now.Add(-history))), reboot.ended(now)
	p.NoReboot = !m.reboots || reboot.failed(now)
	p.Node.Claim = m.claim.Name
	p.Node.Initialized = condition.IsTrue(conditions, karpenterv1.ConditionTypeInitialized)
	p.Node.Deleting = p.Node.Deleting || p.Ending
	p.Node.Disrupting = reboot.on || goes(m.claim)
	p.Node.DoNotDisrupt = veto && says(karpenterv1.DoNotDisruptAnnotationKey)
	return p
}

// sinceWhen returns since when a node is known to have a condition. Its times are optional fields. Without a time of
// transition it has had the condition at least since the last heartbeat. Without any time it counts as having it since
// now: so it is unhealthy, but its toleration does not end before somebody says since when.
func sinceWhen(c corev1.NodeCondition, now time.Time) time.Time {
	switch {
	case !c.LastTransitionTime.IsZero():
		return c.LastTransitionTime.Time
	case !c.LastHeartbeatTime.IsZero():
		return c.LastHeartbeatTime.Time
	}
	return now
}

// goes reports whether a claim was chosen to go. A replacement that nobody needs any more does not count: it is empty,
// and may wait for the budget behind the very node that is to be repaired.
func goes(claim *karpenterv1.NodeClaim) bool {
	chosen, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
	return chosen.Status == metav1.ConditionTrue && chosen.Reason != string(plan.ReplacementAbandoned)
}

// situation is the input of a decision.
type situation struct {
	now     time.Time
	members []member // all nodes of the cluster
	budgets map[string][]engine.Budget
	uids    map[string]types.UID // of the pools: kubectl describe finds events by it
	paused  string               // why disruption under budgets is paused, "" if it is not
	// onlyOwnVeto means that only do-not-repair prevents repair, not do-not-disrupt.
	onlyOwnVeto bool
}

// leaveOut removes nodes from a pool that another program manages. Its budgets do not apply here, and it gets no
// events.
func (s *situation) leaveOut(pool string) {
	for i := range s.members {
		if s.members[i].pool == pool {
			s.members[i].pool = ""
		}
	}
}

// treated is an unhealthy node with its finding and, if it stays, why.
type treated struct {
	member
	finding engine.Finding
	why     string
}

// verdict is what to do.
type verdict struct {
	remove, reboot []treated // now
	withdraw       []treated // reboots that were decided
	// being removed already: their drain needs an end, since nothing there answers
	bound   []treated
	blocked []treated // they stay
	later   bool      // more nodes follow in another round
	next    time.Time // when the next node's toleration ends; zero when no node waits
}

// decide asks the engine which nodes are repaired, and how (D-13). It is pure.
func decide(s situation) (v verdict) {
	patients := make([]engine.Patient, len(s.members))
	for i, m := range s.members {
		patients[i] = m.patient(s.now, !s.onlyOwnVeto)
	}
	list, next := engine.Repair(engine.Terms{Now: s.now.Unix(), Budgets: s.budgets}, patients, s.paused)
	if next != 0 {
		v.next = time.Unix(next, 0)
	}
	for _, t := range list {
		x := treated{s.members[t.Patient], t.Finding, t.Why}
		x.claim = x.claim.DeepCopy() // patches write the API server's answer into it
		switch t.Cure {
		case engine.CureReplace:
			v.remove = append(v.remove, x)
		case engine.CureReboot:
			v.reboot = append(v.reboot, x)
		case engine.CureWithdraw:
			v.withdraw = append(v.withdraw, x)
		case engine.CureBound:
			v.bound = append(v.bound, x)
		case engine.CureNone:
			v.blocked = append(v.blocked, x)
		case engine.CureLater:
			v.later = true
		}
	}
	return v
}
