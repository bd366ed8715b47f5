// Package admission builds the admission policies of a guest cluster, as objects to write there. [Policies] keeps
// everyone except the operator from writing what is made from wrappers (R34 to R39, G3 to G5). [ClaimRule] keeps
// NodeClaims within the provider's policy. The package reads and writes no cluster, has no clock and keeps no
// state.
//
// The R and G ids are lines of docs/spec/autonode-policy.md in Joiner's repository, and promises of this package. No
// function panics. None changes its arguments or keeps a part of them.
package admission
