// Package kube is what controllers and providers have in common in front of a Kubernetes API server, and that is no
// controller itself. This file says how a step function is woken; package app gives each its queue.
package kube

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Controller is a step function with its name and what wakes it.
type Controller struct {
	Name       string
	Reconciler reconcile.Reconciler
	Workers    int
	// Start is called once at the beginning.
	Start bool
	// Looks says that it writes nothing, neither to the cluster nor to a cloud: it runs in a process that only observes, too (K-26).
	Looks bool
	// Watches wake it, beside what the feed does.
	Watches []Watch
}

// Watch says which changes of objects of one kind wake a controller.
type Watch struct {
	Object client.Object // an empty object of the kind
	// Requests returns whom a change concerns: old is nil for an object that is new, fresh for one that is gone. Both
	// are nil interfaces then. It reads from caches only.
	Requests func(ctx context.Context, old, fresh client.Object) []reconcile.Request
	// After gathers changes before the controller is called.
	After time.Duration
}

// Index is a field by which objects of a kind can be listed from the cache.
type Index struct {
	Object client.Object
	Field  string
	Value  func(client.Object) []string
}

// Singleton is the one request of a controller that has only one.
func Singleton() reconcile.Request { return reconcile.Request{} }

// Requests returns one request for each name of an object without a namespace.
func Requests(names ...string) []reconcile.Request {
	list := make([]reconcile.Request, len(names))
	for i, name := range names {
		list[i] = reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
	}
	return list
}

// OwnPatches lets the last patch of a step be seen before the event of its first one calls for the next step.
const OwnPatches = 50 * time.Millisecond

// Itself is the usual Requests: the object's own name.
func Itself(_ context.Context, old, fresh client.Object) []reconcile.Request {
	if fresh == nil {
		fresh = old
	}
	return Requests(fresh.GetName())
}
