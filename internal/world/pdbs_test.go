package world

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func testPDB(name string, version int, allowed int32, app string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: meta("shop", name, "uid-of-"+name, version),
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
}

// uncounted makes it a budget whose pods cannot be counted: their controller has no scale, as a DaemonSet has none.
func uncounted(b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	b.Generation, b.Status.ObservedGeneration, b.Status.DisruptionsAllowed = 1, 0, 0
	b.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition,
		Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason}}
	return b
}

// D-02: what holds a node is named, whichever of pod and budget comes first, and ends with its cause.
func TestPodDisruptionBudgetsHoldNodes(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	held := func() string { return s.Snapshot().Nodes[0].Held }
	apply := func(want string, change func()) {
		t.Helper()
		change()
		if got := held(); got != want {
			t.Errorf("held %q, want %q", got, want)
		}
	}
	s.applyNode(testNode("n1", "n1", 1, "x"))
	closed := "pod shop/a is under PodDisruptionBudget web, which allows no disruption now"
	apply("", func() { s.putPDB(testPDB("web", 2, 0, "web"), false) })
	apply(closed, func() { _ = s.Apply(testPod("a", "a", 3, "n1")) })
	apply("", func() { _ = s.Apply(testPDB("web", 4, 1, "web")) })
	apply(closed, func() { _ = s.Apply(testPDB("web", 5, 0, "web")) })
	apply("", func() { _ = s.Apply(testPDB("web", 6, 0, "other")) })
	apply("", func() { _ = s.Apply(testPDB("web", 7, 1, "web")) })
	apply("pod shop/a is under more than one PodDisruptionBudget: too and web",
		func() { _ = s.Apply(testPDB("too", 8, 1, "web")) })
	apply("", func() { s.Remove(testPDB("too", 9, 1, "web")) })
	apply(closed, func() { _ = s.Apply(testPDB("web", 10, 0, "web")) })
	apply("", func() { s.Remove(testPod("a", "a", 11, "n1")) })
}

// D-02: a pod that is not ready may be evicted past its budget where the eviction API lets it: with AlwaysAllow, or
// while as many are healthy as the budget wants. One that is still pending, on a node, may be evicted past any budget.
func TestUnreadyPodsAreHeldAsTheEvictionAPIHoldsThem(t *testing.T) {
	t.Parallel()
	always := policyv1.AlwaysAllow
	alwaysAllow := func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = &always }
	healthy := func(current, desired int32) func(*policyv1.PodDisruptionBudget) {
		return func(b *policyv1.PodDisruptionBudget) {
			b.Status.CurrentHealthy, b.Status.DesiredHealthy = current, desired
		}
	}
	asIs := func(*policyv1.PodDisruptionBudget) {}
	for name, row := range map[string]struct {
		change func(*policyv1.PodDisruptionBudget)
		phase  corev1.PodPhase
		ready  bool
		more   bool // another budget is over the pod
		held   bool
	}{
		"by default":                   {change: asIs, phase: corev1.PodRunning, held: true},
		"always allowed":               {change: alwaysAllow, phase: corev1.PodRunning},
		"always allowed, but ready":    {change: alwaysAllow, phase: corev1.PodRunning, ready: true, held: true},
		"always allowed, but by two":   {change: alwaysAllow, phase: corev1.PodRunning, more: true, held: true},
		"as many healthy as are asked": {change: healthy(2, 2), phase: corev1.PodRunning},
		"too few are healthy":          {change: healthy(1, 2), phase: corev1.PodRunning, held: true},
		"pending":                      {change: asIs, phase: corev1.PodPending},
		"pending, under two budgets":   {change: asIs, phase: corev1.PodPending, more: true},
		"not ready, of unknown phase":  {change: alwaysAllow, phase: corev1.PodUnknown},
		"of a file, without a status":  {change: alwaysAllow, held: true},
	} {
		s := newClock().store()
		s.applyNode(testNode("n1", "n1", 1, "x"))
		pdb := testPDB("web", 2, 0, "web")
		row.change(pdb)
		_ = s.Apply(pdb)
		if row.more {
			_ = s.Apply(testPDB("web2", 3, 1, "web"))
		}
		pod := testPod("a", "a", 4, "n1")
		pod.Status.Phase = row.phase
		_ = s.Apply(pod) // not ready yet
		if row.ready {
			pod = testPod("a", "a", 5, "n1")
			pod.Status.Phase = row.phase
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			_ = s.Apply(pod)
		}
		if held := s.Snapshot().Nodes[0].Held; (held != "") != row.held {
			t.Errorf("%s: held %q, want %t", name, held, row.held)
		}
		pod = testPod("a", "a", 6, "n1")
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		_ = s.Apply(pod)
		if held := s.Snapshot().Nodes[0].Held; held == "" {
			t.Errorf("%s: once it is ready, nothing holds it", name)
		}
	}
}

// D-02: what a drain evicts holds its node, daemons too, and nothing else does: the drain does not wait for it.
func TestOnlyWhatADrainEvictsHoldsItsNode(t *testing.T) {
	t.Parallel()
	daemon := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "logs"}}
	}
	tolerates := func(key string, effect corev1.TaintEffect) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}}
		}
	}
	for name, row := range map[string]struct {
		changes []func(*corev1.Pod)
		held    bool
	}{
		"a daemon": {[]func(*corev1.Pod){daemon}, true},
		"a daemon that tolerates what daemons do": {[]func(*corev1.Pod){daemon,
			tolerates(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)}, true},
		"a daemon that tolerates all":  {[]func(*corev1.Pod){daemon, tolerates("", "")}, false},
		"a daemon that tolerates this": {[]func(*corev1.Pod){daemon, tolerates("karpenter.sh/disrupted", "")}, false},
		"a daemon that tolerates another effect": {[]func(*corev1.Pod){daemon,
			tolerates("karpenter.sh/disrupted", corev1.TaintEffectNoExecute)}, true},
		"another pod that tolerates it": {[]func(*corev1.Pod){tolerates("karpenter.sh/disrupted", "")}, false},
		"a static pod": {[]func(*corev1.Pod){func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		}}, false},
		"a finished pod": {[]func(*corev1.Pod){func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }}, false},
		"a pod that ends": {[]func(*corev1.Pod){daemon, func(p *corev1.Pod) {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}}, false},
	} {
		s := newClock().store()
		s.applyNode(testNode("n1", "n1", 1, "x"))
		_ = s.Apply(testPDB("web", 2, 0, "web"))
		pod := testPod("a", "a", 3, "n1")
		for _, change := range row.changes {
			change(pod)
		}
		_ = s.Apply(pod)
		if held := s.Snapshot().Nodes[0].Held; (held != "") != row.held {
			t.Errorf("%s: held %q, want %t", name, held, row.held)
		}
	}
}

// D-09: planning knows every budget, which pods it is about, and how many of them may leave now. What is not healthy
// has used its part of the budget already: with two of three pods healthy in a roll-out and one wanted, one may leave,
// and not two (churn, seed 503).
func TestPlanningKnowsBudgets(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	budget := func(version int, expected, healthy, desired int32) *policyv1.PodDisruptionBudget {
		b := testPDB("web", version, 1, "web")
		b.Status.ExpectedPods, b.Status.CurrentHealthy, b.Status.DesiredHealthy = expected, healthy, desired
		return b
	}
	bare := budget(5, 0, 2, 0) // pods without a controller are not expected
	bare.Status.DisruptionsAllowed = 0
	for _, step := range []struct {
		do     func()
		count  int
		atOnce int
	}{
		{func() { _ = s.Apply(budget(1, 3, 3, 2)) }, 1, 1},
		{func() { _ = s.Apply(budget(2, 5, 5, 2)) }, 1, 3},
		{func() { _ = s.Apply(budget(3, 3, 2, 1)) }, 1, 1},
		{func() { _ = s.Apply(budget(4, 2, 2, 4)) }, 1, 0},
		{func() { _ = s.Apply(bare) }, 1, 0},
		{func() { _ = s.Apply(uncounted(budget(6, 3, 3, 2))) }, 1, 0},
		{func() { s.Remove(budget(7, 2, 2, 4)) }, 0, 0},
	} {
		step.do()
		guards := s.Snapshot().Guards
		if len(guards) != step.count {
			t.Fatalf("%d budgets, want %d", len(guards), step.count)
		}
		if len(guards) == 1 && (guards[0].AtOnce != step.atOnce || guards[0].Namespace != "shop" ||
			guards[0].Name != "web" || !guards[0].Pods.Matches(map[string]string{"app": "web"})) {
			t.Errorf("the budget is %+v, want one for app=web in shop that lets %d go", guards[0], step.atOnce)
		}
	}
}

// P-42, D-15: a pod of a node that goes is planned for as soon as its node goes, also while its budget lets no pod go:
// others may be on their way. One that can never be evicted is not, whichever of budget, pod and node comes first,
// until that changes.
func TestPodsThatNeverMayLeaveAreNotPlannedFor(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	budget := func(name string, version int, allowed, expected, desired int32) *policyv1.PodDisruptionBudget {
		b := testPDB(name, version, allowed, "web")
		b.Status.ExpectedPods, b.Status.CurrentHealthy, b.Status.DesiredHealthy = expected, expected, desired
		return b
	}
	pending := func(step string, want int) {
		t.Helper()
		if got := len(s.Snapshot().Pending); got != want {
			t.Errorf("%s: %d pods are planned for, want %d", step, got, want)
		}
	}
	_ = s.Apply(budget("web", 1, 0, 1, 2))
	ready := func(version int) *corev1.Pod {
		pod := testPod("a", "a", version, "n1")
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		return pod
	}
	_ = s.Apply(ready(2))
	node := testNode("n1", "n1", 3, "x")
	node.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	_ = s.Apply(node)
	pending("a budget that wants more than there are", 0)
	_ = s.Apply(budget("web", 4, 0, 3, 2))
	pending("one that lets none go now", 1)
	_ = s.Apply(budget("web", 5, 0, 2, 2))
	pending("one that wants all", 0)
	s.Remove(budget("web", 6, 0, 2, 2))
	pending("no budget", 1)
	bare := budget("bare", 7, 0, 0, 0)
	bare.Status.CurrentHealthy = 1
	_ = s.Apply(bare)
	pending("one that does not count its pods: they have no controller", 0)
	_ = s.Apply(budget("bare", 8, 0, 0, 0))
	pending("one that knows of no pod yet", 1)
	_ = s.Apply(uncounted(budget("bare", 9, 0, 0, 0)))
	pending("one that cannot count its pods", 0)
	_ = s.Apply(budget("bare", 10, 0, 3, 2))
	pending("one that can again", 1)
	s.Remove(budget("bare", 11, 0, 3, 2))
	_ = s.Apply(budget("one", 12, 1, 3, 2))
	pending("another budget that lets one go", 1)
	_ = s.Apply(budget("two", 13, 1, 3, 2))
	pending("two budgets", 0)
	starting := testPod("a", "a", 14, "n1")
	starting.Status.Phase = corev1.PodPending
	_ = s.Apply(starting)
	pending("two budgets over a pod that has not begun", 1)
	_ = s.Apply(ready(15))
	pending("two budgets over one that has", 0)
	claim := testClaim("c1", "c1", 16, "default", "x")
	claim.DeletionTimestamp = node.DeletionTimestamp
	_ = s.Apply(claim)
	pending("a claim", 0)
	claim = claim.DeepCopy()
	claim.ResourceVersion = "17"
	claim.Annotations = map[string]string{
		karpenterv1.NodeClaimTerminationTimestampAnnotationKey: "2026-01-01T00:00:00Z",
	}
	_ = s.Apply(claim)
	pending("a drain with an end", 1)
}

// B-04: a budget that closes or opens is a matter of the nodes with pods that it selects, or selected before: no other
// node is looked at, and what is known to hold other pods stays known.
func TestAClosingBudgetIsAMatterOfItsOwnPods(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	budget := func(namespace string, version int, allowed int32, app string) {
		b := testPDB("b-"+namespace, version, allowed, app)
		b.Namespace = namespace
		_ = s.Apply(b)
	}
	for name, of := range map[string][2]string{
		"a-web": {"a", "web"}, "a-other": {"a", "other"}, "b-web": {"b", "web"},
	} {
		_ = s.Apply(testNode(name, name, 1, name))
		pod := testPod("pod-"+name, "pod-"+name, 1, name)
		pod.Namespace, pod.Labels = of[0], map[string]string{"app": of[1]}
		_ = s.Apply(pod)
	}
	budget("b", 1, 0, "web")
	budget("a", 1, 1, "web")
	held := func(name string) string { return s.nodes[name].value.Held }
	mark := func() { // a look at the node would take it away
		for _, e := range s.nodes {
			e.value.Held = "not looked at"
		}
	}
	for i, step := range []struct {
		allowed int32
		app     string
		looked  map[string]string
	}{
		{0, "web", map[string]string{"a-web": "pod a/pod-a-web is under PodDisruptionBudget b-a, " +
			"which allows no disruption now"}},
		{1, "web", map[string]string{"a-web": ""}},
		{0, "other", map[string]string{"a-web": "", "a-other": "pod a/pod-a-other is under PodDisruptionBudget b-a, " +
			"which allows no disruption now"}},
	} {
		mark()
		budget("a", 2+i, step.allowed, step.app)
		for name := range s.nodes {
			want, looked := step.looked[name]
			if !looked {
				want = "not looked at"
			}
			if got := held(name); got != want {
				t.Errorf("step %d: node %s is held by %q, want %q", i, name, got, want)
			}
		}
		for shape, use := range s.running.shapes["b"] {
			if !use.known {
				t.Errorf("step %d: what holds pods of namespace b is forgotten: %v", i, shape.Labels)
			}
		}
	}
}

// D-02, P-20: whatever budgets, pods and nodes do, what holds nodes and which pods are planned for is what a store
// says that was told only their last states.
func TestHeldNodesAreThoseOfAFreshStore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		s, alive := c.store(), map[string]client.Object{}
		for version := range rapid.IntRange(1, 40).Draw(t, "steps") {
			object := drawGuarded(t, version+1)
			key := fmt.Sprintf("%T %s", object, objectKey(object))
			if alive[key] != nil && rapid.IntRange(0, 4).Draw(t, "end") == 0 {
				s.Remove(alive[key])
				delete(alive, key)
				continue
			}
			if old := alive[key]; old != nil {
				object.SetUID(old.GetUID())
			} else {
				object.SetUID(types.UID(fmt.Sprint(version)))
			}
			_ = s.Apply(object)
			alive[key] = object
		}
		fresh := c.store()
		for _, key := range slices.Sorted(maps.Keys(alive)) {
			_ = fresh.Apply(alive[key])
		}
		if got, want := picture(s.Snapshot()), picture(fresh.Snapshot()); got != want {
			t.Fatalf("step by step\n%s\nfrom scratch\n%s", got, want)
		}
	})
}

// drawGuarded draws a budget, a pod or a node of a small cluster with two namespaces.
func drawGuarded(t *rapid.T, version int) client.Object {
	pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
	namespace, name := pick("namespace", "a", "b"), pick("name", "0", "1", "2")
	switch pick("kind", "budget", "budget", "pod", "pod", "node") {
	case "budget":
		b := testPDB(name, version, rapid.Int32Range(0, 1).Draw(t, "allowed"), pick("selected", "web", "other"))
		b.Namespace = namespace
		b.Status.ExpectedPods, b.Status.CurrentHealthy = 2, 2
		b.Status.DesiredHealthy = rapid.Int32Range(1, 2).Draw(t, "desired")
		return b
	case "pod":
		pod := testPod(name, "", version, pick("on", "", "n0", "n1"))
		pod.Namespace, pod.Labels = namespace, map[string]string{"app": pick("app", "web", "other")}
		pod.Status.Phase = corev1.PodPhase(pick("phase", "Pending", "Running", "Running", "Succeeded"))
		if pick("ready", "yes", "no") == "yes" {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		return pod
	}
	node := testNode(pick("node", "n0", "n1"), "", version, "")
	if pick("leaves", "yes", "no") == "yes" {
		node.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	return node
}
