// Package v1 holds the Go types of the group karpenter.sh, version v1: NodePool and NodeClaim.
//
// A NodePool says which nodes may be created and how they may be disrupted. A NodeClaim is one
// request for one node. The requirements these types meet are listed in docs/spec/api.md (V-01 to
// V-15) and docs/spec/node-limits.md (L-01 to L-06).
//
// The package is what programs outside this repository import. It therefore holds types, names and
// their reading and writing as JSON, and nothing else: no defaults (the CRD has them), no validation
// (the CRD has it), no helpers. Whatever the CRD accepts, these types can decode: one odd object
// must never keep a controller from listing the others.
//
// A program that changes the metadata or status of a NodeClaim sends a patch, not an update: encoding
// may spell a quantity anew (8192Mi as 8Gi), which the API server takes for a change of the immutable
// spec.
//
// Start with nodepool.go and nodeclaim.go. Names shared with users, such as labels, annotations and
// condition types, stand in labels.go and conditions.go. The CRDs in api/crd are generated from
// this package by tools/generate.sh.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1
