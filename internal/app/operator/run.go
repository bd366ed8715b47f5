// Package operator is the composition root of joiner-operator, which applies AutoNodePolicies in a hosted cluster.
package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/kube"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// Run runs the operator of AutoNodePolicy until ctx ends, or until a teardown or a release is done; then it returns
// nil. Errors before the start are for people, one line each.
func Run(ctx context.Context, config Config, log logr.Logger) error {
	if err := serve.LimitMemory(os.LookupEnv); err != nil {
		return err
	}
	servers, err := serve.OpenAddresses(config.MetricsBindAddress, config.HealthProbeBindAddress)
	if err != nil {
		return err
	}
	defer servers.Close()
	if err := checkGuest(ctx, config); err != nil {
		return err
	}
	management, err := operator.NewManagementClient(bounded(config.Management, config), config.Namespace)
	if err != nil {
		return err
	}
	ctx, done := context.WithCancel(ctx)
	defer done()
	mgr, err := newGuestManager(ctx, config, log)
	if err != nil {
		return fmt.Errorf("setting up the connection to %s: %w", config.Guest.Host, err)
	}
	p, err := assembleOperator(ctx, config, mgr, management, done, log)
	if err != nil {
		return err
	}
	registry := prometheus.Gatherers{p.registry, ctrlmetrics.Registry}
	if err := servers.Add(mgr, serve.MetricsHandler(serve.Gathered(registry), false),
		serve.HealthHandler(p.ready)); err != nil {
		return err
	}
	log.Info("started", "guest", config.Guest.Host, "management", config.Management.Host, "namespace",
		config.Namespace, "platforms", config.Platforms)
	if err := serve.RunManager(ctx, mgr, serve.EndWithin); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	log.Info("stopped")
	return nil
}

func bounded(to *rest.Config, config Config) *rest.Config {
	limited := rest.CopyConfig(to)
	limited.QPS, limited.Burst, limited.UserAgent = config.KubeClientQPS, config.KubeClientBurst, "joiner-operator"
	return limited
}

func newGuestManager(ctx context.Context, config Config, log logr.Logger) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	var failures []error
	for _, register := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, admissionv1.AddToScheme, certificatesv1.AddToScheme, hypershiftv1beta1.AddToScheme,
		hypershiftv1.AddToScheme, karpenterv1.AddToScheme, karpenterawsv1.AddToScheme,
	} {
		failures = append(failures, register(scheme))
	}
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	stop := serve.StopWithin
	return manager.New(bounded(config.Guest, config), manager.Options{
		Scheme: scheme, Logger: serve.Quiet(ctx, log),
		Cache:                   guestCache(),
		Metrics:                 metricsserver.Options{BindAddress: "0"}, // serve.go does
		HealthProbeBindAddress:  "0",
		GracefulShutdownTimeout: &stop,
	})
}

// guestCache says what the cache of the guest keeps. Nodes without their images are a fraction of themselves.
func guestCache() cache.Options {
	return cache.Options{DefaultTransform: translate.Spare, ReaderFailOnMissingInformer: true}
}

// operatorProcess holds the parts of a running operator that are needed after assembly.
type operatorProcess struct {
	registry *prometheus.Registry
	synced   *serve.Syncs
	board    *operator.Board
}

// ready reports whether the caches are filled and the guest is protected (G22). A readable policy is not required: a
// restart would not help.
func (p *operatorProcess) ready() bool { return p.synced.All() && p.board.Protected() }

// assembleOperator wires the policy's feed and the controllers to a manager. done ends the process after a teardown.
func assembleOperator(
	ctx context.Context, config Config, mgr manager.Manager, management operator.ManagementClient, done func(),
	log logr.Logger,
) (*operatorProcess, error) {
	enabled, err := config.policyEnabled()
	if err != nil {
		return nil, err
	}
	p := &operatorProcess{registry: prometheus.NewRegistry(), synced: &serve.Syncs{}, board: operator.NewBoard()}
	set := operator.NewMetrics(p.registry)
	if !enabled {
		p.board.Set(operator.Reading{State: operator.StateDisabled})
		set.ShowState(operator.StateDisabled)
	}
	bells := serve.NewBells()
	send := event.To(mgr.GetEventRecorder("joiner-operator"))
	sink := func(about client.Object, kind event.Kind, reason, message string) {
		send(about, kind, reason, message)
		if kind == event.Warning { // for operators who do not see the guest; repetitions are left out
			log.Info(message, "reason", reason, "name", about.GetName())
		}
	}
	given := config.given()
	if config.InfraFrom == InfraFromHosted {
		if err := firstHosted(ctx, management, given, p.board); err != nil {
			return nil, err
		}
	}
	deps := operatorDeps{
		unwrapped: config.unwrapped(), foreign: operator.ForeignRule(config.ForeignObjects),
		claimsOpen: config.admission().NodeClaims == merge.NodeClaimsOpen,
		teardown:   config.Teardown, release: config.Release,
		aws: slices.Contains(config.Platforms, PlatformAWS), hosted: config.InfraFrom == InfraFromHosted,
		infraID: config.InfraID, profile: config.InstanceProfile,
		guest: operator.GuestClient{Client: mgr.GetClient()}, live: mgr.GetAPIReader(), management: management,
		board: p.board, events: event.NewDeduplicated(sink, time.Now), metrics: set, bells: bells, done: done,
		now: time.Now, log: log,
	}
	if err := deps.divide(config); err != nil {
		return nil, err
	}
	if config.ApproveKubeletCSRs {
		deps.bootstrapper, deps.instanceNames = config.NodeBootstrapperUserName, config.instanceNames(ctx, p.board)
	}
	p.board.OnVerdict(deps.verdictReached)
	controllers := deps.controllers()
	if err := watchKinds(ctx, mgr, controllers, p.synced); err != nil {
		return nil, fmt.Errorf("starting the watches: %w", err)
	}
	for _, c := range controllers {
		if err := serve.AddController(ctx, mgr, c, bells, log); err != nil {
			return nil, fmt.Errorf("adding controller %s: %w", c.Name, err)
		}
	}
	if config.InfraFrom == InfraFromHosted {
		feed := &hostedFeed{client: management, board: p.board, given: given, changed: deps.hostedChanged,
			log: log.WithName("hostedcontrolplane")}
		if err := mgr.Add(feed); err != nil {
			return nil, err
		}
	}
	if !enabled || config.Release { // a release reads the policy itself
		return p, nil
	}
	return p, mgr.Add(&policyFeed{
		client: management, board: p.board, keepLast: config.OnPolicyUnreadable == PolicyKeepLast,
		changed: deps.policyRead, metrics: set, now: time.Now, log: log.WithName("policy"),
	})
}

// divide separates the kinds and admission policies that this operator writes from those of others.
func (d *operatorDeps) divide(config Config) (err error) {
	if d.owning, err = operator.NewOwning(config.Own); err != nil {
		return err
	}
	kinds, err := config.kinds(d.management, d.board, d.now)
	if err != nil {
		return err
	}
	protections, err := merge.Admission(config.admission())
	if err != nil {
		return err
	}
	d.kinds, d.others = split(kinds)
	d.protections, d.ofOthers = d.owning.Split(protections)
	if d.owning.Has(operator.PartNodeClaimRules) {
		d.kinds, d.unwanted = afterRule(d.kinds, d.board), merge.Unwanted(config.admission())
	}
	return nil
}

// given returns the settings that the HostedControlPlane has to agree with.
func (c Config) given() operator.HostedGiven {
	return operator.HostedGiven{Infra: merge.Infra{InfraID: c.InfraID, InstanceProfile: c.InstanceProfile,
		ResourceTags: c.resourceTags()}}
}

// watchKinds starts an informer for each kind that a controller watches. Controllers read no other kinds.
func watchKinds(ctx context.Context, mgr manager.Manager, controllers []kube.Controller, synced *serve.Syncs) error {
	for _, c := range controllers {
		for _, watched := range c.Watches {
			informer, err := mgr.GetCache().GetInformer(ctx, watched.Object, cache.BlockUntilSynced(false))
			if err != nil {
				return err
			}
			synced.Add(serve.KindOf(watched.Object), informer.HasSynced)
		}
	}
	return nil
}
