// Package fold is the algebra of node label requirements: what a pool's list of requirements comes to, label by label, is
// an intersection of sets of label values.
//
// A [Requirement] is one entry of such a list, as the APIs of Karpenter and of AutoNodePolicy have it; [Of] folds a list
// into a [Set]. A Set holds one [Allowed] for each of its keys; a key that it does not hold is unrestricted.
//
// An [Allowed] is the set of values that one label key may have. Its universe is every label value and,
// as a member like any other, absent: a node without the label. So "must not exist" is the set {absent},
// "anything" is the whole universe, and a contradiction is the empty set: absent is never confused with it.
//
// Numbers. Gt, Lt, Gte and Lte admit integers in their usual spelling only: 5, not 05. Label values cannot be
// negative, so the smallest is 0. kube-scheduler would also read 05 as 5; leaving that out can only make us
// refuse a node that it would take, never the reverse.
//
// Values are immutable: no function changes its arguments or keeps a caller's slice. The order of values and
// keys is canonical, so that equal sets print and compare alike. The laws (commutative, associative,
// idempotent; membership of the intersection is membership of both) are tested in Joiner's package
// internal/engine/requirement, which has other names for what is here. No function panics.
//
// The package imports the standard library only. It knows nothing of which labels are well known.
package fold
