package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/controller/event"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// The delays of a step that failed: short at first, and never so long that a healed fault goes unnoticed.
const (
	retryFirst = 100 * time.Millisecond
	retryMost  = 10 * time.Second
)

// stopWithin bounds how long steps under way may take after the signal to stop.
const stopWithin = 10 * time.Second

// Run runs the controller on a real cluster until ctx ends; then it hands over and returns nil. Errors before anything
// was started are for people, one line each.
func Run(ctx context.Context, config Config, log logr.Logger) error {
	machines := kwok.Config{Now: time.Now}
	var err error
	if machines.Inventory, err = kwok.LoadInventory(config.InstanceTypes, os.ReadFile); err != nil {
		return fmt.Errorf("--instance-types-file-path: %w", err)
	}
	if machines.Faults, err = kwok.LoadFaults(config.KwokFaults, machines.Inventory, os.ReadFile); err != nil {
		return fmt.Errorf("--kwok-faults-file-path: %w", err)
	}
	servers, err := openPorts(config)
	if err != nil {
		return err
	}
	defer servers.close()
	registry := prometheus.NewRegistry()
	ctx, end := context.WithCancel(ctx)
	defer end()
	served, err := openVersions(ctx, config, registry, end, log)
	if err != nil {
		return err
	}
	defer served.close()
	mgr, err := newManager(ctx, config, log)
	if err != nil {
		return fmt.Errorf("setting up the connection to %s: %w", config.REST.Host, err)
	}
	if err := served.pools.watch(ctx, mgr.GetCache()); err != nil {
		return err
	}
	p, err := assemble(ctx, config, mgr, machines, log)
	if err != nil {
		return err
	}
	shown := prometheus.Gatherers{p.registry, registry, ctrlmetrics.Registry}
	if err := servers.add(mgr, metricsHandler(shown, config.EnableProfiling), healthHandler(p.synced.all)); err != nil {
		return err
	}
	if err := served.add(mgr); err != nil {
		return err
	}
	log.Info("started", "server", config.REST.Host, "leaderElection", !config.DisableLeaderElection)
	if err := runManager(ctx, mgr, endWithin); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	if err := served.failure(); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// process is what of a running controller is needed after it was assembled.
type process struct {
	registry *prometheus.Registry
	synced   *syncs
}

// pictureOf returns what of the configuration the store needs.
func pictureOf(config Config, owned *fleet.Fleet) (world.Config, error) {
	constraints, err := spreadOf(config.SchedulerConfig, config.DefaultSpreadConstraints)
	if err != nil {
		return world.Config{}, err
	}
	spread, err := translate.ParseDefaultSpread(constraints)
	if err != nil {
		return world.Config{}, err
	}
	gates, _, err := ParseGates(config.FeatureGates)
	return world.Config{
		Fleet: owned, Off: gates.off(), IgnorePreferences: config.PreferencePolicy == PreferencesIgnored,
		RelaxMinValues: config.MinValuesPolicy == MinValuesBestEffort, DefaultSpread: spread,
	}, err
}

// assemble wires ports, feed and controllers to a manager. simulated is what is known of the kwok provider already.
func assemble(ctx context.Context, config Config, mgr manager.Manager, simulated kwok.Config, log logr.Logger) (*process, error) {
	var store *world.Store
	simulated.Cluster = NewKwokCluster(mgr.GetClient(), mgr.GetAPIReader(), config.SystemNamespace)
	simulated.Correct = func(claim *karpenterv1.NodeClaim, offered catalog.Catalog) catalog.Catalog {
		return store.Corrected(claim, offered)
	}
	machines, err := kwok.New(simulated)
	if err != nil {
		return nil, err
	}
	owned := fleet.New(machines)
	picture, err := pictureOf(config, owned)
	if err != nil {
		return nil, err
	}
	store = world.New(picture)
	p := &process{registry: prometheus.NewRegistry(), synced: &syncs{}}
	bells := &bells{queues: map[string]queue{}}
	recorder := mgr.GetEventRecorder("karpenter")
	sink := func(about client.Object, kind event.Kind, reason, message string) {
		recorder.Eventf(about, nil, string(kind), reason, reason, "%s", message)
	}
	parts := Compose(config.Settings(), Deps{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Store: store, Fleet: owned,
		Events: event.NewDeduplicated(sink, time.Now), Registerer: p.registry, Ready: p.synced.all, Wake: bells.ring,
		Each: inParallel, Identity: string(uuid.NewUUID()), Now: time.Now, Log: log,
	})
	if err := connect(ctx, mgr, parts.Feed, p.synced); err != nil {
		return nil, fmt.Errorf("starting the watches: %w", err)
	}
	for _, c := range parts.Controllers {
		if err := add(ctx, mgr, c, bells, log); err != nil {
			return nil, fmt.Errorf("adding controller %s: %w", c.Name, err)
		}
	}
	return p, nil
}

// createsAtOnce bounds how many NodeClaims of one plan are created at the same time.
const createsAtOnce = 10

// inParallel calls do with 0 to n-1, a bounded number at the same time, and returns when all calls have.
func inParallel(n int, do func(i int)) {
	var next atomic.Int64
	var running sync.WaitGroup
	for range min(n, createsAtOnce) {
		running.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	running.Wait()
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	var failures []error
	for _, register := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, nodev1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme,
		karpenterv1.AddToScheme, karpenterv1alpha1.AddToScheme, kwokv1alpha1.AddToScheme,
	} {
		failures = append(failures, register(scheme))
	}
	return scheme, errors.Join(failures...)
}

func newManager(ctx context.Context, config Config, log logr.Logger) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	limited := rest.CopyConfig(config.REST)
	limited.QPS, limited.Burst = config.KubeClientQPS, config.KubeClientBurst
	limited.UserAgent = "joiner"
	stop := stopWithin
	return manager.New(limited, manager.Options{
		Scheme: scheme,
		Logger: quiet(ctx, log),
		Cache: cache.Options{
			DefaultTransform:            cache.TransformStripManagedFields(),
			ReaderFailOnMissingInformer: true,
			ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {
				Namespaces: map[string]cache.Config{config.SystemNamespace: {}}, Label: labels.SelectorFromSet(labels.Set{bootRecordLabel: "true"}),
			}},
		},
		LeaderElection: !config.DisableLeaderElection, LeaderElectionID: config.LeaderElectionName,
		LeaderElectionNamespace: config.leaseNamespace(), LeaderElectionReleaseOnCancel: true,
		LeaderElectionConfig:    config.REST,                             // apart from the limited client, so that load never costs the lease
		Metrics:                 metricsserver.Options{BindAddress: "0"}, // serve.go does
		HealthProbeBindAddress:  "0",
		GracefulShutdownTimeout: &stop,
		Controller:              ctrlconfig.Controller{},
	})
}

// connect starts an informer for each kind that anybody reads, and lets the feed hear of those it wants.
func connect(ctx context.Context, mgr manager.Manager, feed *Feed, synced *syncs) error {
	for _, index := range Indexes() {
		if err := mgr.GetFieldIndexer().IndexField(ctx, index.Object, index.Field, index.Value); err != nil {
			return err
		}
	}
	for _, kind := range []client.Object{
		&kwokv1alpha1.KWOKNodeClass{}, &storagev1.VolumeAttachment{}, &corev1.ConfigMap{},
	} {
		if _, err := mgr.GetCache().GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return err
		}
	}
	for _, kind := range feed.Kinds() {
		informer, err := mgr.GetCache().GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { feed.Apply(o.(client.Object)) },
			UpdateFunc: func(old, o any) { feed.Change(old.(client.Object), o.(client.Object)) },
			DeleteFunc: func(o any) {
				if gone := deleted(o); gone != nil {
					feed.Remove(gone)
				}
			},
		})
		if err != nil {
			return err
		}
		synced.add(registration.HasSynced)
	}
	return nil
}

// deleted returns the object of a deletion, also of one that was missed and found out later.
func deleted(o any) client.Object {
	if missed, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = missed.Obj
	}
	object, _ := o.(client.Object)
	return object
}

// add gives one controller its queue and its watches.
func add(ctx context.Context, mgr manager.Manager, c Controller, bells *bells, log logr.Logger) error {
	built, err := controller.New(c.Name, mgr, controller.Options{
		Reconciler: c.Reconciler, MaxConcurrentReconciles: c.Workers, SkipNameValidation: new(true),
		RateLimiter:    workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryMost),
		LogConstructor: func(*reconcile.Request) logr.Logger { return quiet(ctx, log).WithName(c.Name) },
	})
	if err != nil {
		return err
	}
	ready := source.Func(func(_ context.Context, q queue) error {
		bells.add(c.Name, q)
		if c.Start {
			q.Add(singleton())
		}
		return nil
	})
	if err := built.Watch(ready); err != nil {
		return err
	}
	for _, watch := range c.Watches {
		if err := built.Watch(source.Kind(mgr.GetCache(), watch.Object, handlerOf(watch))); err != nil {
			return err
		}
	}
	return nil
}

// queue is the queue of one controller.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// bells wake controllers by name. A controller that has not started yet is not called: it starts by looking at
// everything.
type bells struct {
	mu     sync.Mutex
	queues map[string]queue
}

func (b *bells) add(name string, q queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queues[name] = q
}

func (b *bells) ring(name string, request reconcile.Request, after time.Duration) {
	b.mu.Lock()
	q := b.queues[name]
	b.mu.Unlock()
	switch {
	case q == nil:
	case after > 0:
		q.AddAfter(request, after)
	default:
		q.Add(request)
	}
}

// syncs knows whether every handler has seen the first list of its kind.
type syncs struct {
	mu    sync.Mutex
	found []func() bool
}

func (s *syncs) add(synced func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = append(s.found, synced)
}

func (s *syncs) all() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, synced := range s.found {
		if !synced() {
			return false
		}
	}
	return true
}
