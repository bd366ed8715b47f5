package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of AutoNodePolicy, OpenshiftNodePool and OpenshiftEC2NodeClass.
const Group = "karpenter.hypershift.openshift.io"

// Version is the API version of this package.
const Version = "v1"

// OpenshiftEC2NodeClassKind is the kind in a nodeClassRef.
const OpenshiftEC2NodeClassKind = "OpenshiftEC2NodeClass"

// GroupVersion returns the group and version of the types in this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme makes OpenshiftEC2NodeClass and its list known to the scheme. It fails only when the scheme
// already holds other Go types under these kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &OpenshiftEC2NodeClass{}, &OpenshiftEC2NodeClassList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
