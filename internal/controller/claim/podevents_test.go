package claim_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

func on(node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID("p")}, Spec: corev1.PodSpec{NodeName: node}}
	for _, c := range changes {
		c(p)
	}
	return p
}

func bound(since time.Time, kind corev1.PodConditionType, status corev1.ConditionStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions,
			corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(since)})
	}
}

// D-03: a pod event is a pod that comes, ends or goes, each once, and not one of a DaemonSet or without a node.
func TestWhatIsAPodEvent(t *testing.T) {
	t.Parallel()
	start := controllertest.Start()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	ending := func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(start)) }
	finished := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	daemon := func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet"}} }
	replica := func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet"}} }
	type step struct {
		pod   *corev1.Pod
		gone  bool
		event bool
	}
	for name, steps := range map[string][]step{
		"comes":                  {{on("n"), false, true}},
		"comes, of a ReplicaSet": {{on("n", replica), false, true}},
		"without a node":         {{on(""), false, false}, {on("", ending), false, false}},
		"of a DaemonSet":         {{on("n", daemon), false, false}},
		"nothing new":            {{on("n"), false, true}, {on("n"), false, false}},
		"ends": {{on("n"), false, true}, {on("n", ending), false, true},
			{on("n", ending), false, false}},
		"finishes": {{on("n"), false, true}, {on("n", finished), false, true}},
		"ends, bound long ago": {{on("n", bound(start, corev1.PodScheduled, "True")), false, true},
			{on("n", bound(start, corev1.PodScheduled, "True"), ending), false, true}},
		"goes":                      {{on("n"), false, true}, {on("n"), true, true}, {on("n"), true, false}},
		"goes after its end":        {{on("n"), false, true}, {on("n", ending), false, true}, {on("n"), true, false}},
		"goes, and was never known": {{on("n"), true, false}},
	} {
		events := claim.NewPodEvents()
		last := time.Time{}
		for i, s := range steps {
			act := events.Apply
			if s.gone {
				act = events.Remove
			}
			if got := act(s.pod, at(i)); got != s.event {
				t.Errorf("%s, step %d: event is %v, want %v", name, i, got, s.event)
			}
			if s.event {
				last = at(i)
			}
		}
		if got := events.Last("n"); !got.Equal(last) {
			t.Errorf("%s: last event at %v, want %v", name, got, last)
		}
	}
}

// D-03: after a start, a pod that is seen for the first time came when it was bound. If that is in the future, or it
// was never bound, it came now.
func TestAPodThatIsNewCameWhenItWasBound(t *testing.T) {
	t.Parallel()
	now := controllertest.Start()
	early := now.Add(-time.Hour)
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want time.Time
	}{
		"bound": {on("n", bound(now.Add(-2*time.Hour), corev1.PodReady, "True"),
			bound(early, corev1.PodScheduled, "True")), early},
		"not bound":         {on("n", bound(early, corev1.PodScheduled, "False")), now},
		"ready":             {on("n", bound(early, corev1.PodReady, "True")), now},
		"bound soon":        {on("n", bound(now.Add(time.Minute), corev1.PodScheduled, "True")), now},
		"nothing is known":  {on("n"), now},
		"bound this moment": {on("n", bound(now, corev1.PodScheduled, "True")), now},
	} {
		events := claim.NewPodEvents()
		events.Apply(c.pod, now)
		if got := events.Last("n"); !got.Equal(c.want) {
			t.Errorf("%s: came at %v, want %v", name, got, c.want)
		}
	}
}

// An older pod that is seen later does not turn the clock back. A node that is gone is forgotten, and its pods'
// deletions are no events.
func TestTheLastEventOfANode(t *testing.T) {
	t.Parallel()
	now := controllertest.Start()
	events := claim.NewPodEvents()
	events.Apply(on("n"), now)
	older := on("n", bound(now.Add(-time.Hour), corev1.PodScheduled, "True"))
	older.UID = "older"
	if events.Apply(older, now) || !events.Last("n").Equal(now) {
		t.Errorf("an older pod is no event; last %v", events.Last("n"))
	}
	events.RemoveNode("n")
	if !events.Last("n").IsZero() {
		t.Error("the node is gone and still known")
	}
	if events.Remove(on("n"), now.Add(time.Second)) || !events.Last("n").IsZero() {
		t.Error("a pod of a node that is gone is no event")
	}
}

// A pod that ends does not bring back a node that is gone: Kubernetes fails and deletes orphans after their Node.
func TestAPodThatEndsBringsBackNoNode(t *testing.T) {
	t.Parallel()
	now := controllertest.Start()
	failed := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(now)) }
	for name, end := range map[string]func(*corev1.Pod){"failed": failed, "deleted": deleted} {
		for _, known := range []bool{true, false} {
			events := claim.NewPodEvents()
			if known {
				events.Apply(on("n"), now)
				events.RemoveNode("n")
			}
			orphan := on("n", end)
			if events.Apply(orphan, now.Add(time.Second)) || events.Remove(orphan, now.Add(time.Minute)) ||
				!events.Last("n").IsZero() {
				t.Errorf("%s, known %t: the node is gone and known again, last %v", name, known, events.Last("n"))
			}
		}
	}
}
