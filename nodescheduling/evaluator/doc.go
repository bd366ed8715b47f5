// Package evaluator decides whether a request may place a pod on a protected node
// (docs/spec/node-scheduling-policy.md). It is one pure function behind several doors: an admission plugin inside
// kube-apiserver, a validating webhook, a test. It reads and writes no cluster, has no clock and keeps nothing; what it
// must know of the cluster it asks through [Cluster].
//
//   - [Decode] reads the configuration of the plugin and says what is wrong with it.
//   - [New] makes a [Policy] of the configuration and of the cluster's Scheduler: the effective groups, modes and lists.
//     A door makes a new one when Scheduler changes, and else uses the one it has.
//   - [Policy.Evaluate] judges a [Request] and returns a [Verdict]: whether it passes, what the user is told, and what
//     goes to the audit log, the metrics and the events.
//
// A pod is placed when it is created with a node name or bound to a node; it aims at a protected node when it tolerates
// its taints or selects nothing else. Two halves must be authorized: the actor, who sends the request, and the
// namespace of the pod. A request that aims at no protected node is never denied, whoever sends it.
//
// Whatever cannot be decided is denied where the mode is Enable: a node that nobody knows, nodes that are not listed yet,
// a request without its object. What is neither a pod, a binding nor a workload with a pod template is not looked at.
//
// Start with evaluate.go. The scripts below test/testdata are the manual.
package evaluator
