package apisemantics

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func cpus(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

// limitsAreRequests: the request of a container defaults to its limit. Templates stay as they are.
func limitsAreRequests(b bench) {
	pod := b.pod("limited")
	pod.Spec.Containers[0].Resources.Limits = cpus("1")
	pod.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "none",
		Resources: corev1.ResourceRequirements{Limits: cpus("2"), Requests: cpus("500m")}}}
	b.create(pod)
	b.get(pod)
	if got := pod.Spec.Containers[0].Resources.Requests.Cpu(); got.String() != "1" {
		b.t.Errorf("a container with limits only requests %s cpu, want 1", got)
	}
	if got := pod.Spec.InitContainers[0].Resources.Requests.Cpu(); got.String() != "500m" {
		b.t.Errorf("an init container with a request requests %s cpu, want 500m", got)
	}
	labels := map[string]string{"app": b.prefix}
	set := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: b.prefix},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
		},
	}
	set.Spec.Template.Spec.NodeName = ""
	set.Spec.Template.Spec.NodeSelector = map[string]string{"example.com/nowhere": "true"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "none",
		Resources: corev1.ResourceRequirements{Limits: cpus("1")}}}
	b.create(set)
	b.get(set)
	if got := set.Spec.Template.Spec.Containers[0].Resources.Requests; len(got) != 0 {
		b.t.Errorf("a template with limits only has requests %v, want none", got)
	}
}

// limitRangesAreCompleted: missing fields of a LimitRange get defaults from its other fields. The test has its own
// namespace, away from pods of other tests.
func limitRangesAreCompleted(b bench) {
	b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.prefix}})
	limits := &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.prefix, Name: b.prefix},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypePod, Max: cpus("1000"), // limits of pods have no defaults
		}, {
			Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{"example.com/a": resource.MustParse("7")},
			Min: corev1.ResourceList{"example.com/b": resource.MustParse("0")},
		}}},
	}
	b.create(limits)
	b.get(limits)
	items := limits.Spec.Limits
	if len(items[0].Default)+len(items[0].DefaultRequest) != 0 {
		b.t.Errorf("the item about pods got defaults: %+v", items[0])
	}
	for name, want := range map[corev1.ResourceName]string{"example.com/a": "7", "example.com/b": "0"} {
		if got := items[1].DefaultRequest[name]; got.String() != want {
			b.t.Errorf("the request by default of %s is %s, want %s", name, got.String(), want)
		}
	}
}
