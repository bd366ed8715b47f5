// Package plugin is the door of the node scheduling policy inside kube-apiserver: the admission plugin
// scheduling.openshift.io/NodeSchedulingPolicy (docs/spec/node-scheduling-policy.md). It decides nothing: it hands a
// request to the evaluator, in the types of the API, and the verdict back.
//
// A kube-apiserver takes it over with [Register] and a feature gate of the name [Feature]. It reads no files, flags or
// environment: its configuration is what the server hands it, and clients, informers and the end come by the initializers
// that every kube-apiserver has. It is without effect unless the gate is on and the file of
// --admission-control-config-file configures it.
//
// What it refuses it refuses after all mutation, so nothing can change a pod after it was judged (H18). The one thing
// that it writes, with emergencyOverride Automatic, is the annotation of the override, and that is judged like
// anybody's.
package plugin
