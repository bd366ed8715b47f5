package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	autonodev1beta1 "github.com/joiner-autoscaler/joiner/autonodepolicy/api/v1beta1"
)

// Group is the API group of AutoNodePolicy, OpenshiftNodePool and OpenshiftEC2NodeClass.
const Group = hypershiftv1.Group

// Version is the API version of this package.
const Version = "v1beta1"

// PolicyName is the name an AutoNodePolicy must have to be recognised; others are ignored (R5).
const PolicyName = autonodev1beta1.PolicyName

// GroupVersion returns the group and version of the types in this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme makes the three kinds and their lists known to the scheme. It fails only when the scheme already
// holds other Go types under these kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &AutoNodePolicy{}, &AutoNodePolicyList{}, &OpenshiftNodePool{},
		&OpenshiftNodePoolList{}, &OpenshiftEC2NodeClass{}, &OpenshiftEC2NodeClassList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
