// Package fold is the algebra of node label requirements. A list of requirements folds, label by label, into an
// intersection of sets of label values.
//
// A [Requirement] is one entry of a list, as in the APIs of Karpenter and AutoNodePolicy. [Of] folds a list into a
// [Set]. A Set holds one [Allowed] for each of its keys; a key that it does not hold is unrestricted.
//
// An [Allowed] is the set of values that one label key may have. Its universe is every label value, and one more
// member, absent: a node without the label. So "must not exist" is the set {absent}, "anything" is the whole universe,
// and a contradiction is the empty set. The empty set and {absent} are never confused.
//
// Numbers: Gt, Lt, Gte and Lte admit integers in their usual spelling only: 5, not 05. Label values cannot be
// negative, so the smallest is 0. kube-scheduler would also read 05 as 5. So this package may refuse a node that
// kube-scheduler accepts, but never the reverse.
//
// Values are immutable: no function changes its arguments or keeps a caller's slice. The order of values and keys is
// canonical, so equal sets print and compare alike. No function panics. Joiner's package internal/engine/requirement,
// which renames what is here, tests the laws: commutative, associative, idempotent; membership of the intersection is
// membership of both.
//
// The package imports the standard library only. Apart from the aliases of [Canonical], it gives no label a
// special meaning.
package fold
