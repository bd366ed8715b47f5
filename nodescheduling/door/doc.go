// Package door is what every door of the node scheduling policy needs beside its protocol (docs/spec/node-scheduling-policy.md):
// the policy in force, kept up to date with the live source ([Policy], [LiveReader]); the nodes and the other ports of the
// evaluator ([Ports]); metrics and events of what was decided ([Metrics], [Observer]).
//
// Two doors use it: joiner-webhook, and the admission plugin that localcluster compiles into kube-apiserver. Neither says
// anything that the other does not.
package door
