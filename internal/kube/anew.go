package kube

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// This file is about objects that look changed and are not the same. A watch that breaks for long comes back with a list. When an
// object was deleted and made anew under its name meanwhile, informers tell of one change, from the old object to the new one.
// So it is with pods of a StatefulSet, claims in slots, and pools that users delete and apply again.

// MadeAnew reports whether a change is from one object to another one of its name.
func MadeAnew(old, fresh client.Object) bool {
	return old != nil && fresh != nil && old.GetUID() != fresh.GetUID()
}

// Heard returns whom a change concerns, as Requests does. An object that was made anew is one that is gone, and a new one.
func (w Watch) Heard(ctx context.Context, old, fresh client.Object) []reconcile.Request {
	if MadeAnew(old, fresh) {
		return append(w.Requests(ctx, old, nil), w.Requests(ctx, nil, fresh)...)
	}
	return w.Requests(ctx, old, fresh)
}
