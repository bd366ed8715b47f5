// Package v1beta1 holds the Go types of the group autoscaling.x-k8s.io, version v1beta1: CapacityBuffer (K-35).
//
// A CapacityBuffer asks for room that stays free for pods to come. The kind is shared by autoscalers: Cluster
// Autoscaler and Karpenter read the same objects. The package holds types and nothing else.
//
// +kubebuilder:object:generate=true
// +groupName=autoscaling.x-k8s.io
package v1beta1
