// Package conformance compares the objects in a hosted cluster with the provider's policy (A-19 to A-21,
// docs/spec/adoption.md). It is a second opinion. Package merge merges a policy and a wrapper, and package operator
// writes the result. If one of them is wrong, or somebody writes past them, it shows here.
//
//   - [Look] judges every NodePool, EC2NodeClass, NodeClaim and Node, and returns a [Report].
//   - A [Finding] says what differs, why, as far as known ([Cause]), and whose business it is ([Party]).
//
// Its input is the policy, the objects as the API server has them, and what the operator remembers of its own writes
// ([Memory]). It shares only the algebra of requirements with the merge. It does not read a wrapper's status, labels
// about who manages an object, or conditions of Karpenter: a tenant may write all of these. If the memory does not
// reach back far enough to know a cause, it says Unknown instead of blaming somebody.
//
// It is pure: no cluster, no clock, no state. Reports do not depend on map order.
package conformance
