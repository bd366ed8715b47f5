package node

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

func at(seconds int) time.Time { return time.Unix(1_000_000+int64(seconds), 0).UTC() }

type change func(*corev1.Pod)

func pod(name string, changes ...change) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: metav1.NewTime(at(-600))},
	}
	for _, c := range changes {
		c(&p)
	}
	return p
}

func daemon(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d"}}
}
func critical(p *corev1.Pod) { p.Spec.PriorityClassName = "system-cluster-critical" }
func held(p *corev1.Pod) {
	p.Annotations = map[string]string{karpenterv1.DoNotDisruptAnnotationKey: "true"}
}

func grace(seconds int64) change {
	return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}

func terminating(by int) change {
	return func(p *corev1.Pod) { t := metav1.NewTime(at(by)); p.DeletionTimestamp = &t }
}

func namesOf(pods []*corev1.Pod) []string {
	var names []string
	for _, p := range pods {
		names = append(names, p.Name)
	}
	return names
}

// P-40: first those that others do not rely on, and each tier only when the one before is gone.
func TestPodsLeaveInTiers(t *testing.T) {
	t.Parallel()
	pods := []corev1.Pod{pod("cd", critical, daemon), pod("c", critical), pod("d", daemon), pod("b"), pod("a")}
	for _, want := range [][]string{{"a", "b"}, {"d"}, {"c"}, {"cd"}, nil} {
		got := namesOf(planDrain(pods, at(0), time.Time{}, false).evict)
		if !slices.Equal(got, want) {
			t.Fatalf("of %d pods evicts %v, want %v", len(pods), got, want)
		}
		pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return slices.Contains(want, p.Name) })
	}
}

func TestATierWaitsForItsTerminatingPods(t *testing.T) {
	t.Parallel()
	plan := planDrain([]corev1.Pod{pod("a", terminating(20)), pod("c", critical)}, at(0), time.Time{}, false)
	if len(plan.left) != 2 || len(plan.evict) != 0 {
		t.Fatalf("left %v, evicts %v: want both to be waited for and none evicted", namesOf(plan.left),
			namesOf(plan.evict))
	}
}

func TestSomePodsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]corev1.Pod{
		"finished": pod("p", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		"static": pod("p",
			func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }),
		"tolerates all": pod("p",
			func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }),
		"tolerates the taint": pod("p",
			func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: karpenterv1.DisruptedTaintKey}} }),
		"stuck": pod("p", terminating(-61)),
	} {
		if plan := planDrain([]corev1.Pod{p}, at(0), time.Time{}, false); len(plan.left) != 0 {
			t.Errorf("%s: is waited for", name)
		}
	}
	other := pod("p", func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{
			{Key: karpenterv1.DisruptedTaintKey, Effect: corev1.TaintEffectNoExecute},
			{Key: "x", Operator: corev1.TolerationOpExists},
		}
	})
	if plan := planDrain([]corev1.Pod{other}, at(0), time.Time{}, false); len(plan.evict) != 1 {
		t.Error("a pod that tolerates other taints only must leave")
	}
}

// V-15, D-02: the value may be a duration from the pod's start.
func TestDoNotDisruptHoldsAPod(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"true": true, "15m": true, "5m": false, "false": false,
		"nonsense": false} {
		p := pod("p", func(p *corev1.Pod) {
			p.Annotations = map[string]string{karpenterv1.DoNotDisruptAnnotationKey: value}
			started := metav1.NewTime(at(-600))
			p.Status.StartTime = &started
		})
		plan := planDrain([]corev1.Pod{p}, at(0), time.Time{}, false)
		if held := len(plan.held) == 1; held != want || held == (len(plan.evict) == 1) || len(plan.left) != 1 {
			t.Errorf("value %q: held %v, evicts %v", value, plan.held, namesOf(plan.evict))
		}
	}
}

// P-41: at the deadline neither tiers nor do-not-disrupt hold a pod, and each gets its own grace period before it.
func TestPodsAreDeletedInTimeForTheDeadline(t *testing.T) {
	t.Parallel()
	pods := []corev1.Pod{pod("slow", grace(60), held), pod("quick", grace(10)), pod("endless", grace(3600), critical)}
	plan := planDrain(pods, at(0), at(60), true)
	if len(plan.remove) != 2 || len(plan.evict) != 1 || plan.evict[0].Name != "quick" {
		t.Fatalf("removes %+v, evicts %v: want slow and endless removed, quick evicted", plan.remove,
			namesOf(plan.evict))
	}
	for _, r := range plan.remove {
		if r.graceSeconds != 60 {
			t.Errorf("%s gets %d s, want what is left: 60", r.pod.Name, r.graceSeconds)
		}
	}
	if again := plan.againAfter(at(0), time.Hour); again != 50*time.Second {
		t.Errorf("looks again after %s, want when quick's grace period has to begin: 50s", again)
	}
	if late := planDrain(pods[1:2], at(65), at(60), true); len(late.remove) != 1 || late.remove[0].graceSeconds != 1 {
		t.Errorf("after the deadline removes %+v, want quick with the minimum of 1 s", late.remove)
	}
}

func TestATerminatingPodThatIsTooSlowForTheDeadlineIsHurried(t *testing.T) {
	t.Parallel()
	pods := []corev1.Pod{pod("slow", grace(600), terminating(500)), pod("fine", grace(30), terminating(25))}
	plan := planDrain(pods, at(0), at(30), true)
	if len(plan.remove) != 1 || plan.remove[0].pod.Name != "slow" || plan.remove[0].graceSeconds != 30 {
		t.Fatalf("removes %+v, want only slow, with 30 s", plan.remove)
	}
}

// P-41. A node that a user deleted has no deadline before its claim is deleted, too: the claim's own counts.
func TestTheDeadlineCountsFromTheClaimsDeletion(t *testing.T) {
	t.Parallel()
	claim := &karpenterv1.NodeClaim{}
	if _, limited := deadline(claim); limited {
		t.Fatal("without a grace period there is no deadline")
	}
	claim.Spec.TerminationGracePeriod = &karpenterv1.Duration{Duration: time.Minute}
	if _, limited := deadline(claim); limited {
		t.Fatal("the claim is not deleted: there is no deadline yet")
	}
	earlier := metav1.NewTime(at(90))
	claim.DeletionTimestamp = &earlier
	if due, limited := deadline(claim); !limited || !due.Equal(at(150)) {
		t.Fatalf("deadline %v, want a minute from the claim's deletion", due)
	}
	claim.Annotations = map[string]string{
		karpenterv1.NodeClaimTerminationTimestampAnnotationKey: at(120).Format(time.RFC3339),
	}
	if due, limited := deadline(claim); !limited || !due.Equal(at(120)) {
		t.Fatalf("deadline %v (%v), want that of the annotation", due, limited)
	}
}
