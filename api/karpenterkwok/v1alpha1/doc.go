// Package v1alpha1 holds the Go types of the group karpenter.kwok.sh, version v1alpha1: KWOKNodeClass
// (V-02), the node class of the provider that only pretends to launch nodes.
//
// Like karpenter/v1 the package holds types, names and nothing else.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.kwok.sh
package v1alpha1
