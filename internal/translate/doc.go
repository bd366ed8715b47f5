// Package translate is the border between API objects and the values that planning works on, in both directions. It
// is the only package that knows both sides.
//
// Every function is pure: it reads its arguments, keeps no reference to an argument's maps and slices, and tells the
// time only from a parameter. Vectors are made in the caller's [resources.Space], which grows with every new resource
// name: a caller that shares a space holds its own lock.
//
// Input that cannot be understood, such as an operator of a newer API version, never stops anything: the result is
// then the value that is safe to plan with (a pod that no node satisfies, a pool that launches nothing, a budget of
// 0), and the error beside it is for reporting.
//
// Labels have one spelling inside: the aliases that Kubernetes has left behind (beta.kubernetes.io/arch,
// failure-domain.beta.kubernetes.io/zone and so on) are replaced by the names in use now, see [Key].
//
// Start with pod.go for what pods ask for, node.go and pool.go for what there is, and claim.go for the way back.
package translate
