package apiserver_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// the states of an object share what a patch does not touch, and a patch changes none but the newest.
func TestAPatchLeavesFormerStatesAlone(t *testing.T) {
	t.Parallel()
	for name, patch := range map[string]struct {
		format types.PatchType
		data   string
	}{
		"map":     {types.MergePatchType, `{"metadata": {"labels": {"a": "2", "b" : null, "c\u0063": "3"}}}`},
		"pointer": {types.MergePatchType, ` {"spec":{"nodeClassRef":{"name":"other"},"terminationGracePeriod":"2m"}}`},
		"list":    {types.MergePatchType, `{"spec":{"taints":[{"key":"k","value":"]}\"","effect":"NoSchedule"}]}}`},
		"entry":   {types.JSONPatchType, `[{"op":"add","path":"/metadata/labels/a","value":"2"}]`},
		"item": {types.JSONPatchType, `[{"op":"test","path":"/spec/taints/0/key","value":"t"},
			{"op":"add","path":"/spec/taints/0/value","value":"v"}]`},
		"end":   {types.JSONPatchType, `[{"op":"add","path":"/spec/taints/-","value":{"key":"u"}}]`},
		"going": {types.JSONPatchType, `[{"op":"remove","path":"/spec/taints/0"}]`},
		"field": {types.JSONPatchType, `[{"op":"replace","path":"/spec/nodeClassRef/name","value":"other"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			claim := &karpenterv1.NodeClaim{
				ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{"a": "1", "b": "1"}},
				Spec: karpenterv1.NodeClaimSpec{
					NodeClassRef:           &karpenterv1.NodeClassReference{Name: "one"},
					TerminationGracePeriod: &karpenterv1.Duration{Duration: time.Minute},
					Taints:                 []corev1.Taint{{Key: "t"}},
				},
			}
			if err := s.client.Create(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			former := s.server.Peek(claim, client.ObjectKeyFromObject(claim))
			before := former.DeepCopyObject()
			if err := s.client.Patch(t.Context(), claim,
				client.RawPatch(patch.format, []byte(patch.data))); err != nil {
				t.Fatal(err)
			}
			if !equality.Semantic.DeepEqual(former, before) {
				t.Errorf("the former state became %+v", former)
			}
			if former.GetResourceVersion() == claim.ResourceVersion ||
				equality.Semantic.DeepEqual(former.(*karpenterv1.NodeClaim).Labels, claim.Labels) &&
					equality.Semantic.DeepEqual(former.(*karpenterv1.NodeClaim).Spec, claim.Spec) {
				t.Errorf("nothing changed: %+v", claim)
			}
		})
	}
}
