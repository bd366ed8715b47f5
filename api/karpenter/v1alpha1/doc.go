// Package v1alpha1 holds the Go types of the group karpenter.sh, version v1alpha1: NodeOverlay (V-02).
//
// A NodeOverlay corrects what the cloud provider says about instance types: their price, or extended
// resources it does not know of. Like karpenter/v1 the package holds types and nothing else.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1alpha1
