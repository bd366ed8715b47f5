package joiner

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/kube"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// measured wraps a provider: it times and counts the calls.
type measured struct {
	provider.Provider
	controller string // who calls
	metrics    metrics.Cloud
	now        func() time.Time
}

func (m measured) observe(method string, start time.Time, err error) {
	m.observeFor("", method, start, err)
}

// observeFor is observe for a call on behalf of a NodePool.
func (m measured) observeFor(pool, method string, start time.Time, err error) {
	m.metrics.Duration.WithLabelValues(m.controller, method, m.Name()).Observe(m.now().Sub(start).Seconds())
	if err != nil {
		m.metrics.Errors.WithLabelValues(m.controller, method, m.Name(), kindOf(err), pool).Inc()
	}
}

// kindOf names the kind of an error, for a label, from a closed set.
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
	return "unknown"
}

// Catalog implements provider.Provider.
func (m measured) Catalog(ctx context.Context, class string) (catalog.Catalog, error) {
	start := m.now()
	c, err := m.Provider.Catalog(ctx, class)
	m.observe("GetInstanceTypes", start, err)
	return c, err
}

// Launch implements provider.Provider.
func (m measured) Launch(ctx context.Context, claim *karpenterv1.NodeClaim,
	notAfter time.Time) (provider.Instance, error) {
	start := m.now()
	instance, err := m.Provider.Launch(ctx, claim, notAfter)
	m.observeFor(translate.PoolOf(claim), "Create", start, err)
	return instance, err
}

// Terminate implements provider.Provider.
func (m measured) Terminate(ctx context.Context, id string, inUse func() bool) error {
	start := m.now()
	err := m.Provider.Terminate(ctx, id, inUse)
	m.observe("Delete", start, err)
	return err
}

// rebooter is a measured provider that can reboot machines.
type rebooter struct {
	measured
	reboots provider.Rebooter
}

// Reboot implements provider.Rebooter.
func (r rebooter) Reboot(ctx context.Context, id, operation string) error {
	start := r.now()
	err := r.reboots.Reboot(ctx, id, operation)
	r.observe("Reboot", start, err)
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

// Drifted implements provider.Provider.
func (m measured) Drifted(ctx context.Context, claim *karpenterv1.NodeClaim) (provider.Drift, error) {
	start := m.now()
	drift, err := m.Provider.Drifted(ctx, claim)
	m.observeFor(translate.PoolOf(claim), "IsDrifted", start, err)
	return drift, err
}

// Notices implements provider.Provider.
func (m measured) Notices(ctx context.Context) (provider.Notices, error) {
	start := m.now()
	notices, err := m.Provider.Notices(ctx)
	m.observe("Notices", start, err)
	return notices, err
}

// wakingCatalogs tells the store what a node class offers, and wakes planning when that changed.
type wakingCatalogs struct {
	store *world.Store
	wake  func(controller string, request reconcile.Request, after time.Duration)
}

// SetCatalog implements the ports of the claim and pool controllers.
func (w wakingCatalogs) SetCatalog(class world.ClassRef, c catalog.Catalog) error {
	before := w.store.Version()
	err := w.store.SetCatalog(class, c)
	if w.store.Version() != before {
		w.wake(Provisioning, kube.Singleton(), 0)
	}
	return err
}
