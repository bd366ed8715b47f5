// Package policy computes the effect of a provider's AutoNodePolicy, as values. The R, G and K ids below are lines of
// docs/spec/autonode-policy.md in Joiner's repository, and promises of this package. It reads and writes no cluster,
// has no clock and keeps no state. Its signatures use no API types: callers convert, in ten lines.
//
//   - [Check] finds what is wrong with a policy by itself. A policy that fails is not applied, not even in part (G14).
//   - [MergeRequirements] puts the policy's requirements before those of a pool, and reports where they conflict.
//     [Merged.Compatible] is the condition for the pool's users.
//   - [RootVolume] is a root volume. [RootVolume.With] applies what a policy forces, [RootVolume.Check] checks the
//     result.
//   - [ResolveNodeClass] returns the node class of a pool, or why the pool may not refer to it.
//
// A policy's requirements restrict, and its root volume replaces. Nothing in it is a default that applies only when
// the user is silent, whatever the API's fields are called (G1). Package fold folds entries for one key into one set
// (K1).
//
// No function panics, whatever its arguments. None changes its arguments or keeps a part of them.
package policy
