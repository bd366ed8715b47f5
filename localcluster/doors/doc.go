// Package doors holds the tests that both doors of the node scheduling policy pass. One door is the admission plugin,
// called with internal types as by a kube-apiserver. The other is the webhook behind the rules and conditions of its
// chart.
package doors
