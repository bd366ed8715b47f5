// Package v1beta1 holds the Go types of the group karpenter.sh, version v1beta1: NodePool and NodeClaim as they were
// before v1 (V-20). Objects are stored as v1; internal/convert turns one version into the other and loses nothing.
//
// Like karpenter/v1 the package holds types, names and their reading and writing as JSON, and nothing else. What did
// not change between the versions has the type of v1. Where v1 allows more (units of a duration, operators), so does
// v1beta1, so that an object written in v1 can be read, edited and written again in v1beta1.
//
// Whatever the schema accepts can be converted: a mistake is refused when it is written, with the field, the value and
// what is allowed, and not found out when the object is read (V-24).
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1beta1
