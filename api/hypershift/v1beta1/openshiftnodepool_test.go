package v1beta1

import (
	"reflect"
	"testing"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// R9: a field that a NodePool gains or loses, an OpenshiftNodePool gains or loses too.
func TestAnOpenshiftNodePoolHasTheFieldsOfANodePool(t *testing.T) {
	t.Parallel()
	for _, pair := range []struct{ own, karpenter reflect.Type }{
		{reflect.TypeFor[OpenshiftNodePoolSpec](), reflect.TypeFor[karpenterv1.NodePoolSpec]()},
		{reflect.TypeFor[OpenshiftNodeClaimTemplate](), reflect.TypeFor[karpenterv1.NodeClaimTemplate]()},
		{reflect.TypeFor[OpenshiftNodeClaimTemplateSpec](), reflect.TypeFor[karpenterv1.NodeClaimTemplateSpec]()},
	} {
		if pair.own.NumField() != pair.karpenter.NumField() {
			t.Errorf("%s has %d fields, %s has %d", pair.own, pair.own.NumField(), pair.karpenter,
				pair.karpenter.NumField())
		}
		for theirs := range pair.karpenter.Fields() {
			own, found := pair.own.FieldByName(theirs.Name)
			if !found {
				t.Errorf("%s has no field %s", pair.own, theirs.Name)
			} else if own.Type != theirs.Type && theirs.Name != "Template" && theirs.Name != "Spec" {
				t.Errorf("%s.%s is of type %s, in %s of type %s", pair.own, theirs.Name, own.Type, pair.karpenter,
					theirs.Type)
			}
		}
	}
}
