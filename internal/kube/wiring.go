// Package kube has what controllers and providers share for working with a Kubernetes API server, but no controllers.
// This file says how a step function is woken; package app gives each its queue.
package kube

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Controller is a step function with its name and its triggers.
type Controller struct {
	Name       string
	Reconciler reconcile.Reconciler
	Workers    int
	// Start says that it is also called once at the start.
	Start bool
	// Looks says that it writes nothing, neither to the cluster nor to a cloud. So it also runs in a process that only
	// observes (K-26).
	Looks bool
	// Watches wake it, in addition to the feed.
	Watches []Watch
}

// Watch says which changes of objects of one kind wake a controller.
type Watch struct {
	Object client.Object // an empty object of the kind
	// Requests returns the requests of a change. old is nil for a new object, fresh for one that is gone; both are nil
	// interfaces then. It reads from caches only.
	Requests func(ctx context.Context, old, fresh client.Object) []reconcile.Request
	// After is how long changes are gathered before the controller is called.
	After time.Duration
}

// Index is a field by which the cache can list objects of a kind.
type Index struct {
	Object client.Object
	Field  string
	Value  func(client.Object) []string
}

// Singleton returns the request of a controller that has only one.
func Singleton() reconcile.Request { return reconcile.Request{} }

// Requests returns one request for each name of a cluster-scoped object.
func Requests(names ...string) []reconcile.Request {
	list := make([]reconcile.Request, len(names))
	for i, name := range names {
		list[i] = reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
	}
	return list
}

// OwnPatches is a delay for events of a step's own patches. It lets the cache show the step's last patch before the
// event of the first one triggers the next step.
const OwnPatches = 50 * time.Millisecond

// Itself is the usual Requests function: it returns the object's own name.
func Itself(_ context.Context, old, fresh client.Object) []reconcile.Request {
	if fresh == nil {
		fresh = old
	}
	return Requests(fresh.GetName())
}
