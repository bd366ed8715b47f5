// Package devices tells planning on which existing nodes pods get the devices that they ask for by ResourceClaims (K-42). It
// asks the allocator of kube-scheduler (k8s.io/dynamic-resource-allocation/structured) and has no semantics of its own: what
// it adds is what of a cluster the allocator is asked about, what a plan has given away already, and what people are told when
// nothing fits.
//
// A [State] is one picture of claims, classes and slices. It does not change: each pod that is placed makes another one, which
// shares the objects and what was found out about them.
package devices
