package joiner

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// B-12: what the steps of a node's end write themselves calls for no further step, which would write onto a node that is gone.
// What they wait for does.
func TestWhatWakesTheEndOfANode(t *testing.T) {
	t.Parallel()
	watch := nodeWatches(nil)[0]
	going := func(change func(*corev1.Node)) *corev1.Node {
		at := metav1.NewTime(time.Unix(0, 0))
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", DeletionTimestamp: &at,
			Finalizers: []string{karpenterv1.TerminationFinalizer}}}
		change(n)
		return n
	}
	nothing := func(*corev1.Node) {}
	for name, c := range map[string]struct {
		old, fresh func(*corev1.Node)
		wakes      bool
	}{
		"its taint":         {nothing, func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: karpenterv1.DisruptedTaintKey}} }, false},
		"its label":         {nothing, func(n *corev1.Node) { n.Labels = map[string]string{"a": "b"} }, false},
		"a provider's mark": {nothing, func(n *corev1.Node) { n.Annotations = map[string]string{"a": "b"} }, false},
		"a finalizer":       {nothing, func(n *corev1.Node) { n.Finalizers = append(n.Finalizers, "b") }, true},
		"its deletion":      {func(n *corev1.Node) { n.DeletionTimestamp = nil }, nothing, true},
		"its machine":       {nothing, func(n *corev1.Node) { n.Spec.ProviderID = "b" }, true},
		"its readiness": {nothing, func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		}, true},
	} {
		if got := watch.Requests(t.Context(), going(c.old), going(c.fresh)); len(got) > 0 != c.wakes {
			t.Errorf("%s wakes %v, want %t", name, got, c.wakes)
		}
	}
	if got := watch.Requests(t.Context(), nil, going(nothing)); len(got) != 1 {
		t.Errorf("a node that is found while it goes wakes %v", got)
	}
}
