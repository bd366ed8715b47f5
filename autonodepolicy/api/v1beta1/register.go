package v1beta1

import (
	_ "embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of AutoNodePolicy.
const Group = "karpenter.hypershift.openshift.io"

// Version is the API version of this package.
const Version = "v1beta1"

// PolicyName is the name that an AutoNodePolicy must have to be recognised; others are ignored (R5).
const PolicyName = "default"

//go:embed karpenter.hypershift.openshift.io_autonodepolicies.yaml
var crd string

// CRD returns the CustomResourceDefinition of AutoNodePolicy as YAML, for the management cluster: guests must not have
// it (R1, R8).
func CRD() []byte { return []byte(crd) }

// GroupVersion returns the group and version of the types in this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme makes AutoNodePolicy and its list known to the scheme. It fails only when the scheme already holds other
// Go types under these kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &AutoNodePolicy{}, &AutoNodePolicyList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
