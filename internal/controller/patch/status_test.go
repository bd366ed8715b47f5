package patch_test

import (
	"encoding/json"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/patch"
)

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// A patch of the status says what differs, what is gone, and which state it was made from, and nothing else.
func TestAStatusPatchHoldsWhatDiffers(t *testing.T) {
	t.Parallel()
	claim := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", ResourceVersion: "7"}}
	before := karpenterv1.NodeClaimStatus{NodeName: "n", ProviderID: "p", ImageID: "gone", Capacity: amounts("cpu", "4", "example.com/gpu", "1", "pods", "10"), Allocatable: amounts("cpu", "3")}
	after := karpenterv1.NodeClaimStatus{NodeName: "n", ProviderID: "q", Capacity: amounts("cpu", "4000m", "memory", "1Gi", "pods", "11"), Conditions: []karpenterv1.Condition{{Type: "Ready", Status: "True"}}}
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
