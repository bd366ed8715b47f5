// Package v1 holds the Go types of the group config.openshift.io, version v1, as far as they are read here: Scheduler,
// with the scheduling groups that protect nodes (docs/spec/node-scheduling-policy.md).
//
// On OpenShift the kind exists already, and its own definition stays in force. The definition made from these types is
// for other clusters, so that the same manifests work there. Like karpenter/v1 the package holds types, names and
// nothing else.
//
// +kubebuilder:object:generate=true
// +groupName=config.openshift.io
package v1
