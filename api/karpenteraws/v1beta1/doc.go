// Package v1beta1 holds the Go types of the group karpenter.k8s.aws, version v1beta1: EC2NodeClass as it was before v1
// (V-20). docs/migrating-v1beta1.md lists the differences.
//
// Like karpenter/v1beta1 the package holds types and names only, and has the types of v1 where nothing changed.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.k8s.aws
package v1beta1
