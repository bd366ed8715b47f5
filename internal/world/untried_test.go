package world

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// untriedPod is a pod that kube-scheduler has not tried.
func untriedPod(name, uid string, version int) *corev1.Pod {
	pod := testPod(name, uid, version, "")
	pod.Status.Conditions = nil
	return pod
}

func pendingNames(s *Store) string {
	var names []string
	for _, pod := range s.Snapshot().Pending {
		names = append(names, pod.Name)
	}
	return strings.Join(names, " ")
}

// P-01: a pod that kube-scheduler has not tried yet is planned for once it has passed over another one of its
// priority. When that one has its node, the others are ordinary pods again, except those that were planned for.
func TestP01_PodsBehindOneThatWasPassedOverArePlannedFor(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	other := untriedPod("other", "u5", 5)
	other.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
	urgent := untriedPod("urgent", "u6", 6)
	urgent.Spec.Priority = new(int32(7))
	elsewhere := untriedPod("elsewhere", "u7", 7)
	elsewhere.Spec.SchedulerName = "mine"
	gated := untriedPod("gated", "u8", 8)
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}}
	for _, pod := range []*corev1.Pod{untriedPod("b", "u2", 2), untriedPod("c", "u3", 3), other, urgent, elsewhere,
		gated} {
		_ = s.Apply(pod)
	}
	expect := func(what, pending string) {
		t.Helper()
		if got := pendingNames(s); got != pending {
			t.Errorf("%s: pending are %q, want %q", what, got, pending)
		}
	}
	expect("none was tried", "")
	_ = s.Apply(testPod("a", "u1", 11, ""))
	expect("one was passed over", "a b c other")
	for pod, want := range map[*corev1.Pod][2]bool{
		untriedPod("b", "u2", 2): {true, true}, other: {true, false}, urgent: {}, elsewhere: {}, gated: {},
		testPod("a", "u1", 11, ""): {}, untriedPod("b", "u99", 2): {},
	} {
		if planned, alike := s.Untried(pod); planned != want[0] || alike != want[1] {
			t.Errorf("%s: planned for %v, alike %v; want %v", pod.Name, planned, alike, want)
		}
	}
	s.Remove(other)
	s.Promise(testClaim("c1", "cu1", 20, "default", ""), resources.Vector{8000}, ref("b", "u2"))
	_ = s.Apply(testPod("a", "u1", 12, "n1"))
	expect("the one that was passed over is bound, and b was planned for", "b")
	for i, pod := range []*corev1.Pod{testPod("b", "u2", 14, "n1"), testPod("c", "u3", 15, "n1")} {
		_ = s.Apply(pod)
		expect(fmt.Sprint("bound ", i+1), "")
	}
	for _, pod := range []*corev1.Pod{urgent, elsewhere} {
		s.Remove(pod)
	}
	if len(s.untried.queues) != 0 || len(s.untried.passed) != 0 {
		t.Errorf("what is left: %v", s.untried)
	}
}

// P-01: in any order of events, the pending pods are those that kube-scheduler passed over and those behind one of
// their priority; likeness follows.
func TestP01_WhoIsPlannedForBeforeTheFirstTry(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := newClock().store()
		state, like, lives := map[string]string{}, map[string]int{}, map[string]int{}
		for version := range 60 {
			name := fmt.Sprintf("p%d", random.IntN(6))
			if state[name] == "" {
				like[name] = random.IntN(4) // of two priorities
			}
			pod := untriedPod(name, fmt.Sprint(name, "-", lives[name]), version+1)
			pod.Labels["app"] = fmt.Sprint(like[name])
			pod.Spec.Priority = new(int32(like[name] % 2))
			next := []string{"untried", "passed", "bound", "gone"}[random.IntN(4)]
			switch next {
			case "gone":
				s.Remove(pod)
				lives[name]++ // a pod of that UID never comes back
				next = ""
			case "passed":
				pod.Status.Conditions = testPod("", "", 0, "").Status.Conditions
			case "bound":
				pod.Spec.NodeName = "n1"
			}
			if state[name] = next; next != "" {
				_ = s.Apply(pod)
			}
			var want []string
			for name, is := range state {
				behind, alike := false, false
				for other, of := range state {
					behind = behind || of == "passed" && like[other]%2 == like[name]%2
					alike = alike || of == "passed" && like[other] == like[name]
				}
				if is == "passed" || is == "untried" && behind {
					want = append(want, name)
				}
				asked := untriedPod(name, fmt.Sprint(name, "-", lives[name]), 0)
				if gotPlanned, gotAlike := s.Untried(asked); is == "untried" &&
					(gotPlanned != behind || gotAlike != alike) {
					t.Fatalf("seed %d: %s is planned for %v, alike %v; want %v, %v; %v", seed, name, gotPlanned,
						gotAlike, behind, alike, state)
				}
			}
			slices.Sort(want)
			if got := pendingNames(s); got != strings.Join(want, " ") {
				t.Fatalf("seed %d: pending are %q, want %q; %v", seed, got, want, state)
			}
		}
	}
}
