// Package doors has the tests that both doors of the node scheduling policy pass: the admission plugin as a
// kube-apiserver asks it, with internal types, and the webhook behind the rules and conditions of its chart.
package doors
