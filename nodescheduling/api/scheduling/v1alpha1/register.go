package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of NodeSchedulingGroup.
const Group = "scheduling.joiner.sh"

// Version is the API version of this package.
const Version = "v1alpha1"

// Resource is what the API calls NodeSchedulingGroups, and Kind each of them.
const (
	Resource = "nodeschedulinggroups"
	Kind     = "NodeSchedulingGroup"
)

// GroupVersion returns the group and version of the types in this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme makes NodeSchedulingGroup and its list known to the scheme. It fails only when the scheme already holds
// other Go types under these kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &NodeSchedulingGroup{}, &NodeSchedulingGroupList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
