package door

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
)

// N54, N55, N68, A-12: lists and groups follow the nodes, and a list is made anew only when it has to be.
func TestNodesFollowTheCluster(t *testing.T) {
	t.Parallel()
	clients := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(clients, 0)
	config := protectedSources().Config
	config.Groups[0].Taints = []v1alpha1.GroupTaint{{Key: "cp", Effect: corev1.TaintEffectNoSchedule}}
	nodes, err := NodesOf(factory.Core().V1().Nodes().Informer(), config)
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	api := clients.CoreV1().Nodes()
	expect := func(what string, all, members int) {
		t.Helper()
		var seen, inGroup int
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
			seen, inGroup = 0, 0
			for range each(nodes.list()) {
				seen++
			}
			for range nodes.members(string(configv1.ControlPlane)) {
				inGroup++
			}
			if seen == all && inGroup == members {
				return
			}
		}
		t.Errorf("%s: %d nodes, %d of the group; want %d and %d", what, seen, inGroup, all, members)
	}
	expect("none", 0, 0)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"cp": ""}}}
	if _, err := api.Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("one of the group", 1, 1)
	list := &nodes.list()[0]
	if &nodes.list()[0] != list {
		t.Error("the list was made anew without a change")
	}
	node.Labels = nil
	if _, err := api.Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("none of the group", 1, 0)
	anew := func() {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); &nodes.list()[0] == list; {
			if time.Now().After(deadline) {
				t.Fatal("the list still has the old labels or taints")
			}
		}
		list = &nodes.list()[0]
	}
	anew()
	node.Spec.Taints = []corev1.Taint{{Key: "cp", Effect: corev1.TaintEffectNoSchedule}}
	if _, err := api.Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("one of the group by its taint", 1, 1)
	anew()
	if err := api.Delete(t.Context(), "n", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("none again", 0, 0)
}
