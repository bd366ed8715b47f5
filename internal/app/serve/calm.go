package serve

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A step that met a newer object than its cache had is repeated soon: the watch event is on its way. If that happens
// again and again, the watch is slow, and the step is repeated less and less often. The event wakes it anyway when it
// arrives.
const (
	conflictAfter = 100 * time.Millisecond
	conflictMost  = 3 * time.Second
)

// Calm turns the everyday conflicts of optimistic writes into a requeue instead of a logged error.
type Calm struct {
	reconcile.Reconciler
	mu        sync.Mutex
	collision map[reconcile.Request]time.Duration // the wait after the last of successive conflicts
}

// NewCalm returns the reconciler wrapped in Calm.
func NewCalm(r reconcile.Reconciler) *Calm {
	return &Calm{Reconciler: r, collision: map[reconcile.Request]time.Duration{}}
}

// Reconcile implements reconcile.Reconciler.
func (c *Calm) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := c.Reconciler.Reconcile(ctx, request)
	collided := err != nil && All(err, func(part error) bool {
		return apierrors.IsConflict(part) || apierrors.IsInvalid(part) && ctx.Err() == nil && isStalePatch(part)
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if !collided {
		delete(c.collision, request)
		return result, err
	}
	wait := min(max(conflictAfter, 2*c.collision[request]), conflictMost)
	c.collision[request] = wait
	return reconcile.Result{RequeueAfter: wait}, nil
}

// All reports whether every error that was joined into err is of a kind. The predicates of apierrors look only at the
// first error that they understand, so one conflict would hide other errors.
func All(err error, is func(error) bool) bool {
	for each := err; each != nil; each = errors.Unwrap(each) {
		if joined, several := each.(interface{ Unwrap() []error }); several {
			return !slices.ContainsFunc(joined.Unwrap(), func(part error) bool { return !All(part, is) })
		}
	}
	return is(err)
}

// isStalePatch reports whether the API server refused a JSON patch because its test did not hold (see package patch).
func isStalePatch(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) == 0
}
