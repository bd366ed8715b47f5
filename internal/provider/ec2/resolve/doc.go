// Package resolve resolves the selectors of EC2NodeClasses and computes their conditions (E-02, E-03, E-07 to E-11,
// E-13, E-40). [Resolver.Resolve] takes all classes at once, so that AWS gets equal questions only once.
//
// # Trouble of AWS is not trouble of a class (E-03)
//
// A memory keeps the last answer to every question (a selector term, a parameter, an image, a profile). If a call
// fails, the answer stays, and the condition says since when it is old. If this process never had an answer, the
// class's status counts, as long as it is about the current class. After 24 h an old answer no longer counts, and the
// condition is Unknown. A condition is False only if an answer said so.
//
// # Borders
//
// This package writes nothing to Kubernetes. Others handle finalizers, dry runs, the drift hash, and problems of user
// data and kubelet settings. They add their findings to ValidationSucceeded and recompute [Ready].
//
// Start reading at [Resolver.Resolve]. The catalogue and launches use [ImageFor].
package resolve
