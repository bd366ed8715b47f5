package notice_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/notice"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// V-15: whoever still has a dropped annotation is told what to use instead.
func TestDroppedAnnotationsAreTold(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ key, value, want string }{
		{karpenterv1.DroppedDoNotEvictAnnotationKey, "true", "use karpenter.sh/do-not-disrupt"},
		{karpenterv1.DoNotDisruptAnnotationKey, "soon", "soon"},
		{karpenterv1.DoNotDisruptAnnotationKey, "true", ""},
		{karpenterv1.DoNotDisruptAnnotationKey, "1h", ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", Annotations: map[string]string{test.key: test.value}}}
		tape := &controllertest.Tape{}
		step := &notice.Pods{Client: controllertest.NewServer(t, pod).Build(), Events: tape}
		if _, err := step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "p"}}); err != nil {
			t.Fatal(err)
		}
		said := strings.Join(tape.Said(), "")
		if test.want == "" && said != "" || !strings.Contains(said, test.want) {
			t.Errorf("%s=%s: said %q, want %q", test.key, test.value, said, test.want)
		}
		if said != "" && !notice.Concerns(pod) {
			t.Errorf("%s=%s: the filter of the watch leaves it out", test.key, test.value)
		}
	}
}

func TestDroppedAnnotationsOfNodesAreTold(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{karpenterv1.DroppedDoNotConsolidateAnnotationKey: "true"}}}
	node.Spec.ProviderID = "fake://n"
	claim := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Status: karpenterv1.NodeClaimStatus{ProviderID: node.Spec.ProviderID}}
	for _, test := range []struct {
		objects []client.Object
		owners  notice.Owners
		said    int
	}{
		{[]client.Object{node, claim}, controllertest.Everything{}, 1},
		{[]client.Object{node, claim}, fleet.New(), 0}, // another program's
		{[]client.Object{node}, controllertest.Everything{}, 0},
	} {
		tape := &controllertest.Tape{}
		step := &notice.Nodes{Client: controllertest.NewServer(t, test.objects...).Build(), Fleet: test.owners, Events: tape}
		if _, err := step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "n"}}); err != nil || len(tape.Said()) != test.said || !notice.Concerns(node) {
			t.Errorf("%d objects, %T: said %q, error %v; want %d events", len(test.objects), test.owners, tape.Said(), err, test.said)
		}
	}
}
