package app

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// A step that met a newer object than its cache had is repeated soon: the watch is on its way. While it meets that again
// and again the watch is late, and the step is repeated ever more rarely; the event that comes at last wakes it anyway.
const (
	conflictAfter = 100 * time.Millisecond
	conflictMost  = 3 * time.Second
)

// calm makes the everyday collisions of optimistic writes a reason to look again, not an error in the log.
type calm struct {
	reconcile.Reconciler
	mu        sync.Mutex
	collision map[reconcile.Request]time.Duration // how long the last collision in a row has made the request wait
}

func newCalm(r reconcile.Reconciler) *calm {
	return &calm{Reconciler: r, collision: map[reconcile.Request]time.Duration{}}
}

// Reconcile implements reconcile.Reconciler.
func (c *calm) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := c.Reconciler.Reconcile(ctx, request)
	collided := err != nil && all(err, func(part error) bool {
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

// all reports whether every error that was joined into err is of a kind. The predicates of apierrors look at the first
// that they understand, and would let one conflict hide whatever else went wrong.
func all(err error, is func(error) bool) bool {
	for each := err; each != nil; each = errors.Unwrap(each) {
		if joined, several := each.(interface{ Unwrap() []error }); several {
			return !slices.ContainsFunc(joined.Unwrap(), func(part error) bool { return !all(part, is) })
		}
	}
	return is(err)
}

// isStalePatch reports whether the API server refused a JSON patch because its test did not hold (see package patch).
func isStalePatch(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) == 0
}

// measured is a provider whose calls are timed and counted.
type measured struct {
	provider.Provider
	controller string // who calls
	metrics    metrics.Cloud
	now        func() time.Time
}

func (m measured) observe(method string, start time.Time, err error) {
	m.metrics.Duration.WithLabelValues(m.controller, method, m.Name()).Observe(m.now().Sub(start).Seconds())
	if err != nil {
		m.metrics.Errors.WithLabelValues(m.controller, method, m.Name(), kindOf(err)).Inc()
	}
}

// kindOf names an error from a closed set, for a label.
func kindOf(err error) string {
	var capacity *provider.InsufficientCapacityError
	var notReady *provider.NodeClassNotReadyError
	var launch *provider.LaunchError
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return "NodeClaimNotFoundError"
	case errors.Is(err, provider.ErrThrottled):
		return "ThrottledError"
	case errors.As(err, &capacity):
		return "InsufficientCapacityError"
	case errors.As(err, &notReady), errors.Is(err, provider.ErrNodeClassNotFound):
		return "NodeClassNotReadyError"
	case errors.As(err, &launch):
		return "CreateError"
	}
	return ""
}

// Catalog implements provider.Provider.
func (m measured) Catalog(ctx context.Context, class string) (catalog.Catalog, error) {
	start := m.now()
	c, err := m.Provider.Catalog(ctx, class)
	m.observe("GetInstanceTypes", start, err)
	return c, err
}

// Launch implements provider.Provider.
func (m measured) Launch(ctx context.Context, claim *karpenterv1.NodeClaim, notAfter time.Time) (provider.Instance, error) {
	start := m.now()
	instance, err := m.Provider.Launch(ctx, claim, notAfter)
	m.observe("Create", start, err)
	return instance, err
}

// Terminate implements provider.Provider.
func (m measured) Terminate(ctx context.Context, id string) error {
	start := m.now()
	err := m.Provider.Terminate(ctx, id)
	m.observe("Delete", start, err)
	return err
}

// Get implements provider.Provider.
func (m measured) Get(ctx context.Context, id string) (provider.Instance, error) {
	start := m.now()
	instance, err := m.Provider.Get(ctx, id)
	m.observe("Get", start, err)
	return instance, err
}

// List implements provider.Provider.
func (m measured) List(ctx context.Context) ([]provider.Instance, error) {
	start := m.now()
	instances, err := m.Provider.List(ctx)
	m.observe("List", start, err)
	return instances, err
}

// Notices implements provider.Provider.
func (m measured) Notices(ctx context.Context) (provider.Notices, error) {
	start := m.now()
	notices, err := m.Provider.Notices(ctx)
	m.observe("Notices", start, err)
	return notices, err
}

// wakingCatalogs tells the store what a class offers, and planning when that is news.
type wakingCatalogs struct {
	store *world.Store
	wake  func(controller string, request reconcile.Request, after time.Duration)
}

// SetCatalog implements the ports of the claim and pool controllers.
func (w wakingCatalogs) SetCatalog(class world.ClassRef, c catalog.Catalog) error {
	before := w.store.Version()
	err := w.store.SetCatalog(class, c)
	if w.store.Version() != before {
		w.wake(Provisioning, singleton(), 0)
	}
	return err
}

// Booter is a provider whose machines do not boot by themselves. Boot lets those join whose time has come at now, and
// returns when the next one's does; zero for none.
type Booter interface {
	Boot(ctx context.Context, now time.Time) (next time.Time, err error)
}

// booter is the step function that lets simulated machines join whose time has come.
type booter struct {
	machines Booter
	now      func() time.Time
}

// Reconcile implements reconcile.Reconciler.
func (b booter) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	next, err := b.machines.Boot(ctx, b.now())
	if err != nil || next.IsZero() {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: max(time.Millisecond, next.Sub(b.now()))}, nil
}
