package provisioning_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/provisioning"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

func untriedPod(name string) *corev1.Pod {
	pod := pendingPod(name)
	pod.Status.Conditions = nil
	return pod
}

// P-25: a pod has come when it was created, however late kube-scheduler passes over it. An untried pod keeps the
// window open if an equal one was passed over. Otherwise it can only open the window, since it may be bound in a
// moment.
func TestTheWindowGoesByWhenPodsWereMade(t *testing.T) {
	t.Parallel()
	start := controllertest.Start()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	planned, alike := map[string]bool{}, map[string]bool{}
	w := provisioning.NewWindow(time.Second, 10*time.Second,
		func(pod *corev1.Pod) (bool, bool) { return planned[pod.Name], alike[pod.Name] })
	expect := func(ms int, want time.Duration) {
		t.Helper()
		if got := w.Wait(at(ms)); got != want {
			t.Errorf("waits %s more, want %s", got, want)
		}
	}
	w.Apply(untriedPod("x"), at(0)) // nothing else waits: an ordinary pod
	expect(0, 0)
	w.Apply(untriedPod("y"), at(50))
	w.Apply(pendingPod("x"), at(100))
	planned["z"] = true
	w.Apply(untriedPod("z"), at(300)) // planned for, but who knows
	expect(300, 800*time.Millisecond)
	planned["b"], alike["b"] = true, true
	w.Apply(untriedPod("b"), at(600))
	w.Apply(pendingPod("b"), at(900))
	w.Apply(pendingPod("y"), at(1000)) // made long ago
	expect(1000, 600*time.Millisecond)
	w.Apply(pendingPod("z"), at(1200))
	expect(1200, 400*time.Millisecond)
	w.Apply(pendingPod("new"), at(1500))
	expect(1500, time.Second)
	w.Close(1)
	planned["c"] = true
	w.Apply(untriedPod("c"), at(3000)) // others wait, so it is planned for: not alone
	expect(3000, time.Second)
}

// P-25: while a scheduler is behind, a pod that it has not tried yet keeps the window open, since its turn does not
// come soon. It is behind if the pod it has just tried had waited for longer than the idle time. A pod that it never
// tries does not count, nor does another scheduler.
func TestAPodKeepsTheWindowOpenWhileItsSchedulerIsBehind(t *testing.T) {
	t.Parallel()
	start := controllertest.Start()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	w := provisioning.NewWindow(time.Second, 10*time.Second, func(*corev1.Pod) (bool, bool) { return true, false })
	expect := func(ms int, want time.Duration) {
		t.Helper()
		if got := w.Wait(at(ms)); got != want {
			t.Errorf("waits %s more, want %s", got, want)
		}
	}
	other := untriedPod("o")
	other.Spec.SchedulerName = "other"
	w.Apply(other, at(-5000))
	w.Apply(untriedPod("stuck"), at(-5000))
	w.Close(1)
	w.Apply(pendingPod("x"), at(0))
	for i, ms := range []int{100, 200, 300, 800} {
		w.Apply(untriedPod(string(rune('a'+i))), at(ms))
	}
	expect(800, 200*time.Millisecond)
	w.Apply(pendingPod("a"), at(900)) // within the idle time
	bound := other.DeepCopy()
	bound.Spec.NodeName = "n"
	w.Apply(bound, at(920))
	w.Apply(untriedPod("e"), at(950))
	expect(950, 150*time.Millisecond)  // from when a was made
	w.Apply(pendingPod("b"), at(1250)) // it was there for 1050 ms
	w.Apply(pendingPod("b"), at(1260)) // and is passed over once more
	w.Apply(untriedPod("f"), at(1300))
	expect(1300, time.Second)
	w.Remove(untriedPod("c")) // which was not tried
	w.Apply(untriedPod("g"), at(2200))
	expect(2200, time.Second)
	w.Apply(untriedPod("h"), at(2300)) // nothing was tried for the idle time
	expect(2300, 900*time.Millisecond)
	for ms := 3000; ms < 20000; ms += 500 {
		w.Apply(untriedPod("p"+at(ms).String()), at(ms))
		w.Apply(pendingPod("p"+at(ms-2000).String()), at(ms+1))
	}
	expect(9900, 100*time.Millisecond) // but not longer than the longest time
}

// P-25: a pod that was planned for before kube-scheduler tried it opens no window when it is passed over. One that was
// bound, and comes back, does.
func TestAPodThatWasPlannedForIsNoNews(t *testing.T) {
	t.Parallel()
	start := controllertest.Start()
	w := provisioning.NewWindow(time.Second, 10*time.Second, nil)
	w.Apply(pendingPod("a"), start)
	w.Apply(untriedPod("b"), start)
	w.Close(1)
	w.Planned([]*cluster.Pod{{UID: "a"}, {UID: "b"}, {UID: "gone"}})
	w.Apply(pendingPod("b"), start.Add(2*time.Second))
	if got := w.Wait(start.Add(2 * time.Second)); got != 0 || w.Close(1) {
		t.Errorf("waits %s, and plans anew, for a pod that was planned for", got)
	}
	bound := pendingPod("b")
	bound.Spec.NodeName = "n"
	w.Apply(bound, start.Add(3*time.Second))
	w.Apply(pendingPod("b"), start.Add(4*time.Second))
	if got := w.Wait(start.Add(4 * time.Second)); got != time.Second {
		t.Errorf("waits %s for a pod that came back, want 1s", got)
	}
}
