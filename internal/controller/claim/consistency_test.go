package claim_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// K-14: a node with less than nine tenths of what was promised contradicts its claim, and a condition and an event say
// how much. Resources that no pod requested do not count. The condition goes back when the node has enough.
func TestK14_ANodeWithLessThanPromisedIsTold(t *testing.T) {
	t.Parallel()
	cpu, promised := corev1.ResourceCPU, resource.MustParse("100")
	for has, want := range map[string]metav1.ConditionStatus{"89": metav1.ConditionFalse, "90": metav1.ConditionTrue} {
		for _, asked := range []string{"1", "0"} {
			if asked == "0" {
				want = metav1.ConditionTrue
			}
			r := settled(t, nil, func(one *karpenterv1.NodeClaim) {
				one.Spec.Resources.Requests = corev1.ResourceList{cpu: resource.MustParse(asked)}
			})
			state := func() metav1.ConditionStatus {
				found, _ := condition.Get(r.claim(t).Status.Conditions, karpenterv1.ConditionTypeConsistentStateFound)
				return found.Status
			}
			one := r.claim(t)
			one.Status.Capacity = corev1.ResourceList{cpu: promised}
			if err := r.server.Status().Update(t.Context(), one); err != nil {
				t.Fatal(err)
			}
			r.setCapacity(t, "100")
			if r.reconcile(t); state() != metav1.ConditionTrue {
				t.Errorf("a node as it was promised: %q", state())
			}
			r.setCapacity(t, has)
			r.reconcile(t)
			said := strings.Contains(strings.Join(r.tape.Said(), "\n"), "FailedConsistencyCheck: node n1 has "+has+
				" of cpu, and 100 were promised (89.0 %)")
			if got := state(); got != want || said != (want == metav1.ConditionFalse) {
				t.Errorf("%s of 100 cpu, %s asked for: %q, told %t; want %q", has, asked, got, said, want)
			}
			r.setCapacity(t, "100")
			if r.reconcile(t); state() != metav1.ConditionTrue {
				t.Errorf("with all of it: %q", state())
			}
		}
	}
}

// setCapacity gives the node so much cpu.
func (r *rig) setCapacity(t *testing.T, cpu string) {
	t.Helper()
	var node corev1.Node
	if err := r.server.Get(t.Context(), client.ObjectKey{Name: "n1"}, &node); err != nil {
		t.Fatal(err)
	}
	if node.Status.Capacity == nil {
		node.Status.Capacity = corev1.ResourceList{}
	}
	node.Status.Capacity[corev1.ResourceCPU] = resource.MustParse(cpu)
	if err := r.server.Status().Update(t.Context(), &node); err != nil {
		t.Fatal(err)
	}
}
