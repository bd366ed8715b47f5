package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of EC2NodeClass.
const Group = "karpenter.k8s.aws"

// Version is the API version of this package.
const Version = "v1"

// Names of the kind, as a nodeClassRef has them.
const (
	// EC2NodeClassKind is the kind in a nodeClassRef.
	EC2NodeClassKind = "EC2NodeClass"
	// NodeClassLabelKey is the label of nodes that holds the name of their EC2NodeClass.
	NodeClassLabelKey = Group + "/ec2nodeclass"
)

// UbuntuCompatibilityAnnotationKey on an EC2NodeClass that was written in v1beta1 with the family Ubuntu, which v1
// does not have, names what stands for it, joined by commas: amiFamily (AL2), blockDeviceMappings (Ubuntu's default),
// incompatible (an image that does not exist, since none was chosen: nothing is launched).
const UbuntuCompatibilityAnnotationKey = "compatibility." + Group + "/v1beta1-ubuntu"

// TerminationFinalizer on an EC2NodeClass holds its deletion until what was made for it is gone.
const TerminationFinalizer = Group + "/termination"

// GroupVersion returns the group and version of the types in this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme makes EC2NodeClass and its list known to the scheme. It fails only when the scheme already
// holds other Go types under these kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &EC2NodeClass{}, &EC2NodeClassList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
