package pool_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// D-08, D-14: the status says what each reason is allowed, by which budget. While disruption is paused it is nothing,
// with the reason of the pause, which later disappears.
func TestTheStatusSaysWhatMayBeDisrupted(t *testing.T) {
	t.Parallel()
	object := newPool()
	object.Spec.Disruption.Budgets = []karpenterv1.Budget{
		{Nodes: intstr.FromString("3")},
		{Nodes: intstr.FromString("1"), Reasons: []karpenterv1.DisruptionReason{"Drifted"}},
	}
	r := newRig(t, object)
	look := func(drifted, empty int64, budget, paused string) {
		t.Helper()
		status := r.reconcile(t).Status.Disruption
		if status == nil || len(status.Allowed) != 3 {
			t.Fatalf("status %+v, want three reasons", status)
		}
		d, e := status.Allowed[0], status.Allowed[1]
		if d.Reason != "Drifted" || *d.Nodes != drifted || d.Budget != budget || e.Reason != "Empty" ||
			*e.Nodes != empty || status.Paused != paused {
			t.Errorf("status %+v, paused %q", status.Allowed, status.Paused)
		}
	}
	look(1, 3, "spec.disruption.budgets[1]: 1", "")
	r.paused = "release week"
	look(0, 0, "", "release week")
	r.paused = ""
	look(1, 3, "spec.disruption.budgets[1]: 1", "")
	writes := r.writes
	if r.reconcile(t); r.writes != writes {
		t.Error("nothing has changed, nothing is to be written")
	}
}
