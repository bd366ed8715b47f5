// Package plugin is the door of the node scheduling policy inside kube-apiserver: the admission plugin
// scheduling.openshift.io/NodeSchedulingPolicy (docs/spec/node-scheduling-policy.md). It decides nothing: it converts
// a request to the types of the API, hands it to the evaluator, and returns the verdict.
//
// A kube-apiserver adopts it with [Register] and a feature gate named [Feature]. It reads no files, flags or
// environment: the server hands it its configuration. Clients, informers and the shutdown signal come from the
// initializers that every kube-apiserver has. The plugin has no effect unless the gate is on and the file of
// --admission-control-config-file configures it.
//
// It judges after all mutation, so nothing can change a pod after it was judged (H18). It writes only one thing: the
// annotation of the override, with emergencyOverride Automatic. That annotation is judged like one written by
// anybody.
package plugin
