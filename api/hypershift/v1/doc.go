// Package v1 holds the Go types of the group karpenter.hypershift.openshift.io, version v1:
// OpenshiftEC2NodeClass, which users of a hosted cluster write in place of an EC2NodeClass.
//
// Version v1beta1 of the kind has the same schema, and its Go type shares the spec and status of this
// package; AutoNodePolicy and OpenshiftNodePool are in v1beta1 only. Like karpenter/v1 the package holds
// types, names and nothing else. The CRD has no defaults here: what is unset is decided when the
// EC2NodeClass is written. What must hold is in docs/spec/autonode-policy.md.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.hypershift.openshift.io
package v1
