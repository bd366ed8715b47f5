// Package v1alpha1 holds the group scheduling.joiner.sh, version v1alpha1: NodeSchedulingGroup, by which
// administrators protect groups of nodes while the cluster runs, where OpenShift's Scheduler has no field for that
// (docs/control-plane-protection.md).
//
// Like config/v1 the package holds types, names and nothing else.
//
// +kubebuilder:object:generate=true
// +groupName=scheduling.joiner.sh
package v1alpha1
