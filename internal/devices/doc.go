// Package devices tells planning which existing nodes have the devices that pods ask for by ResourceClaims (K-42). It
// asks kube-scheduler's allocator (k8s.io/dynamic-resource-allocation/structured) and has no semantics of its own. It
// adds the objects of the cluster, what the plan has allocated already, and messages for when nothing fits.
//
// A [State] is a snapshot of claims, classes and slices. It is immutable: placing a pod returns another State, which
// shares the objects and what was computed from them.
package devices
