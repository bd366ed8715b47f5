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

// teardownAgainAfter is when a teardown looks again what is left.
const teardownAgainAfter = time.Second

// TeardownConfig is what a teardown works with; all fields are required.
type TeardownConfig struct {
	Guest       GuestClient
	Kinds       []Kind // in the order in which they go: pools before node classes
	Protections []merge.Protection
	Board       *Board
	Done        func() // called once when nothing is left
	Log         logr.Logger
}

// Teardown deletes the wrappers, not what was made from them: that would be made again (G19). Each kind waits for the one
// before, because node classes are held up by pools. The admission policies go last, or nobody could write NodePools in a
// cluster without the operator.
type Teardown struct {
	config TeardownConfig
}

// NewTeardown returns the step function; the controllers of the wrappers have to run beside it.
func NewTeardown(config TeardownConfig) *Teardown { return &Teardown{config: config} }

// Reconcile deletes what is next and asks to be called again until nothing is left.
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
	t.config.Board.Release() // or they would be restored
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
