package patch_test

import (
	"encoding/json"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
)

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// A status patch has exactly the differences, the removed fields, and the version that it was made from.
func TestAStatusPatchHoldsWhatDiffers(t *testing.T) {
	t.Parallel()
	claim := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", ResourceVersion: "7"}}
	before := karpenterv1.NodeClaimStatus{NodeName: "n", ProviderID: "p", ImageID: "gone",
		Capacity: amounts("cpu", "4", "example.com/gpu", "1", "pods", "10"), Allocatable: amounts("cpu", "3")}
	after := karpenterv1.NodeClaimStatus{NodeName: "n", ProviderID: "q", Capacity: amounts("cpu", "4000m", "memory",
		"1Gi", "pods", "11"), Conditions: []karpenterv1.Condition{{Type: "Ready", Status: "True"}}}
	data, err := patch.Status(claim, &before, &after).Data(claim)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Metadata map[string]any
		Status   map[string]any
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if want := map[string]any{"resourceVersion": "7"}; !reflect.DeepEqual(got.Metadata, want) {
		t.Errorf("metadata %v, want %v", got.Metadata, want)
	}
	if list, _ := got.Status["conditions"].([]any); len(list) != 1 {
		t.Errorf("conditions %v, want the whole new list", got.Status["conditions"])
	}
	delete(got.Status, "conditions")
	want := map[string]any{
		"providerID": "q", "imageID": nil, "allocatable": nil,
		"capacity": map[string]any{"memory": "1Gi", "pods": "11", "example.com/gpu": nil},
	}
	if !reflect.DeepEqual(got.Status, want) {
		t.Errorf("status %v, want %v", got.Status, want)
	}
}

// V-11: statuses are equal if they mean the same, however they are written.
func TestSameStatusLooksAtWhatIsSaid(t *testing.T) {
	t.Parallel()
	full := func() *karpenterv1.NodeClaimStatus {
		return &karpenterv1.NodeClaimStatus{
			NodeName: "n", ProviderID: "p", ImageID: "i", Capacity: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1"),
			},
			Conditions: []karpenterv1.Condition{
				{Type: "Ready", Status: "True", LastTransitionTime: metav1.Unix(5, 0)},
			}, LastPodEventTime: metav1.Unix(7, 0),
		}
	}
	same := full()
	same.Capacity[corev1.ResourceCPU] = resource.MustParse("1000m")
	same.Allocatable = corev1.ResourceList{}
	same.LastPodEventTime = metav1.NewTime(same.LastPodEventTime.UTC())
	if !patch.SameStatus(full(), same) {
		t.Error("1 CPU is 1000m, and no list is an empty one")
	}
	for name, change := range map[string]func(*karpenterv1.NodeClaimStatus){
		"nodeName": func(s *karpenterv1.NodeClaimStatus) { s.NodeName = "m" },
		"amount": func(s *karpenterv1.NodeClaimStatus) {
			s.Capacity[corev1.ResourceCPU] = resource.MustParse("2")
		},
		"resource": func(s *karpenterv1.NodeClaimStatus) {
			s.Capacity[corev1.ResourcePods] = resource.MustParse("2")
		},
		"message": func(s *karpenterv1.NodeClaimStatus) { s.Conditions[0].Message = "x" },
		"transition": func(s *karpenterv1.NodeClaimStatus) {
			s.Conditions[0].LastTransitionTime = metav1.Unix(6, 0)
		},
		"conditions":       func(s *karpenterv1.NodeClaimStatus) { s.Conditions = nil },
		"lastPodEventTime": func(s *karpenterv1.NodeClaimStatus) { s.LastPodEventTime = metav1.Unix(8, 0) },
	} {
		other := full()
		if change(other); patch.SameStatus(full(), other) {
			t.Errorf("%s: a change is not seen", name)
		}
	}
	two, deux, three := int64(2), int64(2), int64(3)
	if !patch.SameStatus(&karpenterv1.NodePoolStatus{Nodes: &two}, &karpenterv1.NodePoolStatus{Nodes: &deux}) ||
		patch.SameStatus(&karpenterv1.NodePoolStatus{Nodes: &two}, &karpenterv1.NodePoolStatus{Nodes: &three}) ||
		patch.SameStatus(&karpenterv1.NodePoolStatus{Nodes: &two}, &karpenterv1.NodePoolStatus{}) {
		t.Error("numbers are compared by what they are")
	}
}
