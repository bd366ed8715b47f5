package disruption_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// spare takes the intent off a claim, as another controller does that has listed later.
func (r *rig) spare(t *testing.T, name string) {
	t.Helper()
	var claim karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, &claim); err != nil {
		t.Fatal(err)
	}
	condition.Clear(&claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
	if err := r.server.Status().Update(t.Context(), &claim); err != nil {
		t.Fatal(err)
	}
}

// mark puts an intent on a claim, as another controller does.
func (r *rig) mark(t *testing.T, name, reason string) {
	t.Helper()
	var claim karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, &claim); err != nil {
		t.Fatal(err)
	}
	condition.Set(&claim.Status.Conditions, 0, condition.True(karpenterv1.ConditionTypeDisruptionReason, reason, ""),
		r.clock.Now())
	if err := r.server.Status().Update(t.Context(), &claim); err != nil {
		t.Fatal(err)
	}
}

// L-42: a delete relies on the claim as listed. An intent taken back between list and delete keeps the claim, although
// the list had it.
func TestAClaimThatChangedAfterTheListStays(t *testing.T) {
	t.Parallel()
	r := newRig(t, limitedFleet("2", "a", "b", "c")...)
	r.reconcile(t)
	armed := false
	live := &pausing{Reader: r.server, meanwhile: func() {
		if armed {
			armed = false
			r.spare(t, "a")
		}
	}}
	other := second(t, r, live)
	armed = true
	other.reconcile(t)
	if marked, deleting := r.state(t); armed || len(marked) != 0 || len(deleting) != 0 {
		t.Fatalf("marked %v, deleting %v: want a to stay, whose intent is gone", marked, deleting)
	}
}

// L-42, L-41: two nodes are chosen and one is surplus. The last in the trimming order is taken back, whatever its
// name.
func TestTheLastInTheOrderIsTakenBack(t *testing.T) {
	t.Parallel()
	objects := append(limitedFleet("2", "a", "b", "c"), podOn("a"))
	r := newRig(t, objects...)
	r.reconcile(t)
	r.mark(t, "a", "NodeLimitExceeded")
	r.sync(t)
	r.reconcile(t)
	if marked, deleting := r.state(t); !slices.Equal(marked, []string{"b"}) || len(deleting) != 0 {
		t.Fatalf("marked %v, deleting %v: want a taken back, on which a pod runs", marked, deleting)
	}
}

// D-12: with the gate StaticCapacity off nothing goes for the replicas, and what was chosen for them is taken back.
func TestADormantPoolIsLeftAlone(t *testing.T) {
	t.Parallel()
	objects := softFleet("1", "100%", "a", "b", "c")
	objects[0].(*karpenterv1.NodePool).Spec.Replicas = new(int64(2))
	r := newRig(t, objects...)
	r.off = world.Off{Static: true}
	r.restart()
	r.mark(t, "a", "ReplicasExceeded")
	r.mark(t, "b", "NodeLimitExceeded")
	r.sync(t)
	r.after(t, 3, 0, "")
	if said := strings.Join(r.tape.Said(), "\n"); strings.Count(said,
		"The node stays: the feature gate StaticCapacity is off") != 2 {
		t.Errorf("said:\n%s\nwant both taken back", said)
	}
}

// L-42: two controllers have each chosen a node, and one is surplus. The last in the trimming order is taken back
// first, and nothing is deleted in that step.
func TestTheSurplusIsTakenBackBeforeAnythingGoes(t *testing.T) {
	t.Parallel()
	r := newRig(t, limitedFleet("3", "a", "b", "c", "d")...)
	r.reconcile(t)
	r.mark(t, "d", "NodeLimitExceeded")
	r.sync(t)
	r.reconcile(t)
	if marked, deleting := r.state(t); !slices.Equal(marked, []string{"a"}) || len(deleting) != 0 {
		t.Fatalf("marked %v, deleting %v: want d taken back and nothing deleted yet", marked, deleting)
	}
	r.sync(t)
	r.reconcile(t)
	if marked, deleting := r.state(t); len(marked) != 0 || !slices.Equal(deleting, []string{"a"}) {
		t.Fatalf("marked %v, deleting %v: want a gone and no other", marked, deleting)
	}
}
