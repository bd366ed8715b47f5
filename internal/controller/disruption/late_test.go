package disruption_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// D-10: a replacement that has joined but is not initialized after ten minutes undoes its command: the old node takes
// pods again, and the replacement is released. Formerly the old node kept its taint until the initialization timeout
// of an hour.
func TestAReplacementThatIsNeverReadyUndoesItsCommand(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "100%", map[string]string{"a": "large"}, "1500m")
	r.drift(t, "a")
	r.turn(t)
	replacements := r.replacements(t)
	if marked, _ := r.state(t); len(marked) != 1 || len(replacements) != 1 || !r.tainted(t, "a") {
		t.Fatalf("marked %v, replacements %v, the test wants one replaced by one", marked, replacements)
	}
	var claim karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: replacements[0]}, &claim); err != nil {
		t.Fatal(err)
	}
	before := claim.DeepCopy()
	claim.Status.ProviderID, claim.Status.NodeName = "fake://late", claim.Name
	for _, kind := range []string{karpenterv1.ConditionTypeLaunched, karpenterv1.ConditionTypeRegistered} {
		condition.Set(&claim.Status.Conditions, 1, condition.True(kind, kind, ""), r.clock.Now())
	}
	if err := r.server.Status().Patch(t.Context(), &claim, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if err := r.server.Create(t.Context(), unready(&claim)); err != nil {
		t.Fatal(err)
	}
	r.clock.Advance(9 * time.Minute)
	r.turn(t)
	if marked, _ := r.state(t); len(marked) != 1 {
		t.Fatalf("marked %v after nine minutes: want it to wait that long; said %q", marked, r.tape.Said())
	}
	r.clock.Advance(2 * time.Minute)
	r.turn(t)
	if marked, deleting := r.state(t); len(marked) != 0 || len(deleting) != 0 || r.tainted(t, "a") {
		t.Fatalf("marked %v, deleting %v: want it taken back", marked, deleting)
	}
	if noted := r.noted(t); !strings.HasSuffix(noted, " 1m0s") {
		t.Errorf("noted %q, want the pause after a replacement that failed", noted)
	}
	for range 3 {
		r.turn(t)
	}
	if _, deleting := r.state(t); len(deleting) != 1 || deleting[0] != replacements[0] {
		t.Fatalf("deleting %v: want the replacement let go", deleting)
	}
}

// unready is the node of a claim, which has joined and is not ready.
func unready(claim *karpenterv1.NodeClaim) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Name, Labels: map[string]string{
			karpenterv1.NodePoolLabelKey: "default",
		}}, Spec: corev1.NodeSpec{ProviderID: claim.Status.ProviderID},
	}
}
