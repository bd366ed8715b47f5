// Package translate converts between API objects and the values that planning works on, in both directions. Such
// conversions belong here.
//
// Every function is pure: it reads its arguments, keeps no reference to their maps and slices, and gets the time only
// as a parameter. Vectors are made in the caller's [resources.Space], which grows with every new resource name. A
// caller that shares a space must hold a lock of its own.
//
// Input that cannot be understood, such as an operator of a newer API version, never stops anything. The result is
// then a value that is safe to plan with: a pod that no node satisfies, a pool that launches nothing, a budget of 0.
// The error beside it is for reporting.
//
// Labels have one spelling inside. Deprecated aliases of Kubernetes (beta.kubernetes.io/arch,
// failure-domain.beta.kubernetes.io/zone and so on) are replaced by the current names, see [Key].
//
// Start with pod.go for what pods ask for, node.go and pool.go for nodes and pools, and claim.go for the way back.
package translate
