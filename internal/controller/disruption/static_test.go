package disruption_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// staticFleet is a static pool with two small nodes, a pod on the first, and a hard limit when there is one.
func staticFleet(t *testing.T, hard string) *rig {
	t.Helper()
	pool := newPool("1")
	pool.Spec.Replicas = new(int64(2))
	if hard != "" {
		pool.Spec.HardLimits = karpenterv1.Limits{"nodes": resource.MustParse(hard)}
	}
	pool.Status.Conditions = []karpenterv1.Condition{
		{Type: karpenterv1.ConditionTypeReady, Status: metav1.ConditionTrue},
	}
	objects := []client.Object{pool, podAsking("web", "a", "1500m")}
	for _, name := range []string{"a", "b"} {
		n, claim := sized(name, "small")
		claim.Finalizers = []string{karpenterv1.TerminationFinalizer}
		objects = append(objects, n, claim)
	}
	r := newRig(t, objects...)
	r.offer(t)
	return r
}

// D-12: a drifted node of a static pool is replaced one for one, and goes when its replacement is there.
func TestAStaticPoolRollsOneForOne(t *testing.T) {
	t.Parallel()
	r := staticFleet(t, "")
	r.drift(t, "a")
	r.turn(t)
	replacements := r.replacements(t)
	if marked, deleting := r.state(t); !slices.Equal(marked, []string{"a"}) || len(replacements) != 1 ||
		len(deleting) != 0 {
		t.Fatalf("marked %v, replacements %v, deleting %v: want a replacement first", marked, replacements, deleting)
	}
	r.turn(t)
	if marked, _ := r.state(t); !slices.Equal(marked, []string{"a"}) {
		t.Fatalf("marked %v: want it to wait for its replacement", marked)
	}
	r.join(t, replacements[0], "small")
	r.turn(t)
	r.turn(t)
	if marked, deleting := r.state(t); len(marked) != 0 || !slices.Equal(deleting, []string{"a"}) {
		t.Fatalf("marked %v, deleting %v: want only a gone, nothing trimmed", marked, deleting)
	}
}

// D-12: with replicas at the hard limit a node goes first; and while it is going no other does.
func TestAStaticPoolAtItsHardLimitTerminatesFirst(t *testing.T) {
	t.Parallel()
	r := staticFleet(t, "2")
	r.drift(t, "a", "b")
	r.turn(t)
	r.turn(t)
	r.turn(t)
	if marked, deleting := r.state(t); len(marked) != 0 || !slices.Equal(deleting, []string{"b"}) ||
		len(r.list(t)) != 2 {
		t.Fatalf("marked %v, deleting %v: want the empty node gone, and the other one waiting", marked, deleting)
	}
	r.lose(t, "b")
	r.turn(t)
	r.turn(t)
	if marked, deleting := r.state(t); len(marked)+len(deleting) != 0 {
		t.Fatalf("marked %v, deleting %v: want it to wait for the successor", marked, deleting)
	}
	if said := strings.Join(r.tape.Said(), "\n"); strings.Contains(said, "DisruptionCancelled") {
		t.Errorf("said %s", said)
	}
}

// D-12, D-10: a replacement that failed leaves the static pool as it was.
func TestAStaticPoolKeepsANodeWhoseReplacementFailed(t *testing.T) {
	t.Parallel()
	r := staticFleet(t, "")
	r.drift(t, "a")
	r.turn(t)
	r.lose(t, r.replacements(t)[0])
	r.turn(t)
	if marked, deleting := r.state(t); len(marked)+len(deleting) != 0 || len(r.list(t)) != 2 {
		t.Fatalf("marked %v, deleting %v, %d claims: want the node to stay", marked, deleting, len(r.list(t)))
	}
}

// inseparable puts two pods on node a that require each other's node, under a budget that lets only one go at a time.
func (r *rig) inseparable(t *testing.T) *policyv1.PodDisruptionBudget {
	t.Helper()
	tied := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "tied"}}
	beside := corev1.PodAffinityTerm{LabelSelector: tied, TopologyKey: corev1.LabelHostname}
	pdb := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tied", UID: "pdb"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: tied},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, CurrentHealthy: 2, DesiredHealthy: 1},
	}
	objects := []client.Object{pdb}
	for _, name := range []string{"tied-1", "tied-2"} {
		pod := podAsking(name, "a", "100m")
		pod.Labels = tied.MatchLabels
		pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{beside},
		}}
		objects = append(objects, pod)
	}
	for _, object := range objects {
		if err := r.store.Apply(object); err != nil {
			t.Fatal(err)
		}
	}
	return pdb
}

// D-12, D-02: a node of a static pool whose drain would never end stays and reports that. Once the budget lets its
// pods go together, it goes. Found by churn.
func TestAStaticPoolKeepsANodeWhoseDrainWouldNotEnd(t *testing.T) {
	t.Parallel()
	r := staticFleet(t, "2")
	pdb := r.inseparable(t)
	r.drift(t, "a")
	r.turn(t)
	if marked, _ := r.state(t); len(marked) != 0 {
		t.Fatalf("marked %v: want the node to stay", marked)
	}
	const want = "a DisruptionBlocked: PodFitsNowhereElse: PodDisruptionBudget default/tied lets its pods go one " +
		"after another, and pod default/tied-1 would find no place elsewhere"
	if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, want) {
		t.Errorf("said %s, want %s", said, want)
	}
	open := pdb.DeepCopy()
	open.Status.DisruptionsAllowed, open.Status.DesiredHealthy = 2, 0
	if err := r.store.Apply(open); err != nil {
		t.Fatal(err)
	}
	r.clock.Advance(time.Minute)
	r.turn(t)
	if marked, _ := r.state(t); !slices.Equal(marked, []string{"a"}) {
		t.Errorf("marked %v, want a", marked)
	}
}

// D-09: what would block the drain may arise after the node was marked.
func TestAStaticPoolTakesANodeBackWhoseDrainWouldNotEnd(t *testing.T) {
	t.Parallel()
	r := staticFleet(t, "2")
	r.drift(t, "a")
	r.turn(t)
	if marked, _ := r.state(t); !slices.Equal(marked, []string{"a"}) {
		t.Fatalf("marked %v, want a", marked)
	}
	r.inseparable(t)
	r.turn(t)
	if marked, deleting := r.state(t); len(marked)+len(deleting) != 0 {
		t.Errorf("marked %v, deleting %v: want it taken back", marked, deleting)
	}
}
