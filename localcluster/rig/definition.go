package rig

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReinstallDefinition deletes a CustomResourceDefinition as a user, with all of its objects, and makes it anew with
// the same specification. Each of the two waits, for its end and until it is served, takes at most within.
func (r *Rig) ReinstallDefinition(ctx context.Context, as client.Client, name string, within time.Duration) error {
	old := definition(name)
	if err := as.Get(ctx, client.ObjectKeyFromObject(old), old); err != nil {
		return fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
	}
	again := definition(name)
	again.Object["spec"] = old.Object["spec"]
	if err := as.Delete(ctx, old); err != nil {
		return fmt.Errorf("deleting CustomResourceDefinition %s: %w", name, err)
	}
	gone := func(ctx context.Context) (bool, string, error) {
		now := definition(name)
		err := as.Get(ctx, client.ObjectKeyFromObject(now), now)
		if apierrors.IsNotFound(err) {
			return true, "", nil
		}
		return false, fmt.Sprint(now.Object["status"]), err
	}
	if err := r.Eventually(ctx, within, "CustomResourceDefinition "+name+" to go", gone); err != nil {
		return err
	}
	if err := as.Create(ctx, again); err != nil {
		return fmt.Errorf("making CustomResourceDefinition %s again: %w", name, err)
	}
	served := func(ctx context.Context) (bool, string, error) {
		output, err := r.Kubectl(ctx, "", "get", name)
		return err == nil, output, nil
	}
	return r.Eventually(ctx, within, "CustomResourceDefinition "+name+" to be served", served)
}

func definition(name string) *unstructured.Unstructured {
	var o unstructured.Unstructured
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinition"})
	o.SetName(name)
	return &o
}
