package claim_test

import (
	"slices"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// K-58: a node whose pods are not bound without a CSI driver is initialized once its CSINode names that.
func TestK58_ANodeWaitsForTheDriversThatItsPodsNeed(t *testing.T) {
	t.Parallel()
	claim := newClaim()
	claim.Annotations = map[string]string{karpenterv1.NeedsDriversAnnotationKey: "csi.fast"}
	r := newRig(t, claim, joined())
	r.reconcile(t)
	r.makeReady(t)
	says := func(status metav1.ConditionStatus, message string) {
		t.Helper()
		list := r.claim(t).Status.Conditions
		i := slices.IndexFunc(list, func(c karpenterv1.Condition) bool {
			return c.Type == karpenterv1.ConditionTypeInitialized
		})
		if list[i].Status != status || list[i].Message != message {
			t.Errorf("Initialized=%s %q; want %s %q", list[i].Status, list[i].Message, status, message)
		}
	}
	r.reconcile(t)
	r.clock.Advance(6 * time.Second)
	if again := r.reconcile(t).RequeueAfter; again == 0 || again > 2*time.Second {
		t.Errorf("it is looked at again after %s", again)
	}
	missing := "CSINode " + joined().Name + " does not name the CSI driver csi.fast yet, which pods wait for"
	says(metav1.ConditionUnknown, missing)
	node := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: joined().Name}}
	node.Spec.Drivers = []storagev1.CSINodeDriver{{Name: "csi.other", NodeID: "n"}}
	if err := r.server.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t)
	says(metav1.ConditionUnknown, missing)
	node.Spec.Drivers = append(node.Spec.Drivers, storagev1.CSINodeDriver{Name: "csi.fast", NodeID: "n"})
	if err := r.server.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t)
	says(metav1.ConditionTrue, "")
}
