package world

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func testLimitRange(name, uid string, version int, memory string) *corev1.LimitRange {
	return &corev1.LimitRange{ObjectMeta: meta("shop", name, uid, version),
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, DefaultRequest: quantities("memory", memory)},
		}}}
}

func testRuntimeClass(name, uid string, version int, cpu string) *nodev1.RuntimeClass {
	return &nodev1.RuntimeClass{ObjectMeta: meta("", name, uid, version), Handler: "h",
		Overhead: &nodev1.Overhead{PodFixed: quantities("cpu", cpu)}}
}

// daemonPod is a pod of the DaemonSet agent that asks for so much cpu, created at a second.
func daemonPod(name string, generation, cpu string, second int64) *corev1.Pod {
	pod := testPod(name, "uid-of-"+name, int(second), "")
	pod.Namespace = "kube-system"
	pod.CreationTimestamp = metav1.Unix(second, 0)
	pod.Labels = map[string]string{"pod-template-generation": generation}
	pod.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "uid-of-agent", Controller: new(true)},
	}
	pod.Spec.Containers[0].Resources.Requests = quantities("cpu", cpu)
	return pod
}

// P-06: a daemon asks for what its newest pod of the current template asks for; without one for what the template
// comes to.
func TestTheNewestPodShowsWhatADaemonAsksFor(t *testing.T) {
	t.Parallel()
	s := New(Config{Now: newClock().Now})
	set := testDaemon("agent", 1)
	set.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "1"}
	set.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: quantities("cpu", "200m")}
	must := func(what, want string) {
		t.Helper()
		if got := picture(s.Snapshot()); got != "daemon kube-system/agent asks "+want+"\n" {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	tell := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	tell(s.Apply(set))
	must("limits become requests", "cpu=200 pods=1")
	limits := testLimitRange("defaults", "u1", 2, "1Gi")
	tell(s.Apply(limits))
	must("a LimitRange of another namespace does not count", "cpu=200 pods=1")
	own := testLimitRange("defaults", "u2", 3, "1Gi")
	own.Namespace = "kube-system"
	tell(s.Apply(own))
	must("a LimitRange gives what is not named", "cpu=200 memory=1073741824 pods=1")
	tell(s.Apply(daemonPod("b", "1", "3", 20)))
	must("a pod shows more", "cpu=3000 pods=1")
	tell(s.Apply(daemonPod("a", "1", "2", 10)))
	must("an older one does not count", "cpu=3000 pods=1")
	bound := daemonPod("b", "1", "3", 20)
	bound.ResourceVersion, bound.Spec.NodeName = "30", "n"
	version := s.Version()
	tell(s.Apply(bound))
	must("a bound one shows the same", "cpu=3000 pods=1")
	resized := bound.DeepCopy()
	resized.ResourceVersion = "31"
	resized.Spec.Containers[0].Resources.Requests = quantities("cpu", "4")
	tell(s.Apply(resized))
	must("one that was changed shows the change", "cpu=4000 pods=1")
	if version == s.Version() {
		t.Error("the picture changed and its version did not")
	}
	s.Remove(resized)
	must("the newest is gone", "cpu=2000 pods=1")

	next := set.DeepCopy()
	next.ResourceVersion = "40"
	next.Annotations[appsv1.DeprecatedTemplateGeneration] = "2"
	next.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	tell(s.Apply(next))
	must("a pod of the old template fills in what the new one does not name", "cpu=2000 memory=1073741824 pods=1")
	never := next.DeepCopy()
	never.ResourceVersion, never.Spec.UpdateStrategy.Type = "41", appsv1.OnDeleteDaemonSetStrategyType
	tell(s.Apply(never))
	must("but not when nothing rolls the set", "memory=1073741824 pods=1")
	s.Remove(own)
	tell(s.Apply(daemonPod("c", "2", "5", 5)))
	must("of pods those of the current template come first", "cpu=5000 pods=1")
	other := daemonPod("d", "2", "6", 50)
	other.OwnerReferences[0].UID = "of-one-that-is-gone"
	tell(s.Apply(other))
	must("a pod of an earlier set of that name does not count", "cpu=5000 pods=1")
	ended := daemonPod("c", "2", "5", 60)
	ended.CreationTimestamp, ended.Status.Phase = metav1.Unix(5, 0), corev1.PodFailed
	tell(s.Apply(ended))
	must("nor one that has ended", "pods=1")
}

// P-06: what a RuntimeClass adds is known without a pod.
func TestARuntimeClassAddsToDaemons(t *testing.T) {
	t.Parallel()
	s := New(Config{Now: func() time.Time { return newClock().now }})
	set := testDaemon("agent", 1)
	set.Spec.Template.Spec.RuntimeClassName = new("kata")
	for _, err := range []error{s.Apply(set), s.Apply(testRuntimeClass("other", "u1", 1, "1")),
		s.Apply(testRuntimeClass("kata", "u2", 2, "2"))} {
		if err != nil {
			t.Error(err)
		}
	}
	if got, want := picture(s.Snapshot()), "daemon kube-system/agent asks cpu=2100 pods=1\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.Remove(testRuntimeClass("kata", "u2", 3, "2"))
	if got, want := picture(s.Snapshot()), "daemon kube-system/agent asks cpu=100 pods=1\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
