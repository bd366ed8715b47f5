package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
)

// teardownAgainAfter is when a teardown checks again what is left.
const teardownAgainAfter = time.Second

// TeardownConfig is the configuration of a [Teardown]. All fields are required.
type TeardownConfig struct {
	Guest       GuestClient
	Kinds       []Kind // in the order of deletion: pools before node classes
	Protections []merge.Protection
	Board       *Board
	Done        func() // called once when nothing is left
	Log         logr.Logger
}

// Teardown deletes the wrappers, not their products: these would be made again (G19). Each kind waits for the one
// before, because pools hold up the deletion of node classes. The admission policies are deleted too, last: otherwise
// nobody could write NodePools in a cluster without the operator.
type Teardown struct {
	config TeardownConfig
}

// NewTeardown returns the step function. The controllers of the wrappers must run at the same time.
func NewTeardown(config TeardownConfig) *Teardown { return &Teardown{config: config} }

// Reconcile deletes what is next, and requeues until nothing is left.
func (t *Teardown) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	again := reconcile.Result{RequeueAfter: teardownAgainAfter}
	for _, kind := range t.config.Kinds {
		left, err := t.deleteAll(ctx, kind)
		if err != nil {
			return again, err
		}
		if left > 0 {
			t.config.Log.Info("tearing down", "kind", kind.Wrapper, "left", left)
			return again, nil
		}
	}
	t.config.Board.Release() // otherwise they would be restored
	for _, protection := range t.config.Protections {
		for _, object := range []client.Object{protection.Binding.DeepCopy(), protection.Policy.DeepCopy()} {
			if err := t.config.Guest.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
				return again, fmt.Errorf("deleting %s %s: %w", kindOf(object), object.GetName(), err)
			}
		}
	}
	t.config.Log.Info("the teardown is done")
	t.config.Done()
	return reconcile.Result{}, nil
}

// Dismantling deletes the pools of a hosted cluster that is being deleted (A-32, U8): OpenshiftNodePools, then the
// remaining NodePools. Their NodeClaims and machines go with them. Node classes and the protection stay until the
// cluster is gone.
type Dismantling struct {
	config TeardownConfig
}

// NewDismantling returns the step function. The first of Kinds must be the pools; Protections and Done are not used.
func NewDismantling(config TeardownConfig) *Dismantling { return &Dismantling{config: config} }

// Reconcile does nothing unless the HostedControlPlane is being deleted.
func (d *Dismantling) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !d.config.Board.Hosted().Deleting {
		return reconcile.Result{}, nil
	}
	again := reconcile.Result{RequeueAfter: teardownAgainAfter}
	pools := d.config.Kinds[0]
	left, err := (&Teardown{config: d.config}).deleteAll(ctx, pools)
	if err != nil || left > 0 {
		return again, err
	}
	list := pools.NewProductList()
	if err := d.config.Guest.List(ctx, list); err != nil {
		return again, fmt.Errorf("listing %ss: %w", pools.Product, err)
	}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		pool := item.(client.Object)
		if pool.GetDeletionTimestamp() != nil {
			return nil
		}
		if err := d.config.Guest.Delete(ctx, pool); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s %s: %w", pools.Product, pool.GetName(), err)
		}
		return nil
	})
	return again, err
}

// deleteAll deletes the wrappers of a kind and returns how many are still there.
func (t *Teardown) deleteAll(ctx context.Context, kind Kind) (left int, err error) {
	list := kind.NewWrapperList()
	if err := t.config.Guest.List(ctx, list); err != nil {
		return 0, fmt.Errorf("listing %ss: %w", kind.Wrapper, err)
	}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		wrapper := item.(client.Object)
		left++
		if wrapper.GetDeletionTimestamp() != nil {
			return nil
		}
		if err := t.config.Guest.Delete(ctx, wrapper); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s %s: %w", kind.Wrapper, wrapper.GetName(), err)
		}
		return nil
	})
	return left, err
}
