package disruption_test

import (
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/disruption"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// butOther owns all but one claim.
type butOther struct{ controllertest.Everything }

func (butOther) OwnsClaim(claim *karpenterv1.NodeClaim) bool { return claim.Name != "other" }

// L-42, X-02: another program's claim has our pool's label. At a limit of 1 one of a and b is surplus. It is marked,
// and a user deletes the other one. Then the marked one stays, since the other program's claim cannot stay in its
// place.
func TestAClaimOfAnotherProgramIsNotTooMany(t *testing.T) {
	t.Parallel()
	r := newRig(t, limitedFleet("1", "a", "b")...)
	r.store = world.New(world.Config{Now: r.clock.Now, Fleet: butOther{}})
	applier := apply.New(apply.Config{
		Client: r.server, Live: r.server, Store: r.store, Fleet: butOther{}, Now: r.clock.Now, Log: logr.Discard(),
	})
	r.step = disruption.New(disruption.Config{
		Client: r.server, Live: r.server, Picture: r.store, Fleet: butOther{}, Applier: applier, Events: r.tape,
		Metrics: metrics.New(prometheus.NewRegistry()), Namespace: "kube-system",
		Ready: func() bool { return true }, Now: r.clock.Now, Log: logr.Discard(),
	})
	labels := map[string]string{karpenterv1.NodePoolLabelKey: "default"}
	theirs := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: labels}}
	if err := r.server.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	r.sync(t)
	r.reconcile(t)
	if marked, _ := r.state(t); !slices.Equal(marked, []string{"a"}) {
		t.Fatalf("marked %v: want one of two at a limit of 1", marked)
	}
	b := &karpenterv1.NodeClaim{}
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "b"}, b); err != nil {
		t.Fatal(err)
	}
	if err := r.server.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r.reconcile(t)
		r.sync(t)
	}
	if marked, deleting := r.state(t); len(marked) != 0 || !slices.Equal(deleting, []string{"b"}) {
		t.Errorf("marked %v, deleting %v: want a to stay", marked, deleting)
	}
}

// madeFor makes the claim one that the pool of that name has made, whatever its label says.
func madeFor(t *testing.T, r *rig, name, pool string) {
	t.Helper()
	claim := &karpenterv1.NodeClaim{}
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, claim); err != nil {
		t.Fatal(err)
	}
	claim.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: karpenterv1.GroupVersion().String(), Kind: "NodePool", Name: pool,
		UID: types.UID("uid-of-" + pool),
	}}
	if err := r.server.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	r.sync(t)
}

// L-13, L-42: a user gave another pool's claim our pool's label. It does not count for us, neither when nodes are
// chosen nor when they are judged again: b goes for another cause, so a stays.
func TestAClaimOfAnotherPoolIsNotTooMany(t *testing.T) {
	t.Parallel()
	r := newRig(t, limitedFleet("2", "a", "b", "c")...)
	madeFor(t, r, "c", "another")
	r.reconcile(t)
	if marked, _ := r.state(t); len(marked) != 0 {
		t.Fatalf("marked %v: want none of two at a limit of 2", marked)
	}
	r.setLimit(t, "1")
	r.sync(t)
	r.reconcile(t)
	if marked, _ := r.state(t); !slices.Equal(marked, []string{"a"}) {
		t.Fatalf("marked %v: want one of two at a limit of 1", marked)
	}
	b := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	if err := r.server.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r.reconcile(t)
		r.sync(t)
	}
	if marked, deleting := r.state(t); len(marked) != 0 || !slices.Equal(deleting, []string{"b"}) {
		t.Errorf("marked %v, deleting %v: want a to stay", marked, deleting)
	}
}
