package operator

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The cache keeps no images of nodes and nothing of who wrote which field: with them the nodes of a large cluster
// would not fit below the chart's memory limit.
func TestTheCacheKeepsNoImages(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "b"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}},
		Spec: corev1.NodeSpec{ProviderID: "aws:///z/i-1"},
		Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{"large"}}},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}},
	}
	kept, err := guestCache().DefaultTransform(node)
	if err != nil {
		t.Fatal(err)
	}
	if n := kept.(*corev1.Node); n.Status.Images != nil || n.ManagedFields != nil || n.Labels["a"] != "b" ||
		n.Spec.ProviderID == "" || len(n.Status.Addresses) != 1 {
		t.Errorf("it keeps %+v", n)
	}
}
