// Package suggest makes a list of authorizedUsers of what a cluster has: of the pods that are on protected
// nodes or aim at them, and of what the audit log and the metrics say. It decides nothing: the evaluator says which
// pods concern a group and whether an entry that is there covers them, and whoever applies the list says what may
// stay. What is neither the platform's nor listed already is therefore written as a comment.
//
// Start with [Collector].
package suggest
