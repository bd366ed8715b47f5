// Package resolve says what the selectors of EC2NodeClasses stand for, and what their conditions say (E-02, E-03, E-07
// to E-11, E-13, E-40). [Resolver.Resolve] is for all classes at once, so that what several want alike is asked once.
//
// # Trouble of AWS is not trouble of a class (E-03)
//
// Every question (a selector term, a parameter, an image, a profile) has its last answer in a memory. A call that
// fails leaves the answer, and the condition says since when it is old. Only where this process never had an answer
// does what stands in the class's status count, as long as the class is the one it was written for. After 24 h an old
// answer is worth nothing, and the condition is Unknown. A condition is False only when an answer said so.
//
// # Borders
//
// Nothing is written to Kubernetes. Finalizers, dry runs, the drift hash, and problems of user data and kubelet
// settings are others': they add what they find to ValidationSucceeded and sum up anew with [Ready].
//
// Start reading at [Resolver.Resolve]; [ImageFor] is what the catalogue and launches use.
package resolve
