// Package requirement is the algebra of node label requirements: what a pod asks for, what a pool allows
// and what an instance type is are all sets of label values, and planning is their intersection.
//
// The algebra itself is package fold of the module autonodepolicy, which others use to enforce a provider's policy
// here it has the names that planning uses, a [Requirement] being a fold.Allowed. So what a policy allows and
// what is planned with cannot differ (K1). Its laws are tested in laws_test.go.
//
// The package imports fold and the standard library only. It knows nothing of minimum counts of values (a demand on a
// choice, which belongs to the plan) and nothing of which labels are well known (see catalog).
package requirement
