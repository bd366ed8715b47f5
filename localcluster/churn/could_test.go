package churn

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/localcluster/oracle"
)

// podOf is a pod that waits, with one container.
func podOf(cpu string, change func(*corev1.PodSpec)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", UID: "p"}}
	pod.Spec.Containers = []corev1.Container{
		{Name: "main", Resources: corev1.ResourceRequirements{Requests: list(cpu, "1Gi")}},
	}
	if change != nil {
		change(&pod.Spec)
	}
	return pod
}

func at9000(pod *corev1.PodSpec) {
	pod.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 9000, Protocol: corev1.ProtocolTCP}}
}

// daemonFor runs on nodes of an architecture at host port 9000.
func daemonFor(arch string) *appsv1.DaemonSet {
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "d", UID: "d"}}
	set.Spec.Template.Spec = podOf("1", at9000).Spec
	set.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelArchStable: arch}
	return set
}

// Whether a pod is feasible depends on what its pool offers, and on the daemons that a node of it would get.
func TestWhichPodsAreFeasible(t *testing.T) {
	t.Parallel()
	f, err := newFeasibility(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		pod  *corev1.Pod
		set  *appsv1.DaemonSet
		want bool
	}{
		{"a small one", podOf("1", nil), nil, true},
		{"larger than every machine", podOf("1000", nil), nil, false},
		{"as large as the largest machine", podOf("255900m", nil), nil, true},
		{"the same beside a daemon", podOf("255900m", nil), daemonFor("amd64"), false},
		{"the same, and the daemon runs elsewhere", podOf("255900m", nil), daemonFor("arm64"), true},
		{"in a zone",
			podOf("1", func(p *corev1.PodSpec) {
				p.NodeSelector = map[string]string{corev1.LabelTopologyZone: "test-zone-b"}
			}), nil, true},
		{"in no zone",
			podOf("1", func(p *corev1.PodSpec) {
				p.NodeSelector = map[string]string{corev1.LabelTopologyZone: "mars"}
			}), nil, false},
		{"of another architecture",
			podOf("1", func(p *corev1.PodSpec) {
				p.NodeSelector = map[string]string{corev1.LabelArchStable: "arm64"}
			}), nil, false},
		{"with the daemon's host port", podOf("1", at9000), daemonFor("amd64"), false},
		{"with the host port of a daemon elsewhere", podOf("1", at9000), daemonFor("arm64"), true},
		{"beside pods that are nowhere",
			podOf("1", func(p *corev1.PodSpec) { near(p, "nobody", corev1.LabelTopologyZone) }), nil, false},
	} {
		m := moment{feasibility: f, before: oracle.Cluster{
			Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, Pods: []*corev1.Pod{c.pod},
		}}
		var d daemons
		if c.set != nil {
			d.sets = append(d.sets, c.set)
		}
		m.candidates = f.candidatesOf(newPool("s", "open", "amd64"), d)
		could, why, err := m.launchable(t.Context(), c.pod)
		if err != nil || (could != "") != c.want {
			t.Errorf("%s: %q (%s, %v), want feasible: %t", c.name, could, why, err, c.want)
		}
	}
}

// What a daemon asks for is what its pods have, else what the API server and LimitRanges make of its template.
func TestWhatDaemonsAskFor(t *testing.T) {
	t.Parallel()
	set := daemonFor("amd64")
	set.Spec.Template.Spec.NodeSelector = nil
	set.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: list("2", "1Gi")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	asked := func(d daemons) string { return d.on(node)[0].Spec.Containers[0].Resources.Requests.Cpu().String() }
	d := daemons{sets: []*appsv1.DaemonSet{set}}
	if got := asked(d); got != "2" {
		t.Errorf("with limits alone: %s, want 2", got)
	}
	set.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	d.ranges = []*corev1.LimitRange{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, DefaultRequest: list("300m", "1Gi")},
		}}}}
	if got := asked(d); got != "300m" {
		t.Errorf("with a LimitRange: %s, want 300m", got)
	}
	live := podOf("700m", nil)
	live.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("DaemonSet")),
	}
	d.pods = []*corev1.Pod{live}
	if got := asked(d); got != "700m" {
		t.Errorf("with a pod that runs: %s, want 700m", got)
	}
}
