// Package audit reports the pods of a cluster that the node scheduling policy would refuse (H14): those on protected nodes, and
// those whose successors could not be created. It judges nothing itself: [evaluator.Policy.Inspect] does. It is pure, and is
// given nodes and pods by whoever reads the cluster.
//
// Start with [Auditor].
package audit
