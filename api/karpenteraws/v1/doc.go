// Package v1 holds the Go types of the group karpenter.k8s.aws, version v1: EC2NodeClass (V-02), the node
// class of Amazon EC2.
//
// Like karpenter/v1 the package holds types, names and their reading and writing as JSON, and nothing
// else.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.k8s.aws
package v1
