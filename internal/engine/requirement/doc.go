// Package requirement is the algebra of node label requirements: what a pod asks for, what a pool allows
// and what an instance type is are all sets of label values, and planning is their intersection.
//
// A [Requirement] is the set of values that one label key may have. Its universe is every label value and,
// as a member like any other, absent: a node without the label. So "must not exist" is the set {absent},
// "anything" is the whole universe, and a contradiction is the empty set: absent is never confused with it.
// A [Set] holds one requirement for each of its keys; a key it does not hold is unrestricted.
//
// Numbers. Gt, Lt, Gte and Lte admit integers in their usual spelling only: 5, not 05. Label values cannot be
// negative, so the smallest is 0. kube-scheduler would also read 05 as 5; leaving that out can only make us
// refuse a node that it would take, never the reverse.
//
// Values are immutable: no function changes its arguments or keeps a caller's slice. The order of values and
// keys is canonical, so that equal sets print and compare alike. The laws (commutative, associative,
// idempotent; membership of the intersection is membership of both) are tested in laws_test.go.
//
// The package imports the standard library only. It knows nothing of minimum counts of values (a demand on a
// choice, which belongs to the plan) and nothing of which labels are well known (see catalog).
package requirement
