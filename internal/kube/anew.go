package kube

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// This file is about objects that look changed but were recreated. After a long break a watch comes back with a list.
// If an object was deleted and recreated under its name meanwhile, informers report one change, from the old object to
// the new one. This happens to pods of a StatefulSet, claims in slots, and pools that users delete and apply again.

// MadeAnew reports whether a change is from one object to another of the same name.
func MadeAnew(old, fresh client.Object) bool {
	return old != nil && fresh != nil && old.GetUID() != fresh.GetUID()
}

// Heard returns the requests of a change, as Requests does. A recreated object counts as one that is gone and one that
// is new.
func (w Watch) Heard(ctx context.Context, old, fresh client.Object) []reconcile.Request {
	if MadeAnew(old, fresh) {
		return append(w.Requests(ctx, old, nil), w.Requests(ctx, nil, fresh)...)
	}
	return w.Requests(ctx, old, fresh)
}
