// Package v1beta1 holds the Go types of the group karpenter.hypershift.openshift.io, version v1beta1:
// AutoNodePolicy, OpenshiftNodePool and OpenshiftEC2NodeClass.
//
// An AutoNodePolicy stands in the management cluster, in the namespace of a hosted control plane, and says
// what the provider allows. The two other kinds stand in the hosted cluster; its users write them in place
// of a NodePool and an EC2NodeClass, which are made from them with the policy applied. What must hold is in
// docs/spec/autonode-policy.md.
//
// Like karpenter/v1 the package holds types, names and nothing else. Start with autonodepolicy.go; the
// conditions and their reasons stand in conditions.go.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.hypershift.openshift.io
package v1beta1
