// Package merge is the pure part of AutoNodePolicy (docs/spec/autonode-policy.md): it merges a provider's policy with
// a user's wrapper, as values. It reads and writes no cluster, has no clock and keeps no state. The operator gathers,
// asks here, and acts on the answer.
//
//   - [NodePool] merges a policy with an OpenshiftNodePool into the NodePool to write, and reports where they
//     conflict.
//   - [EC2NodeClass] does the same for an OpenshiftEC2NodeClass; the root volume is the provider's alone.
//   - [Check] finds what is wrong with a policy by itself. The two functions above call it too: a policy that fails is
//     not applied, not even in part (G14).
//   - [Ready] returns the policy's condition, from what each wrapper says about it.
//   - [Admission] returns the admission policies that keep everyone except the operator from writing the merged
//     objects.
//
// A policy's requirements restrict, and its root volume replaces. Nothing in it is a default that applies only when
// the user is silent, whatever the fields are called (G1). Package fold of the module autonodepolicy folds entries for
// one key into one set, for pools of every kind. So the merge and the planning cannot differ (K1).
//
// Start with nodepool.go. The scripts below testdata/scripts are the manual.
package merge
