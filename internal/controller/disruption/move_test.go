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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// offer tells the store what may be launched: small at 1 an hour, large at 4.
func (r *rig) offer(t *testing.T) {
	t.Helper()
	offering := func(price resources.Money) []catalog.Offering {
		return []catalog.Offering{{Zone: "a", CapacityType: catalog.OnDemand, Price: price, Available: true}}
	}
	err := r.store.SetCatalog(world.ClassRef{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"},
		catalog.Catalog{Types: []catalog.Type{
			{Name: "small", Capacity: resources.Amounts{"cpu": 2000, "memory": 8 << 30, "pods": 110},
				Offerings: offering(1_000_000)},
			{Name: "large", Capacity: resources.Amounts{"cpu": 8000, "memory": 32 << 30, "pods": 110},
				Offerings: offering(4_000_000)},
		}})
	if err != nil {
		t.Fatal(err)
	}
}

// sized makes a machine of an instance type what its provider and kubelet say that it is.
func sized(name, kind string) (*corev1.Node, *karpenterv1.NodeClaim) {
	n, claim := machine(name)
	room := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("8Gi"),
		"pods": resource.MustParse("110")}
	if kind == "large" {
		room = corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"),
			"pods": resource.MustParse("110")}
	}
	for key, value := range map[string]string{
		corev1.LabelInstanceTypeStable: kind, corev1.LabelTopologyZone: "a",
		karpenterv1.CapacityTypeLabelKey: catalog.OnDemand, corev1.LabelHostname: name,
	} {
		n.Labels[key] = value
		if key != corev1.LabelHostname {
			claim.Labels[key] = value
		}
	}
	n.Status.Allocatable, n.Status.Capacity = room, room
	claim.Status.Allocatable, claim.Status.Capacity = room, room
	return n, claim
}

func podAsking(name, node, cpu string) *corev1.Pod {
	pod := podOn(node)
	pod.Name, pod.UID, pod.Labels = name, types.UID(name), map[string]string{"app": "web"}
	pod.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "rs", Controller: new(true)},
	}
	pod.Spec.Containers = []corev1.Container{
		{Name: "main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)},
		}},
	}
	return pod
}

// clusterOf returns a pool that consolidates nodes in use, with a machine of each type and one pod on each.
func clusterOf(t *testing.T, budget string, machines map[string]string, cpu string) *rig {
	t.Helper()
	pool := newPool(budget)
	pool.Spec.Disruption.ConsolidationPolicy = karpenterv1.ConsolidationPolicyWhenEmptyOrUnderutilized
	pool.Status.Conditions = []karpenterv1.Condition{
		{Type: karpenterv1.ConditionTypeReady, Status: metav1.ConditionTrue},
	}
	objects := []client.Object{pool}
	for name, kind := range machines {
		n, claim := sized(name, kind)
		claim.Finalizers = []string{karpenterv1.TerminationFinalizer}
		objects = append(objects, n, claim, podAsking("on-"+name, name, cpu))
	}
	r := newRig(t, objects...)
	r.offer(t)
	return r
}

// reborn is a new process, which knows what the API server does and what the provider offers.
func (r *rig) reborn(t *testing.T) {
	t.Helper()
	r.restart()
	r.sync(t)
	r.offer(t)
}

// turn is a step of a process that has seen everything.
func (r *rig) turn(t *testing.T) {
	t.Helper()
	r.clock.Advance(2 * time.Second)
	r.sync(t)
	r.reconcile(t)
	r.sync(t)
}

func (r *rig) list(t *testing.T) []karpenterv1.NodeClaim {
	t.Helper()
	var list karpenterv1.NodeClaimList
	if err := r.server.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// replacements returns the claims that say that they replace others.
func (r *rig) replacements(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, c := range r.list(t) {
		if c.Annotations[karpenterv1.ReplacesAnnotationKey] != "" {
			names = append(names, c.Name)
		}
	}
	return names
}

// join makes a claim an initialized node, as its provider and its kubelet do.
func (r *rig) join(t *testing.T, name, kind string) {
	t.Helper()
	var claim karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, &claim); err != nil {
		t.Fatal(err)
	}
	n, like := sized(name, kind)
	for key, value := range like.Labels {
		claim.Labels[key] = value
	}
	if err := r.server.Update(t.Context(), &claim); err != nil {
		t.Fatal(err)
	}
	claim.Status = like.Status
	if err := r.server.Status().Update(t.Context(), &claim); err != nil {
		t.Fatal(err)
	}
	if err := r.server.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) drift(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		var claim karpenterv1.NodeClaim
		if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, &claim); err != nil {
			t.Fatal(err)
		}
		condition.Set(&claim.Status.Conditions, 0, condition.True(karpenterv1.ConditionTypeDrifted, "NodePoolDrifted",
			""), r.clock.Now())
		if err := r.server.Status().Update(t.Context(), &claim); err != nil {
			t.Fatal(err)
		}
	}
	r.sync(t)
}

// D-04, D-10: a node whose pod fits elsewhere is marked, and then deleted; nothing is launched. With and without a new
// process between the two.
func TestAnUnderusedNodeGoes(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		r := clusterOf(t, "100%", map[string]string{"a": "small", "b": "small"}, "500m")
		r.turn(t)
		if marked, deleting := r.state(t); len(marked) != 1 || len(deleting) != 0 || !r.tainted(t, marked[0]) ||
			len(r.list(t)) != 2 {
			t.Fatalf("marked %v, deleting %v: want one marked", marked, deleting)
		}
		if restarts {
			r.reborn(t)
		}
		for range 4 {
			r.turn(t)
		}
		if marked, deleting := r.state(t); len(marked) != 0 || len(deleting) != 1 || len(r.list(t)) != 2 {
			t.Fatalf("restarts %v: marked %v, deleting %v: want one deleted", restarts, marked, deleting)
		}
		said := strings.Join(r.tape.Said(), "\n")
		if !strings.Contains(said,
			"ConsolidationApproved: It goes: 1.000/h before, 0.000/h after; nothing replaces it") ||
			strings.Contains(said, "DisruptionLaunching") {
			t.Errorf("said %s, want its price once", said)
		}
	}
}

// D-10: a replacement is launched after the mark, and the node is deleted only after that is initialized, whichever
// process does it.
func TestAReplacementComesBeforeTheRemoval(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		r := clusterOf(t, "100%", map[string]string{"a": "large"}, "1500m")
		again := func() {
			if restarts {
				r.reborn(t)
			}
			r.turn(t)
		}
		again()
		replacements := r.replacements(t)
		if marked, _ := r.state(t); !slices.Equal(marked, []string{"a"}) || len(replacements) != 1 {
			t.Fatalf("marked %v, replacements %v", marked, replacements)
		}
		for range 3 {
			again()
		}
		if marked, deleting := r.state(t); !slices.Equal(marked, []string{"a"}) || len(deleting) != 0 ||
			len(r.list(t)) != 2 {
			t.Fatalf("restarts %v: marked %v, deleting %v: want it to wait", restarts, marked, deleting)
		}
		r.join(t, replacements[0], "small")
		for range 3 {
			again()
		}
		if marked, deleting := r.state(t); len(marked) != 0 || !slices.Equal(deleting, []string{"a"}) {
			t.Fatalf("restarts %v: marked %v, deleting %v: want it deleted", restarts, marked, deleting)
		}
		// Until its pods have come the replacement is empty, with its quiet time over, but still needed.
		r.clock.Advance(time.Hour)
		again()
		again()
		if marked, deleting := r.state(t); len(marked) != 0 || len(deleting) != 1 {
			t.Fatalf("restarts %v: marked %v, deleting %v: the replacement must stay", restarts, marked, deleting)
		}
	}
}

// D-10: a replacement fails: the marks are removed, other launches are released, and the pool is left alone for a
// while.
func TestAFailedReplacementUndoesItsCommand(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "100%", map[string]string{"a": "large"}, "1500m")
	if err := r.server.Create(t.Context(), podAsking("second", "a", "1500m")); err != nil {
		t.Fatal(err)
	}
	r.turn(t) // the large node becomes two small ones
	replacements := r.replacements(t)
	if marked, _ := r.state(t); len(marked) != 1 || len(replacements) != 2 {
		t.Fatalf("marked %v, replacements %v, the test wants one replaced by two", marked, replacements)
	}
	r.lose(t, replacements[0])
	r.turn(t)
	if marked, deleting := r.state(t); len(marked) != 0 || len(deleting) != 0 || r.tainted(t, "a") {
		t.Fatalf("marked %v, deleting %v: want all taken back", marked, deleting)
	}
	for range 3 {
		r.turn(t)
	}
	if marked, deleting := r.state(t); len(marked) != 0 || !slices.Equal(deleting, replacements[1:]) {
		t.Fatalf("marked %v, deleting %v: want the other replacement removed", marked, deleting)
	}
	r.lose(t, replacements[1])
	r.turn(t)
	r.reborn(t) // a new process keeps to the pause as well
	r.turn(t)
	if marked, _ := r.state(t); len(marked) != 0 {
		t.Fatalf("marked %v: want a pause", marked)
	}
	r.clock.Advance(2 * time.Minute)
	r.turn(t)
	if marked, _ := r.state(t); len(marked) != 1 {
		t.Fatalf("marked %v: want another try after the pause", marked)
	}
}

// D-06: each drifted node waits only for its own replacement, and one's failure does not affect the other.
func TestASlowReplacementHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "1", map[string]string{"a": "small"}, "1500m")
	slow := newPool("1")
	slow.Name, slow.UID = "slow", "slow"
	slow.Status.Conditions = []karpenterv1.Condition{
		{Type: karpenterv1.ConditionTypeReady, Status: metav1.ConditionTrue},
	}
	n, claim := sized("s", "small")
	n.Labels[karpenterv1.NodePoolLabelKey], claim.Labels[karpenterv1.NodePoolLabelKey] = "slow", "slow"
	pod := podAsking("on-s", "s", "1500m")
	pod.Spec.NodeSelector = map[string]string{karpenterv1.NodePoolLabelKey: "slow"}
	for _, object := range []client.Object{slow, n, claim, pod} {
		if err := r.server.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	r.sync(t)
	r.drift(t, "s")
	r.turn(t)
	if marked, _ := r.state(t); !slices.Equal(marked, []string{"s"}) {
		t.Fatalf("marked %v, want the node of the slow pool", marked)
	}
	r.drift(t, "a")
	r.turn(t)
	if marked, _ := r.state(t); !slices.Equal(marked, []string{"a", "s"}) {
		t.Fatalf("marked %v, want that of the other pool as well", marked)
	}
	for _, name := range r.replacements(t) {
		if strings.HasPrefix(name, "default-") {
			r.join(t, name, "small")
		}
	}
	r.turn(t)
	r.turn(t)
	if marked, deleting := r.state(t); !slices.Equal(marked, []string{"s"}) || !slices.Equal(deleting, []string{"a"}) {
		t.Fatalf("marked %v, deleting %v: want a gone and s to wait for its own replacement", marked, deleting)
	}
}

// lose takes a claim away as its finalizer does.
func (r *rig) lose(t *testing.T, name string) {
	t.Helper()
	claim := &karpenterv1.NodeClaim{}
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, claim); err != nil {
		t.Fatal(err)
	}
	claim.Finalizers = nil
	if err := r.server.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	r.store.Remove(claim)
	if claim.DeletionTimestamp == nil {
		if err := r.server.Delete(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
	}
}

// D-10: the last process ended between the mark and the launch: nothing replaces the node, so it stays.
func TestAMarkWithoutAReplacementIsTakenBack(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "1", map[string]string{"a": "large"}, "1500m")
	r.turn(t)
	r.lose(t, r.replacements(t)[0])
	r.reborn(t)
	r.turn(t)
	if marked, deleting := r.state(t); len(marked) != 0 || len(deleting) != 0 || r.tainted(t, "a") {
		t.Fatalf("marked %v, deleting %v: want the mark taken back", marked, deleting)
	}
}

// D-09: a pod appeared meanwhile that must not be disrupted.
func TestAProtectedPodUndoesACommand(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "1", map[string]string{"a": "large"}, "1500m")
	r.turn(t)
	pod := podAsking("precious", "a", "100m")
	pod.Annotations = map[string]string{karpenterv1.DoNotDisruptAnnotationKey: "true"}
	if err := r.server.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	r.turn(t)
	if marked, deleting := r.state(t); len(marked) != 0 || len(deleting) != 0 {
		t.Fatalf("marked %v, deleting %v: want the command taken back", marked, deleting)
	}
}

// D-02: a PDB that allows nothing holds the node, and says so by name; once it allows one, the node goes.
func TestAPodDisruptionBudgetHoldsANode(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "1", map[string]string{"a": "large"}, "1500m")
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "pdb"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		}}
	if err := r.store.Apply(pdb); err != nil {
		t.Fatal(err)
	}
	r.turn(t)
	if marked, _ := r.state(t); len(marked) != 0 {
		t.Fatalf("marked %v, want it held", marked)
	}
	want := "a DisruptionBlocked: PodDisruptionBudget: pod default/on-a is under PodDisruptionBudget web, " +
		"which allows no disruption now. To do: bring its pods to health, raise their number, or allow more " +
		"disruptions in the PodDisruptionBudget. " +
		"By itself: when more of its pods are healthy, if some are not."
	if !slices.Contains(r.tape.Said(), want) {
		t.Errorf("said %q, want %q", r.tape.Said(), want)
	}
	open := pdb.DeepCopy()
	open.Status.DisruptionsAllowed = 1
	if err := r.store.Apply(open); err != nil {
		t.Fatal(err)
	}
	r.clock.Advance(time.Minute)
	r.turn(t)
	if marked, _ := r.state(t); len(marked) != 1 {
		t.Fatalf("marked %v, want it chosen", marked)
	}
}

// D-06, D-08: drifted nodes are replaced one at a time when that is the budget.
func TestDriftKeepsToTheBudget(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "1", map[string]string{"a": "small", "b": "small", "c": "small"}, "1500m")
	r.drift(t, "a", "b", "c")
	for range 4 {
		r.turn(t)
		if marked, _ := r.state(t); len(marked) != 1 || len(r.replacements(t)) != 1 {
			t.Fatalf("marked %v, replacements %v: want one of each", marked, r.replacements(t))
		}
	}
}

// D-03: a pool that gives up empty nodes only does not consolidate nodes in use, but drift replaces them.
func TestAWhenEmptyPoolKeepsNodesInUse(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "100%", map[string]string{"a": "small", "b": "small"}, "500m")
	var pool karpenterv1.NodePool
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, &pool); err != nil {
		t.Fatal(err)
	}
	pool.Spec.Disruption.ConsolidationPolicy = karpenterv1.ConsolidationPolicyWhenEmpty
	if err := r.server.Update(t.Context(), &pool); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r.turn(t)
	}
	if marked, deleting := r.state(t); len(marked)+len(deleting) != 0 {
		t.Fatalf("marked %v, deleting %v", marked, deleting)
	}
}

// L-30, L-34: at its hard limit a pool replaces nothing, and says that this is why.
func TestTheHardLimitStopsReplacements(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"Drifted", "Expired", "Underutilized"} {
		r := clusterOf(t, "1", map[string]string{"a": "large"}, "1500m")
		r.setLimit(t, "1")
		switch reason {
		case "Drifted":
			r.drift(t, "a")
		case "Expired":
			r.expire(t, true, "a")
		}
		r.turn(t)
		if marked, _ := r.state(t); len(marked) != 0 || len(r.list(t)) != 1 {
			t.Fatalf("%s: marked %v", reason, marked)
		}
		if want := "default DisruptionBlocked: No allowed disruptions for disruption reason " + reason +
			" due to node hard limit"; !slices.Contains(r.tape.Said(), want) {
			t.Errorf("said %q, want %q", r.tape.Said(), want)
		}
	}
}

// L-30, L-34: the limit leaves room for one node, but the drifted node needs two replacements. It stays, and the pool
// reports why. With room for both, it goes.
func TestARoomTooSmallForTheReplacementsIsTold(t *testing.T) {
	t.Parallel()
	const want = "default DisruptionBlocked: No allowed disruptions for disruption reason Drifted due to node hard limit"
	for limit, blocked := range map[string]bool{"2": true, "3": false} {
		r := clusterOf(t, "1", map[string]string{"a": "large"}, "4500m")
		if err := r.server.Create(t.Context(), podAsking("second", "a", "4500m")); err != nil {
			t.Fatal(err)
		}
		r.setLimit(t, limit)
		r.drift(t, "a")
		r.turn(t)
		if marked, _ := r.state(t); (len(marked) == 0) != blocked {
			t.Errorf("limit %s: marked %v", limit, marked)
		}
		if slices.Contains(r.tape.Said(), want) != blocked {
			t.Errorf("limit %s: said %q, want %q: %t", limit, r.tape.Said(), want, blocked)
		}
	}
}
