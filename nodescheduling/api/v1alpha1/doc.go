// Package v1alpha1 holds the configuration of the admission plugin that protects groups of nodes: the kind
// NodeSchedulingPolicyConfig of the group scheduling.openshift.io (docs/spec/node-scheduling-policy.md).
//
// It is a file that the API server, or the webhook in its place, reads at start. It is no API object: nobody can read
// or change it through the API (N6). Package evaluator reads and checks it.
//
// +kubebuilder:object:generate=true
// +groupName=scheduling.openshift.io
package v1alpha1
