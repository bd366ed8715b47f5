package nodescheduling

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// a kubelet registers its node with the taint of the control plane, but another client writes the label later.
// The node is protected at once, and stays so while the label comes and the taint goes, in two writes or in one.
func TestA12_ANodeIsProtectedFromTheMomentItRegisters(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		g.Expect(t, "allow", "alice create pod app/waits")
		refused := func() {
			t.Helper()
			g.Expect(t, "deny ControlPlane/NodeName", "alice create pod app/- node=cp2 dry-run")
			g.Expect(t, "deny ControlPlane/Binding", "alice bind app/waits to=cp2 dry-run")
		}
		const label = `{"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}`
		for name, writes := range map[string][]string{
			"two writes": {label, `{"spec": {"taints": null}}`},
			"one write": {
				`{"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}, "spec": {"taints": null}}`,
			},
		} {
			g.register(t, "cp2")
			refused()
			for _, write := range writes {
				if _, err := g.Clients.CoreV1().Nodes().Patch(t.Context(), "cp2", types.MergePatchType, []byte(write),
					metav1.PatchOptions{}); err != nil {
					t.Fatal(err)
				}
				for range 5 {
					refused()
				}
			}
			if t.Failed() {
				t.Fatalf("with %s", name)
			}
			if err := g.Clients.CoreV1().Nodes().Delete(t.Context(), "cp2", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// register makes a node as its kubelet does, with the taint of the control plane, until the test ends.
func (g guarded) register(t *testing.T, name string) {
	t.Helper()
	config, err := g.Cluster.RESTConfig("admin")
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + name, Groups: []string{"system:nodes"}}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
	}
	node.Spec.Taints = []corev1.Taint{
		{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule},
	}
	if _, err := clients.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // gone already, unless the test failed
		_ = g.Clients.CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
	})
}
