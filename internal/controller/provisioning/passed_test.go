package provisioning_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// P-23: a pod that kube-scheduler has passed over says where.
func TestAPodThatWasPassedOverSaysSo(t *testing.T) {
	t.Parallel()
	pod := somePod()
	pod.PassedOver = "n1,n2"
	r := newRig(pod)
	if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said,
		"a FailedScheduling: kube-scheduler binds other pods, but not this one to n1,n2") {
		t.Fatalf("said %q", said)
	}
}
