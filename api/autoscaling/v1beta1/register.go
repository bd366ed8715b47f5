package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of CapacityBuffer.
const Group = "autoscaling.x-k8s.io"

// Version is the API version of this package.
const Version = "v1beta1"

// GroupVersion returns the group and version of the types in this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme makes CapacityBuffer and its list known to the scheme. It fails only when the scheme already holds other
// Go types under these kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &CapacityBuffer{}, &CapacityBufferList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
