package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

func plan(now, due time.Time, limited bool, pods ...corev1.Pod) drainPlan {
	return planDrain(pods, now, due, limited)
}

func named(names ...string) []string { return names }

// P-40: a pod that does not count says nothing about those after it.
func TestAPodThatStaysDoesNotHideTheOthers(t *testing.T) {
	t.Parallel()
	finished := pod("a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	for name, p := range map[string]drainPlan{
		"finished":     plan(at(0), time.Time{}, false, finished, pod("b")),
		"terminating":  plan(at(0), time.Time{}, false, pod("a", terminating(5)), pod("b")),
		"held":         plan(at(0), time.Time{}, false, pod("a", held), pod("b")),
		"deadline":     plan(at(0), at(60), true, pod("a", grace(60)), pod("b", grace(1))),
		"next tier":    plan(at(0), time.Time{}, false, pod("a", critical), pod("b"), pod("c", daemon)),
		"first places": plan(at(0), time.Time{}, false, pod("z", daemon), pod("b")),
	} {
		if got := namesOf(p.evict); !slices.Equal(got, named("b")) {
			t.Errorf("%s: evicts %v, want b", name, got)
		}
	}
}

// Pods leave in the order of their namespaces and names, so that each step asks for the same ones.
func TestPodsOfATierAreInOrder(t *testing.T) {
	t.Parallel()
	in := func(namespace string) change { return func(p *corev1.Pod) { p.Namespace = namespace } }
	p := plan(at(0), time.Time{}, false, pod("b", in("y")), pod("c", in("x")), pod("a", in("y")))
	if got := namesOf(p.evict); !slices.Equal(got, named("c", "a", "b")) {
		t.Errorf("evicts %v, want x/c, y/a, y/b", got)
	}
}

// P-41: a pod without a grace period of its own has the API server's 30 s; a deadline counts from its first moment.
func TestTheDeadlineOfAPod(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pod     corev1.Pod
		now     int // seconds; the node is due at 60
		removed int64
		again   time.Duration
	}{
		"30 s by default, before":        {pod("p"), 29, 0, time.Second},
		"30 s by default, at its moment": {pod("p"), 30, 30, time.Hour},
		"its own, at its moment":         {pod("p", grace(20)), 40, 20, time.Hour},
		"later, with what is left":       {pod("p", grace(20)), 55, 5, time.Hour},
		"too long, with what is left":    {pod("p", grace(600)), 0, 60, time.Hour},
		"none":                           {pod("p", grace(0)), 60, 1, time.Hour},
		"no longer than its own":         {pod("p", grace(1)), 60, 1, time.Hour},
		"on its way, in time":            {pod("p", grace(600), terminating(60)), 0, 0, time.Hour},
		"on its way, a second late":      {pod("p", grace(600), terminating(61)), 0, 0, time.Hour},
		"on its way, too late":           {pod("p", grace(600), terminating(62)), 0, 60, time.Hour},
	} {
		p := plan(at(c.now), at(60), true, c.pod)
		var removed int64
		if len(p.remove) == 1 {
			removed = p.remove[0].graceSeconds
		}
		if again := p.againAfter(at(c.now), time.Hour); removed != c.removed || again != c.again {
			t.Errorf("%s: removed with %d s, again after %s; want %d s and %s", name, removed, again, c.removed,
				c.again)
		}
		if evicted := len(p.evict) == 1; evicted != (c.again < time.Hour) {
			t.Errorf("%s: evicted is %v; the deadline takes the place of an eviction", name, evicted)
		}
	}
}

// The time that is left is counted in whole seconds, rounded to the nearest.
func TestWhatIsLeftIsRounded(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]int64{1400 * time.Millisecond: 1, 1600 * time.Millisecond: 2,
		100 * time.Millisecond: 1} {
		if p := plan(at(60).Add(-left), at(60), true, pod("p", grace(30))); len(p.remove) != 1 ||
			p.remove[0].graceSeconds != want {
			t.Errorf("%s are left: removed %+v, want %d s", left, p.remove, want)
		}
	}
}

// The first pod's moment decides when to check again; not later than usual, and not in the past.
func TestTheNextDeadlineIsTheFirst(t *testing.T) {
	t.Parallel()
	for _, order := range [][]corev1.Pod{
		{pod("a", grace(20)), pod("b", grace(30)), pod("c", grace(10))}, {pod("a", grace(30)), pod("b", grace(20))},
		{pod("a", grace(10)), pod("b", grace(30))},
	} {
		p := plan(at(0), at(60), true, order...)
		if again := p.againAfter(at(0), time.Hour); again != 30*time.Second {
			t.Errorf("again after %s, want 30s", again)
		}
		if again := p.againAfter(at(0), 2*time.Second); again != 2*time.Second {
			t.Errorf("again after %s, want the usual 2s", again)
		}
		if again := p.againAfter(at(40), time.Hour); again != time.Millisecond {
			t.Errorf("again after %s, want it at once: 1ms", again)
		}
	}
	none := plan(at(0), time.Time{}, false, pod("a"))
	if again := none.againAfter(at(0), 2*time.Second); again != 2*time.Second {
		t.Errorf("without a deadline again after %s, want 2s", again)
	}
}

// A kubelet that does not answer is given a minute beyond the grace period.
func TestWhenAPodCountsAsStuck(t *testing.T) {
	t.Parallel()
	for gone, want := range map[int]bool{-61: false, -60: true, -31: true, 10: true} {
		if got := len(plan(at(0), time.Time{}, false, pod("p", terminating(gone))).left) == 1; got != want {
			t.Errorf("its grace period ended %d s ago: waited for is %v", -gone, got)
		}
	}
}

// P-40: a pod that tolerates our taint would come back, and is not waited for; the API's rules define toleration.
func TestWhoToleratesTheTaint(t *testing.T) {
	t.Parallel()
	key := karpenterv1.DisruptedTaintKey
	for name, c := range map[string]struct {
		tolerations []corev1.Toleration
		want        bool
	}{
		"everything": {[]corev1.Toleration{{Operator: corev1.TolerationOpExists}}, true},
		"everything NoSchedule": {
			[]corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}, true,
		},
		"everything NoExecute": {
			[]corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}, false,
		},
		"the key":                {[]corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists}}, true},
		"the key, equal":         {[]corev1.Toleration{{Key: key, Operator: corev1.TolerationOpEqual}}, true},
		"the key, by default":    {[]corev1.Toleration{{Key: key}}, true},
		"the key, another value": {[]corev1.Toleration{{Key: key, Value: "x"}}, false},
		"the key, equal, value": {[]corev1.Toleration{{Key: key, Operator: corev1.TolerationOpEqual, Value: "x"}},
			false},
		"the key, unknown":   {[]corev1.Toleration{{Key: key, Operator: "Lt"}}, false},
		"another key":        {[]corev1.Toleration{{Key: "x", Operator: corev1.TolerationOpExists}}, false},
		"another key, equal": {[]corev1.Toleration{{Key: "x"}}, false},
		"no key, equal":      {[]corev1.Toleration{{}}, false},
		"after one that is none": {[]corev1.Toleration{{Key: key, Effect: corev1.TaintEffectNoExecute}, {Key: key}},
			true},
		"none": {nil, false},
	} {
		p := pod("p", func(p *corev1.Pod) { p.Spec.Tolerations = c.tolerations })
		if got := len(plan(at(0), time.Time{}, false, p).left) == 0; got != c.want {
			t.Errorf("%s: tolerates is %v, want %v", name, got, c.want)
		}
	}
}

// P-40: Kubernetes' own priorities make a pod critical, by number and by name; a pod of a Deployment is none of a
// DaemonSet.
func TestWhoLeavesLast(t *testing.T) {
	t.Parallel()
	priority := func(n int32) change { return func(p *corev1.Pod) { p.Spec.Priority = &n } }
	class := func(name string) change { return func(p *corev1.Pod) { p.Spec.PriorityClassName = name } }
	replicas := func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r"}} }
	for name, c := range map[string]struct {
		pod  corev1.Pod
		want int
	}{
		"plain":                  {pod("p", replicas), tierPods},
		"a daemon":               {pod("p", daemon), tierDaemons},
		"critical to the system": {pod("p", class("system-cluster-critical")), tierCriticalPods},
		"critical to the node":   {pod("p", class("system-node-critical"), daemon), tierCriticalDaemons},
		"another class":          {pod("p", class("high")), tierPods},
		"the highest of users":   {pod("p", priority(1_000_000_000)), tierPods},
		"just below":             {pod("p", priority(1_999_999_999)), tierPods},
		"the priority itself":    {pod("p", priority(2_000_000_000)), tierCriticalPods},
		"above":                  {pod("p", priority(2_000_001_000), daemon), tierCriticalDaemons},
	} {
		if got := tier(&c.pod); got != c.want {
			t.Errorf("%s: tier %d, want %d", name, got, c.want)
		}
	}
}

// V-15: who is held is said, with the time where there is one. At that time the pod is free.
func TestUntilWhenAPodIsHeld(t *testing.T) {
	t.Parallel()
	protected := func(value string) corev1.Pod {
		return pod("p", func(p *corev1.Pod) {
			p.Annotations = map[string]string{karpenterv1.DoNotDisruptAnnotationKey: value}
			started := metav1.NewTime(at(-600))
			p.Status.StartTime = &started
		})
	}
	until := plan(at(0), time.Time{}, false, protected("15m")).held
	if want := "pod default/p asks not to be disrupted until " + at(300).Format(time.RFC3339); len(until) != 1 ||
		until[0] != want {
		t.Errorf("held %q, want %q", until, want)
	}
	if always := plan(at(0), time.Time{}, false, protected("true")).held; len(always) != 1 ||
		strings.Contains(always[0], "until") {
		t.Errorf("held %q, want it without a time", always)
	}
	if p := plan(at(300), time.Time{}, false, protected("15m")); len(p.held) != 0 || len(p.evict) != 1 {
		t.Errorf("at the end of its time held %v, evicted %v", p.held, namesOf(p.evict))
	}
}

// P-41: a node without a claim has no deadline.
func TestANodeWithoutAClaimHasNoDeadline(t *testing.T) {
	t.Parallel()
	if _, limited := deadline(nil); limited {
		t.Error("there is nothing that says when")
	}
}

// What is listed has names for the first five, and a number for the rest.
func TestALongListIsCut(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "a", 5: "a; b; c; d; e", 6: "a; b; c; d; e; and 1 more",
		8: "a; b; c; d; e; and 3 more"} {
		if got := listSome(strings.Split("abcdefgh", "")[:n]); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
