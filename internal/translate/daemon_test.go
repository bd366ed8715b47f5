package translate

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

func cpus(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

func limited(amount string) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Limits: cpus(amount)}}
}

// P-06: a template's requests are those of its future pods: the API server fills in defaults in pods, but not in
// templates.
func TestDaemonsAskForWhatTheirPodsAreGiven(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	given := Admission{Limits: []*corev1.LimitRange{
		{Spec: corev1.LimitRangeSpec{
			Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: cpus("300m")},
				{Type: corev1.LimitTypePod, DefaultRequest: cpus("9")}},
		}},
		{Spec: corev1.LimitRangeSpec{
			Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: cpus("400m")}},
		}},
	}}
	for name, test := range map[string]struct {
		spec  corev1.PodSpec
		given Admission
		want  int64
	}{
		"a request counts, not the limit": {
			corev1.PodSpec{
				Containers: []corev1.Container{
					{Resources: corev1.ResourceRequirements{Requests: cpus("1"), Limits: cpus("2")}},
				},
			}, Admission{}, 1000,
		},
		"a limit alone is a request": {corev1.PodSpec{Containers: []corev1.Container{limited("1"), limited("2")}},
			Admission{}, 3000},
		"of init containers too": {corev1.PodSpec{InitContainers: []corev1.Container{limited("3")},
			Containers: []corev1.Container{limited("2")}}, Admission{}, 3000},
		"of sidecars too": {corev1.PodSpec{
			InitContainers: []corev1.Container{{RestartPolicy: &always, Resources: limited("1").Resources}},
			Containers:     []corev1.Container{limited("2")},
		}, Admission{}, 3000},
		"a limit of the pod is a request where no container asks": {corev1.PodSpec{
			Resources: &corev1.ResourceRequirements{Limits: cpus("4")}, Containers: []corev1.Container{{}},
		}, Admission{}, 4000},
		"where one asks the containers count": {corev1.PodSpec{
			Resources: &corev1.ResourceRequirements{Limits: cpus("4")}, Containers: []corev1.Container{
				limited("1"), {},
			},
		}, given, 1000},
		"the larger of two LimitRanges counts": {corev1.PodSpec{Containers: []corev1.Container{{}, limited("1")}},
			given, 1400},
		"a RuntimeClass adds its overhead": {corev1.PodSpec{Containers: []corev1.Container{limited("1")}}, Admission{
			Class: &nodev1.RuntimeClass{Overhead: &nodev1.Overhead{PodFixed: cpus("250m")}},
		}, 1250},
	} {
		set := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: test.spec}}}
		before := set.DeepCopy()
		daemon, err := Daemon(resources.NewSpace(), set, test.given, nil)
		if got := daemon.Shape.Requests.At(resources.CPU); err != nil || got != test.want {
			t.Errorf("%s: asks for %dm cpu, error %v; want %dm", name, got, err, test.want)
		}
		requests := func(s *appsv1.DaemonSet) int { return len(s.Spec.Template.Spec.Containers[0].Resources.Requests) }
		if requests(set) != requests(before) {
			t.Errorf("%s: the DaemonSet was changed", name)
		}
	}
}

// P-06: a pod shows what admission adds. Only its node selection differs: its controller has replaced it by one node.
func TestAWitnessKeepsTheSelectionOfItsTemplate(t *testing.T) {
	t.Parallel()
	selection := func(key, value string, fields bool) *corev1.Affinity {
		term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}},
		}}
		if fields {
			term = corev1.NodeSelectorTerm{MatchFields: term.MatchExpressions}
		}
		return &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{term},
			}},
		}
	}
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent"}}
	set.Spec.Template.Spec = corev1.PodSpec{Containers: []corev1.Container{{}},
		Affinity: selection("zone", "a", false)}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent", "controller-revision-hash": "x",
			"pod-template-generation": "3"}},
	}
	pod.Spec = corev1.PodSpec{
		NodeName: "n1", NodeSelector: map[string]string{"runtime": "kata"},
		Affinity:   selection("metadata.name", "n1", true),
		Containers: []corev1.Container{limited("1"), {Resources: corev1.ResourceRequirements{Requests: cpus("2")}}},
	}
	daemon, err := Daemon(resources.NewSpace(), set, Admission{}, pod)
	if err != nil {
		t.Fatal(err)
	}
	shape := daemon.Shape
	if len(shape.Alternatives) != 1 || shape.Requests.At(resources.CPU) != 2000 || len(shape.Labels) != 1 {
		t.Fatalf("alternatives %v, requests %v, labels %v", shape.Alternatives, shape.Requests, shape.Labels)
	}
	for want, labels := range map[bool]map[string]string{true: {"zone": "a", "runtime": "kata"},
		false: {"zone": "a"}} {
		node := &cluster.Node{Name: "n2", Labels: labels, Open: requirement.NewSet()}
		if got := node.Admits(shape); got != want {
			t.Errorf("a node with labels %v: admitted %t, want %t", labels, got, want)
		}
	}
}
