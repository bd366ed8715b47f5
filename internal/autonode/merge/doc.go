// Package merge is the pure part of AutoNodePolicy (docs/spec/autonode-policy.md): what a provider's policy and a
// user's wrapper come to, as values. It reads and writes no cluster, has no clock and keeps nothing. The operator
// gathers, asks here, and acts on the answer.
//
//   - [NodePool] merges a policy with an OpenshiftNodePool into the NodePool to write, and says where both contradict.
//   - [EC2NodeClass] does the same for an OpenshiftEC2NodeClass; the root volume is the provider's alone.
//   - [Check] finds what is wrong with a policy by itself. The two functions above call it too: a policy that fails it
//     is never applied, in part or whole (G14).
//   - [Ready] is the policy's condition, from what each wrapper says of it.
//   - [Admission] are the admission policies that keep everyone but the operator from writing the merged objects.
//
// The requirements of a policy restrict, its root volume replaces, and nothing in it is a default in the sense of
// "used when the user is silent", whatever the fields are called (G1). How entries for one key fold into one set is
// not decided here: package fold of the module autonodepolicy does that for pools of every kind, so that what is
// merged and what is planned with cannot differ (K1).
//
// Start with nodepool.go. The scripts below testdata/scripts are the manual.
package merge
