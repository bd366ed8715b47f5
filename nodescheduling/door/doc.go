// Package door has what every door of the node scheduling policy needs besides its protocol
// (docs/spec/node-scheduling-policy.md). [Policy] and [LiveReader] keep the policy in force up to date with the live
// source. [Ports] returns the nodes and the other ports of the evaluator. [Metrics] and [Observer] provide metrics and
// events of decisions.
//
// Two doors use it: joiner-webhook, and the admission plugin that localcluster compiles into kube-apiserver. Both
// answer alike.
package door
