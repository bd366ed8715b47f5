// Package v1beta1 holds the Go types of AutoNodePolicy (group karpenter.hypershift.openshift.io, version v1beta1) and
// its CustomResourceDefinition.
//
// An AutoNodePolicy stands in the management cluster, in the namespace of a hosted control plane, and says what the
// provider allows for the nodes of the hosted cluster. What must hold is in docs/spec/autonode-policy.md of Joiner's
// repository. The package holds types, names and nothing else; package policy says what a policy comes to.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.hypershift.openshift.io
package v1beta1
