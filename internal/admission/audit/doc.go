// Package audit reports the pods of a cluster that the node scheduling policy would refuse (H14): those on protected
// nodes, and those whose successors could not be created. It judges nothing itself: [evaluator.Policy.Inspect] does.
// It is pure: the caller reads the cluster, and passes nodes and pods.
//
// Start with [Auditor].
package audit
