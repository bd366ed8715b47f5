package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of KWOKNodeClass.
const Group = "karpenter.kwok.sh"

// Version is the API version of this package.
const Version = "v1alpha1"

// Labels of nodes that the provider makes. A NodePool may use them in its requirements.
const (
	// InstanceSizeLabelKey is the size of the instance type, for example 4x.
	InstanceSizeLabelKey = Group + "/instance-size"
	// InstanceFamilyLabelKey is the family of the instance type, for example c.
	InstanceFamilyLabelKey = Group + "/instance-family"
	// InstanceCPULabelKey is the number of cores.
	InstanceCPULabelKey = Group + "/instance-cpu"
	// InstanceMemoryLabelKey is the amount of memory.
	InstanceMemoryLabelKey = Group + "/instance-memory"
	// NodeClassLabelKey is the name of the KWOKNodeClass.
	NodeClassLabelKey = Group + "/kwoknodeclass"
)

// GroupVersion returns the group and version of the types in this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme makes KWOKNodeClass and its list known to the scheme. It fails only when the scheme
// already holds other Go types under these kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &KWOKNodeClass{}, &KWOKNodeClassList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
