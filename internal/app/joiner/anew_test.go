package joiner

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// D-03: a pod of a StatefulSet that is found to be another one has left its node, also when no watch has shown how.
func TestAPodMadeAnewHasLeftItsNode(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	claim := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c1"}, Status: karpenterv1.NodeClaimStatus{
		NodeName: "n1",
	}}
	if err := s.server.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if err := s.server.Status().Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	first, second := pending("db-0"), pending("db-0")
	first.Spec.NodeName, second.UID = "n1", "another"
	s.parts.Feed.Apply(first)
	s.woken = nil
	s.parts.Feed.Change(first, second)
	if !slices.Contains(s.woken, Claims+" c1") || !slices.Contains(s.woken, Provisioning) {
		t.Errorf("woken %v: want the claim of the node that the first one has left, and planning for the second",
			s.woken)
	}
	s.woken = nil
	s.parts.Feed.Change(second, second)
	if slices.Contains(s.woken, Claims+" c1") {
		t.Errorf("woken %v: nothing has left the node", s.woken)
	}
}

// a pool that was deleted and applied again is looked at, however much it is like the one before.
func TestAPoolMadeAnewIsLookedAt(t *testing.T) {
	t.Parallel()
	pool := func(uid types.UID) *karpenterv1.NodePool {
		return &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: uid, Generation: 1}}
	}
	watch := poolWatches(nil, nil)[0]
	if got := watch.Heard(t.Context(), pool("first"), pool("first")); len(got) > 0 {
		t.Errorf("what has not changed wakes %v", got)
	}
	if got := watch.Heard(t.Context(), pool("first"), pool("second")); len(got) == 0 || got[0].Name != "web" {
		t.Errorf("a pool that was made anew wakes %v, want web", got)
	}
}
