package repair

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

func now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func policies() []provider.RepairPolicy {
	return []provider.RepairPolicy{
		{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionFalse, Toleration: 10 * time.Minute},
		{ConditionType: "Broken", ConditionStatus: corev1.ConditionTrue, Toleration: time.Minute},
	}
}

// machine is a healthy node of ours in a pool and a zone.
func machine(name, pool, zone string) member {
	return member{
		node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}},
		},
		claim: &karpenterv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: karpenterv1.NodeClaimStatus{
				Conditions: []karpenterv1.Condition{
					{Type: karpenterv1.ConditionTypeInitialized, Status: metav1.ConditionTrue},
				},
			},
		},
		pool: pool, policies: policiesOf(policies()),
	}
}

// broken makes it unhealthy since so long.
func (m member) broken(since time.Duration) member {
	m.node.Status.Conditions = append(m.node.Status.Conditions, corev1.NodeCondition{
		Type: "Broken", Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now().Add(-since)),
	})
	return m
}

// timed changes the times of its last condition.
func (m member) timed(since, heartbeat time.Duration) member {
	last := &m.node.Status.Conditions[len(m.node.Status.Conditions)-1]
	last.LastTransitionTime, last.LastHeartbeatTime = metav1.Time{}, metav1.Time{}
	if since != 0 {
		last.LastTransitionTime = metav1.NewTime(now().Add(-since))
	}
	if heartbeat != 0 {
		last.LastHeartbeatTime = metav1.NewTime(now().Add(-heartbeat))
	}
	return m
}

func (m member) deleted() member {
	m.claim.DeletionTimestamp = &metav1.Time{Time: now()}
	return m
}

// replaced is chosen for disruption, and waits for its replacement.
func (m member) replaced() member {
	m.claim.Status.Conditions = append(m.claim.Status.Conditions,
		karpenterv1.Condition{Type: karpenterv1.ConditionTypeDisruptionReason, Status: metav1.ConditionTrue})
	return m
}

// because gives the reason for which it was chosen.
func (m member) because(reason plan.DisruptionReason) member {
	m.claim.Status.Conditions[len(m.claim.Status.Conditions)-1].Reason = string(reason)
	return m
}

// healthy are n nodes of a pool, in two zones.
func healthy(n int, pool string) (list []member) {
	for i := range n {
		list = append(list, machine(fmt.Sprintf("%s-ok-%d", pool, i), pool, []string{"a", "b"}[i%2]))
	}
	return list
}

func names(list []treated) string {
	var parts []string
	for _, x := range list {
		parts = append(parts, x.node.Name)
	}
	return strings.Join(parts, " ")
}

// broken is a machine that has been broken for as long as it takes.
func broken() member { return machine("x", "p", "a").broken(5 * time.Minute) }

// repairCase is nodes of a cluster, and what repair makes of them.
type repairCase struct {
	members []member
	budgets []engine.Budget // of p
	paused  string
	remove  string
	bound   string
	blocked string // of the first
	next    time.Duration
	own     bool // do-not-repair alone keeps repair away
}

// vetoed are cases in which somebody has said that a node is to be left alone.
func vetoed() map[string]repairCase {
	annotate := func(m member, key, value string, onNode bool) member {
		annotations := map[string]string{key: value}
		if onNode {
			m.node.Annotations = annotations
		} else {
			m.claim.Annotations = annotations
		}
		return m
	}
	protect := func(m member, onNode bool) member {
		return annotate(m, karpenterv1.DoNotDisruptAnnotationKey, "true", onNode)
	}
	const veto = karpenterv1.DoNotRepairAnnotationKey // K-49
	return map[string]repairCase{
		"a protected node": {members: append(healthy(9, "p"), protect(broken(), true)),
			blocked: "do-not-disrupt"},
		"a protected claim": {members: append(healthy(9, "p"), protect(broken(), false)),
			blocked: "do-not-disrupt"},
		"a node that is not to be repaired": {
			members: append(healthy(9, "p"), annotate(broken(), veto, "true", true)), blocked: veto,
		},
		"a claim that is not to be repaired": {
			members: append(healthy(9, "p"), annotate(broken(), veto, "true", false)), blocked: veto,
		},
		"a protected node that counts for nothing": {members: append(healthy(9, "p"), protect(broken(), true)),
			own: true, remove: "x"},
		"a protected claim that counts for nothing": {members: append(healthy(9, "p"), protect(broken(), false)),
			own: true, remove: "x"},
		"its own veto counts all the same": {members: append(healthy(9, "p"),
			annotate(protect(broken(), true), veto, "true", true)), own: true, blocked: veto},
		"a drain of it ends, too": {members: append(healthy(9, "p"),
			protect(broken(), true).deleted()), own: true, bound: "x"},
		"a veto of another value": {
			members: append(healthy(9, "p"), annotate(broken(), veto, "yes", true)), remove: "x",
		},
		"a protected one that is drained is not hurt": {
			members: append(healthy(9, "p"), protect(broken(), true).deleted()),
		},
	}
}

// bounded are the other cases.
func bounded() map[string]repairCase {
	return map[string]repairCase{
		"a node that stays broken": {members: append(healthy(9, "p"), broken()), remove: "x"},
		"one that may still recover": {members: append(healthy(9, "p"),
			machine("x", "p", "a").broken(20*time.Second)), next: 40 * time.Second},
		"nobody says since when": {members: append(healthy(9, "p"), broken().timed(0, 0)), next: time.Minute},
		"one of unknown age is unhealthy all the same": {
			members: append(healthy(7, "p"), broken(), broken().timed(0, 0), broken().timed(0, 0)),
			blocked: "3 of 10 nodes of NodePool p are unhealthy", next: time.Minute,
		},
		"at least since a moment ago": {members: append(healthy(9, "p"), broken().timed(0, 20*time.Second)),
			next: 40 * time.Second},
		"at least since five minutes ago": {members: append(healthy(9, "p"), broken().timed(0, 5*time.Minute)),
			remove: "x"},
		"a heartbeat makes it no younger": {
			members: append(healthy(9, "p"), broken().timed(5*time.Minute, time.Second)), remove: "x",
		},
		"the longest broken first, as budgets allow": {members: append(healthy(9, "p"), broken(),
			machine("y", "p", "b").broken(time.Hour)), budgets: []engine.Budget{{Max: 1}}, remove: "y"},
		"one node of a pool in a round": {
			members: append(healthy(9, "p"), broken(), machine("y", "p", "b").broken(time.Hour),
				machine("z", "", "b").broken(time.Hour)), remove: "y z"},
		"a budget for its reason": {members: append(healthy(9, "p"), broken()),
			budgets: []engine.Budget{{Max: 0, Reasons: []plan.DisruptionReason{plan.Unhealthy}}}, blocked: "budgets"},
		"a budget for other reasons": {members: append(healthy(9, "p"), broken()),
			budgets: []engine.Budget{{Max: 0, Reasons: []plan.DisruptionReason{plan.Drifted}}}, remove: "x"},
		"a node on its way out uses the budget up": {members: append(healthy(9, "p"), broken(),
			machine("y", "p", "b").deleted()), budgets: []engine.Budget{{Max: 1}},
			blocked: "the budgets of NodePool p allow 1 at a time for the reason Unhealthy, and 1 are going or not ready"},
		"one that was chosen to go uses it up, too": {members: append(healthy(9, "p"), broken(),
			machine("y", "p", "b").replaced()), budgets: []engine.Budget{{Max: 1}},
			blocked: "the budgets of NodePool p allow 1 at a time for the reason Unhealthy, and 1 are going or not ready"},
		"a replacement that nobody needs does not": {members: append(healthy(9, "p"), broken(),
			machine("y", "p", "b").replaced().because(plan.ReplacementAbandoned)), budgets: []engine.Budget{{Max: 1}},
			remove: "x"},
		"the pause switch": {members: append(healthy(9, "p"), broken()), paused: "paused by Jo",
			blocked: "paused by Jo"},
		"20 % of the pool": {members: append(healthy(8, "p"), broken(),
			machine("y", "p", "b").broken(time.Hour)), remove: "y"},
		"more than 20 % of the pool": {
			members: append(healthy(7, "p"), broken(), machine("y", "p", "b").broken(time.Hour),
				machine("z", "p", "b").broken(time.Second)),
			blocked: "3 of 10 nodes of NodePool p are unhealthy, which is more than 20%", next: 59 * time.Second,
		},
		"another pool's troubles are its own": {
			members: append(healthy(4, "p"), broken(), machine("y", "q", "b").broken(time.Second),
				machine("z", "q", "b").broken(time.Second)), remove: "x", next: 59 * time.Second,
		},
		"without a pool the whole cluster counts": {
			members: append(healthy(5, "p"), machine("x", "", "a").broken(time.Hour),
				machine("y", "q", "b").broken(time.Second), machine("z", "q", "b").broken(time.Second)),
			blocked: "3 of 8 nodes of the cluster are unhealthy", next: 59 * time.Second,
		},
		"without a pool no budget holds": {
			members: append(healthy(5, "p"), machine("x", "", "a").broken(time.Hour)), paused: "paused by Jo",
			remove: "x",
		},
		"a zone of which nothing healthy stays": {
			members: append(healthy(9, "p"), machine("x", "p", "c").broken(time.Hour),
				machine("y", "q", "c").broken(time.Second)), blocked: "no node of zone c is healthy and stays",
			next: 59 * time.Second,
		},
		"a zone in which only leaving nodes are well": {
			members: append(healthy(9, "p"), machine("x", "p", "c").broken(time.Hour),
				machine("y", "q", "c").deleted()), blocked: "zone c",
		},
		"the only node of its zone": {
			members: append(healthy(9, "p"), machine("x", "p", "c").broken(time.Hour)), remove: "x",
		},
		"one that is drained already: the drain ends": {members: append(healthy(9, "p"), broken().deleted()),
			bound: "x"},
		"one that never was ready is not repaired": {
			members: append(healthy(9, "p"),
				func() member { m := broken(); m.claim.Status.Conditions = nil; return m }()),
		},
		"one on its way out, first, uses it up too": {members: append([]member{machine("y", "p", "b").deleted()},
			append(healthy(9, "p"), broken())...), budgets: []engine.Budget{{Max: 1}}, blocked: "budgets"},
		"nodes without a pool use no budget up": {members: append([]member{machine("n", "", "b").deleted()},
			append(healthy(9, "p"), broken())...), budgets: []engine.Budget{{Max: 1}}, remove: "x"},
		"a pool that is gone has no budgets": {members: append(healthy(9, "gone"),
			machine("x", "gone", "a").broken(time.Hour)), remove: "x"},
		"nodes without a zone are in none": {members: append(healthy(9, "p"),
			machine("x", "p", "").broken(time.Hour), machine("y", "q", "").broken(time.Second)), remove: "x",
			next: 59 * time.Second},
		"of two that may recover the first is awaited": {members: append(healthy(19, "p"),
			machine("x", "p", "a").broken(20*time.Second), machine("y", "p", "a").broken(30*time.Second)),
			next: 30 * time.Second},
		"in whatever order they are": {members: append(healthy(19, "p"),
			machine("x", "p", "a").broken(30*time.Second), machine("y", "p", "a").broken(20*time.Second)),
			next: 30 * time.Second},
		"one whose node was deleted goes by itself": {members: append(healthy(9, "p"),
			func() member { m := broken(); m.node.DeletionTimestamp = &metav1.Time{Time: now()}; return m }())},
		"one that is to be replaced goes by itself": {members: append(healthy(9, "p"), broken().replaced())},
		"one that is to be replaced leaves its zone": {members: append(healthy(9, "p"),
			machine("x", "p", "c").broken(time.Hour), machine("y", "p", "c").replaced()), blocked: "zone c"},
		"another program's node is not ours to repair": {
			members: append(healthy(9, "p"), func() member { m := broken(); m.claim = nil; return m }()),
		},
	}
}

// D-13.
func TestWhatIsRepaired(t *testing.T) {
	t.Parallel()
	cases := bounded()
	maps.Copy(cases, vetoed())
	for name, test := range cases {
		budgets := map[string][]engine.Budget{"p": test.budgets}
		v := decide(situation{now: now(), members: test.members, budgets: budgets, paused: test.paused,
			onlyOwnVeto: test.own})
		if got := names(v.remove); got != test.remove {
			t.Errorf("%s: removes %q, want %q", name, got, test.remove)
		}
		if got := names(v.bound); got != test.bound {
			t.Errorf("%s: bounds the drain of %q, want %q", name, got, test.bound)
		}
		if (len(v.blocked) > 0) != (test.blocked != "") ||
			len(v.blocked) > 0 && !strings.Contains(v.blocked[0].why, test.blocked) {
			t.Errorf("%s: blocked %+v, want %q", name, v.blocked, test.blocked)
		}
		if test.next > 0 && !v.next.Equal(now().Add(test.next)) || test.next == 0 && !v.next.IsZero() {
			t.Errorf("%s: looks again at %v, want after %s", name, v.next, test.next)
		}
	}
}

// Lists are the cache's own, and patches write the API server's answer into a claim.
func TestWhatIsRepairedHasItsOwnClaim(t *testing.T) {
	t.Parallel()
	broken := machine("x", "p", "a").broken(5 * time.Minute)
	v := decide(situation{now: now(), members: append(healthy(9, "p"), broken), budgets: map[string][]engine.Budget{}})
	if len(v.remove) != 1 || v.remove[0].claim == broken.claim {
		t.Errorf("%d nodes are repaired, want one, with a copy of its claim", len(v.remove))
	}
}

// D-13: the share is exact in large pools, too.
func TestAFifthOfALargePoolMayBeUnhealthy(t *testing.T) {
	t.Parallel()
	for sick, removed := range map[int]int{100: 1, 101: 0} {
		members := healthy(500-sick, "p")
		for i := range sick {
			members = append(members, machine(fmt.Sprintf("x-%d", i), "p", "a").broken(time.Hour))
		}
		if v := decide(situation{now: now(), members: members}); len(v.remove) != removed {
			t.Errorf("%d of 500 are unhealthy: %d are removed, want %d", sick, len(v.remove), removed)
		}
	}
}

func TestOfSeveralConditionsTheFirstThatIsDueCounts(t *testing.T) {
	t.Parallel()
	since := func(kind corev1.NodeConditionType, status corev1.ConditionStatus,
		ago time.Duration) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(now().Add(-ago))}
	}
	for name, c := range map[string]struct {
		conditions []corev1.NodeCondition
		want       string
	}{
		"the later one is due first": {[]corev1.NodeCondition{since("Ready", "False", 9*time.Minute), since("Broken",
			"True", 30*time.Second)}, "Broken=True"},
		"in the other order": {[]corev1.NodeCondition{since("Broken", "True", 30*time.Second), since("Ready",
			"False", 9*time.Minute)}, "Broken=True"},
		"the first policy's is due": {[]corev1.NodeCondition{since("Broken", "True", time.Second),
			since("Ready", "False",
				10*time.Minute)}, "Ready=False"},
		"others stand before it": {[]corev1.NodeCondition{since("MemoryPressure", "True", time.Hour), since("Broken",
			"True", time.Second)}, "Broken=True"},
		"it is well": {[]corev1.NodeCondition{since("Ready", "True", time.Hour), since("Broken", "False",
			time.Hour)}, ""},
		"nobody names its condition": {[]corev1.NodeCondition{since("MemoryPressure", "True", time.Hour),
			since("Other",
				"False", time.Hour)}, ""},
	} {
		got := ""
		m := member{node: &corev1.Node{Status: corev1.NodeStatus{Conditions: c.conditions}},
			policies: policiesOf(policies())}
		p := m.patient(now(), true)
		if found := engine.Diagnose(&p, now().Add(time.Hour).Unix()); found != nil {
			got = found.String()
		}
		if got != c.want {
			t.Errorf("%s: sick with %q, want %q", name, got, c.want)
		}
	}
}

// U-10: conditions have the names in metrics that dashboards know.
func TestNamesOfConditionsInMetrics(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Ready": "ready", "MemoryPressure": "memory_pressure", "PIDPressure": "pid_pressure",
		"KWOKUnhealthy": "kwok_unhealthy",
		"NoGPU":         "no_gpu", "GPU": "gpu", "PlanB": "plan_b", "KWOKOk": "kwok_ok", "b": "b", "": "",
	} {
		if got := metrics.Snake(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
