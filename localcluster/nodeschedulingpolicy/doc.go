// Package nodeschedulingpolicy is the door of the node scheduling policy inside kube-apiserver: the admission plugin
// scheduling.openshift.io/NodeSchedulingPolicy (docs/spec/node-scheduling-policy.md). It decides nothing: it hands a
// request to the evaluator, in the types of the API, and the verdict back.
//
// It is the only package that knows the internal types of k8s.io/kubernetes. [AddTo] puts it into a kube-apiserver that is
// built as upstream's: off unless --enable-admission-plugins names it, without effect unless the feature gate
// OpenShiftNodeSchedulingPolicy is on and the file of --admission-control-config-file configures it.
//
// The plugin only validates: all of that comes after all mutation, so nothing can change a pod after it was judged (H18).
package nodeschedulingpolicy
