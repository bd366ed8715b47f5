// Package admission makes the admission policies of a guest cluster, as objects to write there: those that keep everyone but
// the operator from writing what is made from wrappers ([Policies], R34 to R39, G3 to G5). It reads and writes no cluster,
// has no clock and keeps nothing.
//
// The R and G ids are lines of docs/spec/autonode-policy.md in Joiner's repository, and promises of this package. No function
// panics, and none changes its arguments or keeps a part of them.
package admission
