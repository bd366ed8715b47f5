// Package conformance looks at what is there in a hosted cluster, and compares it with the provider's policy (A-19 to
// A-21, docs/spec/adoption.md). It is a second opinion: what a policy and a wrapper come to is decided by package
// merge and written by package operator, and if one of them is wrong, or somebody writes past them, it shows here.
//
//   - [Look] judges every NodePool, EC2NodeClass, NodeClaim and Node, and returns a [Report].
//   - A [Finding] says what differs, why as far as that can be known ([Cause]), and whose business it is ([Party]).
//
// It gets the policy, the objects as the API server has them, and what the operator remembers of its own writes
// ([Memory]). With the merge it shares only the algebra of requirements. It reads no status of a wrapper, no label
// that says who manages an object, and no condition of Karpenter's: a tenant may write all of these. Where the memory
// is too short to know a cause, it says Unknown, and never blames another party.
//
// It is pure: no cluster, no clock, no state. Map order never reaches a report.
package conformance
