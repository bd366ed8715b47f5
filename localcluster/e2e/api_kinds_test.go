package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
)

// kind is one of our kinds: its resource, and a new Go value of its type.
type kind struct {
	resource schema.GroupVersionResource
	newValue func() any
}

// apiKinds lists the kinds of api/ by name.
func apiKinds() map[string]kind {
	return map[string]kind{
		"NodePool":      {karpenterv1.GroupVersion().WithResource("nodepools"), func() any { return &karpenterv1.NodePool{} }},
		"NodeClaim":     {karpenterv1.GroupVersion().WithResource("nodeclaims"), func() any { return &karpenterv1.NodeClaim{} }},
		"NodeOverlay":   {karpenterv1alpha1.GroupVersion().WithResource("nodeoverlays"), func() any { return &karpenterv1alpha1.NodeOverlay{} }},
		"KWOKNodeClass": {kwokv1alpha1.GroupVersion().WithResource("kwoknodeclasses"), func() any { return &kwokv1alpha1.KWOKNodeClass{} }},
	}
}

func resourceOf(t *testing.T, object *unstructured.Unstructured) schema.GroupVersionResource {
	t.Helper()
	known, found := apiKinds()[object.GetKind()]
	if !found {
		t.Fatalf("kind %q is not in apiKinds", object.GetKind())
	}
	return known.resource
}

func typedObject(t *testing.T, name string) any {
	t.Helper()
	known, found := apiKinds()[name]
	if !found {
		t.Fatalf("kind %q is not in apiKinds", name)
	}
	return known.newValue()
}
