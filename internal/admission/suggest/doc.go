// Package suggest makes a list of authorizedUsers from what a cluster has: the pods on protected nodes or
// aiming at them, the audit log, and the metrics. It decides nothing. The evaluator says which pods concern a group,
// and whether an existing entry covers them. Whoever applies the list decides what may stay. So an entry that is
// neither the platform's nor listed already is written as a comment.
//
// Start with [Collector].
package suggest
