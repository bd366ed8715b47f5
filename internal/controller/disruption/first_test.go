package disruption_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// fullFleet is a pool at its hard limit of two small nodes, each with a pod that fits on no other.
func fullFleet(t *testing.T, annotations map[string]string) *rig {
	t.Helper()
	pool := newPool("2")
	pool.Annotations = annotations
	pool.Spec.HardLimits = karpenterv1.Limits{"nodes": resource.MustParse("2")}
	pool.Status.Conditions = []karpenterv1.Condition{
		{Type: karpenterv1.ConditionTypeReady, Status: metav1.ConditionTrue},
	}
	objects := []client.Object{pool, podAsking("web-a", "a", "1500m"), podAsking("web-b", "b", "1500m")}
	for _, name := range []string{"a", "b"} {
		n, claim := sized(name, "small")
		claim.Finalizers = []string{karpenterv1.TerminationFinalizer}
		objects = append(objects, n, claim)
	}
	r := newRig(t, objects...)
	r.offer(t)
	r.drift(t, "a", "b")
	return r
}

const firstDecisions = "karpenter_voluntary_disruption_terminate_first_decisions_total"

// K-48: at the hard limit one node goes before its replacement comes, and no other while its pods wait.
func TestK48_OneNodeGoesFirstAtTheHardLimit(t *testing.T) {
	t.Parallel()
	r := fullFleet(t, map[string]string{karpenterv1.TerminateFirstAnnotationKey: "true"})
	for range 4 {
		r.turn(t)
	}
	marked, deleting := r.state(t)
	if len(marked) != 0 || len(deleting) != 1 || len(r.list(t)) != 2 {
		t.Fatalf("marked %v, deleting %v, %d claims: want one gone first, the other one waiting, and nothing launched",
			marked, deleting, len(r.list(t)))
	}
	if n := controllertest.Count(t, r.registry, firstDecisions, "default", "drifted", "hard-limit"); n != 1 {
		t.Errorf("%s is %v, want 1", firstDecisions, n)
	}
	r.lose(t, deleting[0])
	other := map[string]string{"a": "b", "b": "a"}[deleting[0]]
	if marked, deleting := r.state(t); slices.Contains(marked, other) || slices.Contains(deleting, other) {
		t.Errorf("marked %v, deleting %v: the other one is to wait", marked, deleting)
	}
}

// K-48, L-34: without the annotation, or with an invalid value, both stay, and the pool reports that its hard limit is
// why.
func TestK48_NoneGoesFirstUnasked(t *testing.T) {
	t.Parallel()
	for _, annotations := range []map[string]string{nil, {karpenterv1.TerminateFirstAnnotationKey: "yes"},
		{karpenterv1.TerminateFirstAnnotationKey: "false"}} {
		r := fullFleet(t, annotations)
		for range 4 {
			r.turn(t)
		}
		if marked, deleting := r.state(t); len(marked)+len(deleting) != 0 {
			t.Errorf("%v: marked %v, deleting %v: want both to stay", annotations, marked, deleting)
		}
		if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, "due to node hard limit") {
			t.Errorf("%v: said\n%s", annotations, said)
		}
	}
}

// reserve has a small type on offer in a reservation of two, and nothing else.
func (r *rig) reserve(t *testing.T) {
	t.Helper()
	err := r.store.SetCatalog(world.ClassRef{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"},
		catalog.Catalog{
			Types: []catalog.Type{
				{Name: "small", Capacity: resources.Amounts{"cpu": 2000, "memory": 8 << 30, "pods": 110},
					Offerings: []catalog.Offering{{Zone: "a", CapacityType: catalog.Reserved, Reservation: 2,
						Price: 1_000_000, Available: true}}}}})
	if err != nil {
		t.Fatal(err)
	}
}

// K-48: a node in a used-up reservation goes before its replacement comes, one of the pool at a time; with the gate
// TerminateFirstDrift off none does.
func TestK48_ANodeLeavesItsReservationFirst(t *testing.T) {
	t.Parallel()
	for _, off := range []bool{false, true} {
		pool := newPool("2")
		pool.Status.Conditions = []karpenterv1.Condition{
			{Type: karpenterv1.ConditionTypeReady, Status: metav1.ConditionTrue},
		}
		objects := []client.Object{pool, podAsking("web-a", "a", "1500m"), podAsking("web-b", "b", "1500m")}
		for _, name := range []string{"a", "b"} {
			n, claim := sized(name, "small")
			n.Labels[karpenterv1.CapacityTypeLabelKey],
				claim.Labels[karpenterv1.CapacityTypeLabelKey] = catalog.Reserved, catalog.Reserved
			claim.Finalizers = []string{karpenterv1.TerminationFinalizer}
			objects = append(objects, n, claim)
		}
		r := newRig(t, objects...)
		r.off = world.Off{First: off}
		r.restart()
		r.reserve(t)
		r.drift(t, "a", "b")
		for range 4 {
			r.turn(t)
		}
		marked, deleting := r.state(t)
		want := map[bool]int{false: 1, true: 0}[off]
		if len(marked) != 0 || len(deleting) != want || len(r.list(t)) != 2 {
			t.Fatalf("off %t: marked %v, deleting %v, %d claims: want %d gone first, and nothing launched", off,
				marked, deleting, len(r.list(t)), want)
		}
		if off {
			continue
		}
		if n := controllertest.Count(t, r.registry, firstDecisions, "default", "drifted",
			"no-reserved-capacity"); n != 1 {
			t.Errorf("%s is %v, want 1", firstDecisions, n)
		}
	}
}
