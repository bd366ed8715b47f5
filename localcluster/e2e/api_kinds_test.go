package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	groupsv1alpha1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/scheduling/v1alpha1"
)

// kind is one of our kinds: its resource, and a new Go value of its type.
type kind struct {
	resource schema.GroupVersionResource
	newValue func() any
}

// apiKinds lists the kinds of api/ by name, each in the version that is stored.
func apiKinds() map[string]kind {
	return map[string]kind{
		"NodePool": {karpenterv1.GroupVersion().WithResource("nodepools"),
			func() any { return &karpenterv1.NodePool{} }},
		"NodeClaim": {karpenterv1.GroupVersion().WithResource("nodeclaims"),
			func() any { return &karpenterv1.NodeClaim{} }},
		"NodeOverlay": {karpenterv1alpha1.GroupVersion().WithResource("nodeoverlays"),
			func() any { return &karpenterv1alpha1.NodeOverlay{} }},
		"CapacityBuffer": {autoscalingv1beta1.GroupVersion().WithResource("capacitybuffers"), func() any {
			return &autoscalingv1beta1.CapacityBuffer{}
		}},
		"KWOKNodeClass": {kwokv1alpha1.GroupVersion().WithResource("kwoknodeclasses"),
			func() any { return &kwokv1alpha1.KWOKNodeClass{} }},
		"EC2NodeClass": {awsv1.GroupVersion().WithResource("ec2nodeclasses"),
			func() any { return &awsv1.EC2NodeClass{} }},
		"AutoNodePolicy": {hypershiftv1beta1.GroupVersion().WithResource("autonodepolicies"),
			func() any { return &hypershiftv1beta1.AutoNodePolicy{} }},
		"OpenshiftNodePool": {hypershiftv1beta1.GroupVersion().WithResource("openshiftnodepools"),
			func() any { return &hypershiftv1beta1.OpenshiftNodePool{} }},
		"OpenshiftEC2NodeClass": {hypershiftv1.GroupVersion().WithResource("openshiftec2nodeclasses"),
			func() any { return &hypershiftv1.OpenshiftEC2NodeClass{} }},
		"NodeSchedulingGroup": {groupsv1alpha1.GroupVersion().WithResource(groupsv1alpha1.Resource),
			func() any { return &groupsv1alpha1.NodeSchedulingGroup{} }},
		"Scheduler": {configv1.GroupVersion().WithResource("schedulers"),
			func() any { return &configv1.Scheduler{} }},
	}
}

// resourceOf is the resource of an object, in the object's version.
func resourceOf(t *testing.T, object *unstructured.Unstructured) schema.GroupVersionResource {
	t.Helper()
	known, found := apiKinds()[object.GetKind()]
	if !found {
		t.Fatalf("kind %q is not in apiKinds", object.GetKind())
	}
	return object.GroupVersionKind().GroupVersion().WithResource(known.resource.Resource)
}

func typedObject(t *testing.T, name string) any {
	t.Helper()
	known, found := apiKinds()[name]
	if !found {
		t.Fatalf("kind %q is not in apiKinds", name)
	}
	return known.newValue()
}
