package joiner

import (
	"reflect"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// member is a pod of a workload with all that pods of one have in common.
func member(name string) *corev1.Pod {
	yes, seconds, always := true, int64(300), corev1.ContainerRestartPolicyAlways
	amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	container := corev1.Container{Name: "main", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
		RestartPolicy: &always, Resources: corev1.ResourceRequirements{Requests: amounts, Limits: amounts.DeepCopy(),
			Claims: []corev1.ResourceClaim{{Name: "gpu"}}},
		ResizePolicy: []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU}}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name),
			Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "owner",
				Controller: &yes, BlockOwnerDeletion: &yes}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{container}, InitContainers: []corev1.Container{container},
			NodeSelector: map[string]string{"disk": "ssd"},
			Affinity:     &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}},
			Tolerations: []corev1.Toleration{
				{Key: "k", Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds},
			},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone"}}},
	}
}

// B-22: pods of one workload share what is equal in them, and nothing else; each says afterwards what it said before.
func TestB22_PodsOfAWorkloadShareWhatIsEqual(t *testing.T) {
	t.Parallel()
	other := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	never, no := corev1.ContainerRestartPolicyNever, false
	for name, change := range map[string]func(*corev1.Pod){
		"nothing":           func(*corev1.Pod) {},
		"labels":            func(p *corev1.Pod) { p.Labels["app"] = "other" },
		"owners":            func(p *corev1.Pod) { p.OwnerReferences[0].Controller = &no },
		"requests":          func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = other },
		"limits":            func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = other },
		"claims":            func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Claims = nil },
		"resize policy":     func(p *corev1.Pod) { p.Spec.Containers[0].ResizePolicy = nil },
		"ports":             func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].HostPort = 80 },
		"restart policy":    func(p *corev1.Pod) { p.Spec.InitContainers[0].RestartPolicy = &never },
		"no restart policy": func(p *corev1.Pod) { p.Spec.InitContainers[0].RestartPolicy = nil },
		"another container": func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "second"})
		},
		"tolerations":         func(p *corev1.Pod) { p.Spec.Tolerations[0].TolerationSeconds = nil },
		"node selector":       func(p *corev1.Pod) { p.Spec.NodeSelector = nil },
		"affinity":            func(p *corev1.Pod) { p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{} },
		"spread":              func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints[0].MaxSkew = 2 },
		"another namespace":   func(p *corev1.Pod) { p.Namespace = "other" },
		"no owner":            func(p *corev1.Pod) { p.OwnerReferences = nil },
		"an owner of its own": func(p *corev1.Pod) { p.OwnerReferences[0].UID = "another" },
	} {
		s := newShared()
		first, second := member("a"), member("b")
		change(second)
		want := second.DeepCopy()
		for _, pod := range []*corev1.Pod{first, second} {
			if got, err := s.transform(pod); got != any(pod) || err != nil {
				t.Fatalf("%s: %v, error %v", name, got, err)
			}
		}
		if !reflect.DeepEqual(second, want) {
			t.Errorf("%s: the pod is\n%+v\nand was\n%+v", name, second, want)
		}
		if shares := &first.Spec.Containers[0] == &second.Spec.Containers[0]; name == "nothing" && !shares ||
			name == "requests" && shares {
			t.Errorf("%s: the containers are shared: %t", name, shares)
		}
	}
}

// B-22: NodeClaims share equal lists of values, and share amounts with nodes of their type. Each says the same
// afterwards as before.
func TestB22_ClaimsAndNodesShareWhatIsEqual(t *testing.T) {
	t.Parallel()
	claim := func(cpu string, values ...string) *karpenterv1.NodeClaim {
		c := &karpenterv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1.LabelInstanceTypeStable: "large"}},
		}
		c.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{
			{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: values},
			{Key: "gpu", Operator: corev1.NodeSelectorOpExists},
		}
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		c.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		return c
	}
	node := func(cpu string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1.LabelInstanceTypeStable: "large"}},
			Status:     corev1.NodeStatus{Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}
	}
	s := newShared()
	given := []client.Object{claim("4", "a", "b", "c"), claim("4", "a", "b", "c"), claim("4", "a", "x", "c"),
		claim("8", "a"), claim("4"), node("4"), node("8"), node("4")}
	for _, object := range given {
		want := object.DeepCopyObject()
		if got, err := s.transform(object); got != any(object) || !reflect.DeepEqual(got, want) || err != nil {
			t.Errorf("%+v was %+v, error %v", got, want, err)
		}
	}
	values := func(i int) *string { return &given[i].(*karpenterv1.NodeClaim).Spec.Requirements[0].Values[0] }
	if values(0) != values(1) || values(0) == values(2) {
		t.Error("want equal lists shared, and others not")
	}
	capacity := func(i int) uintptr {
		return reflect.ValueOf(given[i].(*karpenterv1.NodeClaim).Status.Capacity).Pointer()
	}
	if capacity(0) != capacity(1) || capacity(0) == capacity(3) {
		t.Error("want equal amounts shared, and others not")
	}
}

// It is not remembered for ever which owners there were.
func TestPodsOfFewOwnersAreRemembered(t *testing.T) {
	t.Parallel()
	s := newShared()
	for i := range mostShared + 2 {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: types.UID(strconv.Itoa(i))}}},
		}
		if _, err := s.transform(pod); err != nil || len(s.last) > mostShared {
			t.Fatalf("pods of %d owners are remembered, want %d at most; error %v", len(s.last), mostShared, err)
		}
	}
}
