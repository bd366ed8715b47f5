// Package webhook is the composition root of joiner-webhook, which protects control plane nodes at admission.
package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolsevents "k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/webhook"
	"github.com/joiner-autoscaler/joiner/nodescheduling/door"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// Path is where joiner-webhook answers reviews of the node scheduling policy.
const Path = "/node-scheduling"

// Run serves the node scheduling policy as a validating webhook until ctx ends, and returns nil then. Errors before
// the start are for people, one line each.
func Run(ctx context.Context, config Config, log logr.Logger) error {
	policy, err := config.readPolicy()
	if err != nil {
		return err
	}
	if err := tuneCollector(os.LookupEnv); err != nil {
		return err
	}
	shown, err := openCertificates(config, log)
	if err != nil {
		return err
	}
	secured, err := config.tls(log)
	if err != nil {
		return err
	}
	secured.GetCertificate = shown.GetCertificate
	verify, err := config.verifier(shown, log)
	if err != nil {
		return err
	}
	listener, err := serve.ListenAt("bind-address", config.BindAddress)
	if err != nil {
		return err
	}
	defer listener.Close() // the manager closes it as well
	servers, err := serve.OpenAddresses(config.MetricsBindAddress, config.HealthProbeBindAddress)
	if err != nil {
		return err
	}
	defer servers.Close()
	if err := checkWebhookCluster(ctx, config); err != nil {
		return err
	}
	mgr, err := newWebhookManager(ctx, config, log)
	if err != nil {
		return fmt.Errorf("setting up the connection to %s: %w", config.Cluster.Host, err)
	}
	sources := evaluator.Sources{Config: policy, SelfNamespace: config.Namespace}
	p, err := assembleWebhook(mgr, sources, config.Authentication != Unverified, log)
	if err != nil {
		return err
	}
	rejected := Rejections()
	if err := errors.Join(p.registry.Register(rejected), p.registry.Register(serve.ExpiryMetric(ExpiryMetric,
		shown))); err != nil {
		return err
	}
	ready := func() bool { return p.ready() && shown.Ready() }
	if err := servers.Add(mgr,
		serve.MetricsHandler(serve.Gathered(prometheus.Gatherers{p.registry, ctrlmetrics.Registry}), false),
		serve.HealthHandlerOf(unready(ctx, ready))); err != nil {
		return err
	}
	if err := errors.Join(mgr.Add(shown),
		mgr.Add(serve.Server{Listener: tls.NewListener(listener, secured),
			Handler:      serve.Parting(ctx, config.handler(verify, p.handler, rejected)),
			AnswerWithin: serve.AnswerWithin})); err != nil {
		return err
	}
	// All parts stay until the end: verdicts need what they follow.
	lingering, cancel := serve.Linger(ctx, config.Linger, ready)
	defer cancel()
	log.Info("started", "cluster", config.Cluster.Host, "address", listener.Addr().String(), "path", Path)
	if err := serve.RunManager(lingering, mgr, serve.EndWithin); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	log.Info("stopped")
	return nil
}

// unready returns why no more requests should be sent here, "" while they should. Nobody should send one after the
// signal to stop, although it would be answered for a while.
func unready(ctx context.Context, ready func() bool) func() string {
	return func() string {
		switch {
		case ctx.Err() != nil:
			return "the webhook was asked to stop"
		case !ready():
			return "nodes and the live source are being read, or clients would not trust the certificate"
		}
		return ""
	}
}

func checkWebhookCluster(ctx context.Context, config Config) error {
	_, err := serve.CheckServer(ctx, config.Cluster)
	return err
}

func newWebhookManager(ctx context.Context, config Config, log logr.Logger) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	limited := rest.CopyConfig(config.Cluster)
	limited.QPS, limited.Burst, limited.UserAgent = config.KubeClientQPS, config.KubeClientBurst, "joiner-webhook"
	stop := serve.StopWithin
	return manager.New(limited, manager.Options{
		Scheme: scheme, Logger: serve.Quiet(ctx, log),
		Metrics:                 metricsserver.Options{BindAddress: "0"}, // serve.go does
		HealthProbeBindAddress:  "0",
		GracefulShutdownTimeout: &stop,
	})
}

// webhookProcess holds the parts of a running webhook that are needed after assembly.
type webhookProcess struct {
	registry *prometheus.Registry
	handler  http.Handler
	ready    func() bool
}

// assembleWebhook wires the parts that judge requests. Without events it writes none: the caller is unverified.
func assembleWebhook(mgr manager.Manager, sources evaluator.Sources, events bool,
	log logr.Logger) (*webhookProcess, error) {
	clients, err := kubernetes.NewForConfig(mgr.GetConfig())
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	objects, err := dynamic.NewForConfig(mgr.GetConfig())
	if err != nil {
		return nil, err
	}
	metrics := door.NewMetrics(registry)
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithTransform(door.Slim))
	namespaces := door.NamespacesOf(factory.Core().V1().Namespaces().Informer(), clients)
	informer := factory.Core().V1().Nodes().Informer()
	nodes, err := door.NodesOf(informer, sources.Config)
	if err != nil {
		return nil, err
	}
	policy, err := door.NewPolicy(door.PolicyConfig{Sources: sources, Metrics: metrics, Log: log,
		Read:      door.NewLiveReader(objects, clients.Discovery().RESTClient()).Read,
		Namespace: namespaces.UID, Nodes: nodes})
	if err != nil {
		return nil, err
	}
	run := manager.RunnableFunc(func(ctx context.Context) error {
		factory.StartWithContext(ctx)
		<-ctx.Done()
		factory.Shutdown()
		return nil
	})
	known := door.Known{Nodes: informer.HasSynced, LiveSource: policy.Known}
	var recorder toolsevents.EventRecorder
	if events {
		recorder = mgr.GetEventRecorder("joiner-webhook")
	}
	writer := door.NewEvents(recorder, door.ExistsIn(clients), metrics)
	handler, err := webhook.NewNodeScheduling(webhook.NodeSchedulingConfig{
		Judge: policy.Judge, Cluster: known.Ports(clients, nodes, namespaces),
		Group:   door.NewGroupWrites(objects),
		Observe: door.Observer(writer, metrics, log), Took: door.NewDurations(registry).Observe,
	})
	if err != nil {
		return nil, err
	}
	p := &webhookProcess{registry: registry, handler: handler, ready: known.All}
	return p, errors.Join(mgr.Add(policy), mgr.Add(run), mgr.Add(writer))
}
