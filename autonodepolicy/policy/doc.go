// Package policy is what a provider's AutoNodePolicy comes to, as values (docs/spec/autonode-policy.md of Joiner's
// repository; the R, G and K ids below are its lines, and promises of this package). It reads and writes no cluster, has no
// clock and keeps nothing, and its signatures hold nobody's API types: whoever calls converts, in ten lines.
//
//   - [Check] finds what is wrong with a policy by itself. A policy that fails it is never applied, in part or whole (G14).
//   - [MergeRequirements] puts the policy's requirements before those of a pool, and says where both contradict; what is to be
//     told the pool's users is [Merged.Compatible].
//   - [RootVolume] is the root volume that a policy forces; [RootVolume.With] and [RootVolume.Check] apply and check it.
//   - [ResolveNodeClass] is which node class a pool may refer to.
//
// The requirements of a policy restrict, its root volume replaces, and nothing in it is a default in the sense of "used when
// the user is silent", whatever the fields of the API are called (G1). How entries for one key fold into one set is package
// fold's (K1).
//
// No function panics, whatever it is given, and none changes its arguments or keeps a part of them.
package policy
