// Package evaluator decides whether a request may place a pod on a protected node
// (docs/spec/node-scheduling-policy.md). It is one pure function behind several doors: an admission plugin inside
// kube-apiserver, a validating webhook, a test. It writes nothing, has no clock and keeps no state. It asks about the
// cluster only through [Cluster].
//
//   - [Decode] reads the configuration of the plugin and says what is wrong with it.
//   - [New] makes a [Policy] from the configuration and the live source, such as the cluster's Scheduler: the
//     effective groups, modes and lists. A door makes a new one only when the live source changes.
//   - [Policy.Evaluate] judges a [Request] and returns a [Verdict]: whether it passes, what the user is told, and what
//     goes to the audit log, the metrics and the events.
//
// A pod is placed when it is created with a node name, or bound to a node. A pod aims at a protected node if it is
// placed there, tolerates the node's taints, or selects only protected nodes. Two halves must be authorized: the
// actor, who sends the request, and the namespace of the pod. A request that aims at no protected node is never
// denied, whoever sends it.
//
// In mode Enable, what cannot be decided is denied: an unknown node, a node cache that is not filled yet, a request
// without its object. Only pods, bindings and workloads with a pod template are judged.
//
// Start with evaluate.go. The scripts below test/testdata are the manual.
package evaluator
