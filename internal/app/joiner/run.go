package joiner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics/state"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/kube"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// Run runs the controller on a real cluster until ctx ends; then it hands over and returns nil. Errors before the
// start are for people, one line each.
func Run(ctx context.Context, config Config, log logr.Logger) error {
	for _, p := range config.Plugins {
		if err := p.Load(); err != nil {
			return err
		}
	}
	servers, err := openPorts(config)
	if err != nil {
		return err
	}
	defer servers.Close()
	registry := prometheus.NewRegistry()
	ctx, end := context.WithCancel(ctx)
	defer end()
	served, plugins, err := openVersions(ctx, config, registry, end, log)
	if err != nil {
		return err
	}
	defer served.close()
	if err := config.look(ctx, log); err != nil {
		return err
	}
	metrics.NewSettings(registry).Set(config.IgnoredSettings, config.InvalidSettings)
	config.REST = countingCalls(config.REST, metrics.NewRequests(registry))
	if config.ObserveOnly {
		config.REST.Wrap(func(next http.RoundTripper) http.RoundTripper { return readsOnly{next} })
		config.HistoryRetention = 0
	}
	turns := serve.NewPrecedence(config.KubeClientQPS, config.KubeClientBurst)
	mgr, err := newManager(ctx, config, turns, plugins, log)
	if err != nil {
		return fmt.Errorf("setting up the connection to %s: %w", config.REST.Host, err)
	}
	applied, err := newApplied(mgr, config, turns)
	if err != nil {
		return fmt.Errorf("setting up what writes decisions: %w", err)
	}
	if err := served.pools.watch(ctx, mgr.GetCache()); err != nil {
		return err
	}
	p, err := assemble(ctx, config, mgr, applied, plugins, log)
	if err != nil {
		return err
	}
	p.scraper.counted = prometheus.Gatherers{p.registry, registry, ctrlmetrics.Registry}
	if err := servers.Add(mgr, serve.MetricsHandler(p.scraper, config.EnableProfiling),
		serve.HealthHandlerOf(p.why)); err != nil {
		return err
	}
	if err := errors.Join(served.add(mgr), addReadAPI(ctx, config, mgr, p, log)); err != nil {
		return err
	}
	log.Info("started", "server", config.REST.Host, "leaderElection", !config.DisableLeaderElection)
	if err := serve.RunManager(ctx, mgr, serve.EndWithin); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	if err := served.failure(); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// process holds the parts of a running controller that are needed after assembly.
type process struct {
	registry *prometheus.Registry
	synced   *serve.Syncs
	plugged  []plugin.Parts
	inputs   *inputs
	history  *decisions
	standing *standing
	scraper  *scraper
}

// why returns why the process is not ready; "" when it is.
func (p *process) why() string {
	if missing := p.synced.Missing(); len(missing) > 0 {
		return "caches are being filled: " + strings.Join(missing, ", ")
	}
	for _, parts := range p.plugged {
		if parts.Ready == nil {
			continue
		}
		if text := parts.Ready(); text != "" {
			return "provider " + parts.Provider.Name() + ": " + text
		}
	}
	return ""
}

// checkRepair refuses invalid repair policies of providers, if node repair is on (K-49).
func checkRepair(config Config, owned *fleet.Fleet) error {
	if !config.Settings().NodeRepair {
		return nil
	}
	for cloud := range owned.All() {
		if err := provider.CheckRepairPolicies(cloud); err != nil {
			return fmt.Errorf("feature gate NodeRepair: %w", err)
		}
	}
	return nil
}

// pictureOf returns the configuration of the store.
func pictureOf(config Config, owned *fleet.Fleet) (world.Config, error) {
	constraints, err := spreadOf(config.SchedulerConfig, config.DefaultSpreadConstraints)
	if err != nil {
		return world.Config{}, err
	}
	spread, err := translate.ParseDefaultSpread(constraints)
	if err != nil {
		return world.Config{}, err
	}
	overhead, err := resources.FromDollars(config.NodeOverheadPrice)
	if err != nil {
		return world.Config{}, err
	}
	var commitments []cluster.Commitment
	if config.CommitmentsFile != "" {
		if _, commitments, err = readCommitments(config.CommitmentsFile); err != nil {
			return world.Config{}, err
		}
	}
	gates, _, err := ParseGates(config.FeatureGates)
	off := gates.off()
	off.Buffers = off.Buffers || !config.buffersServed
	return world.Config{
		Fleet: owned, Off: off, Devices: config.devicesServed,
		IgnorePreferences: config.PreferencePolicy == PreferencesIgnored,
		RelaxMinValues:    config.MinValuesPolicy == MinValuesBestEffort, DefaultSpread: spread,
		PriceTolerance: config.PriceTolerance, NodeOverheadPrice: overhead, MaxNodes: config.MaxNodes,
		MaxClaims: config.MaxNodeClaimsHard, Commitments: commitments,
	}, err
}

// assemble wires ports, feed and controllers to a manager.
func assemble(ctx context.Context, config Config, mgr manager.Manager, applied client.Client, plugins []plugin.Plugin,
	log logr.Logger) (*process, error) {
	var store *world.Store
	p := &process{registry: prometheus.NewRegistry(), synced: &serve.Syncs{}, inputs: &inputs{},
		history: newDecisions(config, mgr.GetClient(), mgr.GetAPIReader(), log.WithName("history"))}
	bells := serve.NewBells()
	written, send := writes(config, mgr)
	limit := event.NewLimit(config.EventsQPS)
	events := event.NewBounded(limit.Before(send, time.Now), time.Now)
	var plugged []plugin.Parts
	for _, each := range plugins {
		made, err := each.New(ctx, plugin.Deps{
			Client: written, Live: mgr.GetAPIReader(), Namespace: config.SystemNamespace, Lease: config.lease(),
			Correct: func(claim *karpenterv1.NodeClaim, offered catalog.Catalog) catalog.Catalog {
				return store.Corrected(claim, offered)
			},
			Events: events, Registerer: p.registry, Now: time.Now, Log: log.WithName(each.Name()),
			Version: func(ctx context.Context) (string, error) { return serve.ServerVersion(ctx, mgr.GetConfig()) },
			Wake: func(controller string) {
				bells.Ring(cmp.Or(controller, Interruption), kube.Singleton(), 0)
			},
		})
		if err != nil {
			return nil, fmt.Errorf("provider %s: %w", each.Name(), err)
		}
		plugged = append(plugged, made)
	}
	p.plugged = plugged
	owned := fleetOf(plugged)
	picture, err := pictureOf(config, owned)
	if err := errors.Join(err, checkRepair(config, owned)); err != nil {
		return nil, err
	}
	store = world.New(picture)
	began := time.Now()
	parts := Compose(config.Settings(), Deps{
		Client: written, Live: mgr.GetAPIReader(), Applied: applied, Store: store, Plugged: plugged, Fleet: owned,
		Events: events, Registerer: p.registry, Ready: p.synced.All, Wake: bells.Ring,
		Each: inParallel, Identity: string(uuid.NewUUID()), Planned: p.inputs.noted, Decided: p.history.decided,
		Now: time.Now, Ran: func() time.Duration { return time.Since(began) }, Log: log,
	})
	if err := connect(ctx, mgr.GetCache(), parts.Feed, plugged, parts.Controllers, p.synced); err != nil {
		return nil, fmt.Errorf("starting the watches: %w", err)
	}
	for _, c := range parts.Controllers {
		if err := serve.AddController(ctx, mgr, c, bells, log); err != nil {
			return nil, fmt.Errorf("adding controller %s: %w", c.Name, err)
		}
	}
	p.standing = parts.standing
	p.standing.lasting = newLasting(p.history.add)
	limit.Dropped(func(reason string) { parts.metrics.Own.EventsDropped.WithLabelValues(reason).Inc() })
	if err := p.scrapes(ctx, config, mgr.GetCache(), parts, store, log); err != nil {
		return nil, err
	}
	if err := errors.Join(mgr.Add(parts.standing), mgr.Add(p.history),
		p.observes(config, mgr, parts, store, picture, log)); err != nil {
		return nil, fmt.Errorf("adding what shows how the cluster stands, and the history: %w", err)
	}
	if config.CommitmentsFile != "" {
		keeper := &commitmentsKeeper{path: config.CommitmentsFile, tell: store.SetCommitments,
			read: parts.metrics.Own.CommitmentsRead.WithLabelValues(),
			log:  log.WithName("commitments")}
		if err := mgr.Add(keeper); err != nil {
			return nil, fmt.Errorf("adding what reads the commitments: %w", err)
		}
	}
	return p, nil
}

// observes adds the observer, in a process that only observes.
func (p *process) observes(config Config, mgr manager.Manager, parts Parts, store *world.Store, picture world.Config,
	log logr.Logger,
) error {
	if !config.ObserveOnly {
		return nil
	}
	o := &observer{
		client: mgr.GetClient(), kinds: parts.Feed.Kinds(), store: store, fleet: picture.Fleet,
		standing: parts.standing,
		settings: config.Settings(), picture: picture, metrics: parts.metrics.Own.Observed, ready: p.synced.All,
		now: time.Now, log: log.WithName("observer"),
	}
	parts.pending.tell = o.launches
	return mgr.Add(o)
}

// writes returns what controllers write with: a client, and a function that sends events.
func writes(config Config,
	mgr manager.Manager) (client.Client, func(about client.Object, kind event.Kind, reason, message string)) {
	if config.ObserveOnly {
		return onlooker{mgr.GetClient()}, func(client.Object, event.Kind, string, string) {}
	}
	return mgr.GetClient(), event.To(mgr.GetEventRecorder("karpenter"))
}

// scrapes sets up the handler of metrics scrapes.
func (p *process) scrapes(ctx context.Context, config Config, informers cache.Cache, parts Parts, store *world.Store,
	log logr.Logger,
) error {
	showBuild(p.registry)
	p.scraper = &scraper{options: config.served(p.plugged), metrics: parts.metrics, leads: parts.standing.leads.Load,
		synced: p.synced.All, picture: store, now: time.Now, began: time.Now(), log: log.WithName("metrics")}
	if config.DisableClusterStateObservability {
		p.scraper.hidden = state.Observed()
	}
	gates, _, err := ParseGates(config.FeatureGates)
	if err != nil {
		return err
	}
	if err := p.scraper.watch(ctx, informers, config.buffersServed && gates.CapacityBuffer); err != nil {
		return fmt.Errorf("reading caches for metrics: %w", err)
	}
	return nil
}

// createsAtOnce bounds how many NodeClaims of one plan are created, or nodes of one round removed, at the same time.
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

func newScheme(plugins []plugin.Plugin) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	var failures []error
	kinds := []func(*runtime.Scheme) error{
		coordinationv1.AddToScheme, // for events about the lease
		corev1.AddToScheme, appsv1.AddToScheme, nodev1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme,
		resourcev1.AddToScheme, karpenterv1.AddToScheme, karpenterv1alpha1.AddToScheme, autoscalingv1beta1.AddToScheme,
	}
	for _, p := range plugins {
		kinds = append(kinds, p.AddToScheme)
	}
	for _, register := range kinds {
		failures = append(failures, register(scheme))
	}
	return scheme, errors.Join(failures...)
}

func newManager(ctx context.Context, config Config, turns *serve.Precedence, plugins []plugin.Plugin,
	log logr.Logger) (
	manager.Manager, error,
) {
	scheme, err := newScheme(plugins)
	if err != nil {
		return nil, err
	}
	narrow := map[client.Object]cache.ByObject{}
	for _, p := range plugins {
		maps.Copy(narrow, p.Cached(config.SystemNamespace))
	}
	limited := as(config, turns.Rest())
	limited.Wrap(turns.Among(false))
	stop := serve.StopWithin
	return manager.New(limited, manager.Options{
		Scheme: scheme,
		Logger: serve.Quiet(ctx, log),
		Cache: cache.Options{
			DefaultTransform:            newShared().transform,
			ReaderFailOnMissingInformer: true,
			ByObject:                    narrow,
		},
		LeaderElection:          !config.DisableLeaderElection && !config.ObserveOnly,
		LeaderElectionID:        config.LeaderElectionName,
		LeaderElectionNamespace: config.leaseNamespace(), LeaderElectionReleaseOnCancel: true,
		// apart from the limited client, so that load never costs the lease
		LeaderElectionConfig:    config.REST,
		Metrics:                 metricsserver.Options{BindAddress: "0"}, // serve.go does
		HealthProbeBindAddress:  "0",
		GracefulShutdownTimeout: &stop,
		Controller:              ctrlconfig.Controller{},
	})
}

// as returns a copy of the connection with the rate limiter of one client.
func as(config Config, bound flowcontrol.RateLimiter) *rest.Config {
	own := rest.CopyConfig(config.REST)
	own.RateLimiter, own.UserAgent = bound, "joiner"
	return own
}

// newApplied returns the client that writes decisions. Its requests go before all others. All claims of a plan should
// exist before launches write about the first of them, so that they share fleets (E-61).
func newApplied(mgr manager.Manager, config Config, turns *serve.Precedence) (client.Client, error) {
	first := as(config, turns.First())
	first.Wrap(turns.Among(true))
	return client.New(first, client.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), // with its own transport: the manager's gives way
		Cache: &client.CacheOptions{Reader: mgr.GetCache()},
	})
}

// connect starts an informer for each kind that anybody reads, and passes the feed the events of its kinds. The
// process is ready only when all informers are filled: a kind that may not be listed must show.
func connect(ctx context.Context, informers cache.Cache, feed *Feed, plugged []plugin.Parts,
	controllers []kube.Controller, synced *serve.Syncs,
) error {
	indexes, reads := Indexes(), []client.Object{&storagev1.VolumeAttachment{}}
	for _, parts := range plugged {
		indexes, reads = append(indexes, parts.Indexes...), append(append(reads, parts.Class), parts.Reads...)
	}
	for _, c := range controllers {
		for _, watched := range c.Watches {
			reads = append(reads, watched.Object)
		}
	}
	for _, index := range indexes {
		if err := informers.IndexField(ctx, index.Object, index.Field, index.Value); err != nil {
			return err
		}
	}
	for _, kind := range reads {
		informer, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		synced.Add(serve.KindOf(kind), informer.HasSynced)
	}
	for _, kind := range feed.Kinds() {
		informer, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
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
		synced.Add(serve.KindOf(kind), registration.HasSynced)
	}
	return nil
}

// deleted returns the object of a deletion, also of a missed one that was found later.
func deleted(o any) client.Object {
	if missed, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = missed.Obj
	}
	object, _ := o.(client.Object)
	return object
}

// openPorts opens the ports for metrics and probes before anything else starts.
func openPorts(config Config) (*serve.Ports, error) {
	return serve.Open(
		func() (net.Listener, error) { return serve.ListenPort("metrics-port", config.MetricsPort) },
		func() (net.Listener, error) { return serve.ListenPort("health-probe-port", config.HealthProbePort) },
	)
}
