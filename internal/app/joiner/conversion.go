package joiner

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/convert"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
	"github.com/joiner-autoscaler/joiner/internal/webhook"
)

const (
	// conversionSecret is the Secret of the webhook's certificates, in the system namespace. deploy/v1beta1.yaml names
	// it too.
	conversionSecret = "joiner-v1beta1-certificates"
	// conversionWithin bounds how long a start waits for a certificate, or for an API server to serve changed CRDs.
	conversionWithin = 30 * time.Second
	// conversionsAtOnce bounds the reviews that are converted at the same time. The others wait.
	conversionsAtOnce = 128
	// conversionBytes bounds the reviews that are in memory: some of the largest, or very many of one object, as most
	// are.
	conversionBytes = 8 * convert.MaxReview
	// poolWithin bounds the question for one NodePool.
	poolWithin = time.Second
	// retryEvery is the pause between two attempts during the start.
	retryEvery = 200 * time.Millisecond
)

// conversion serves v1beta1. It runs beside the manager, not in it. The manager fills its caches before it starts
// anything else, and without the webhook the API server cannot list objects stored in v1beta1.
type conversion struct {
	pools       *poolExpiry       // nil when v1beta1 is off
	definitions *definitionKeeper // nil when the rights are missing
	failed      chan error        // at most one error, of a server that cannot go on
	stop        context.CancelFunc
	running     sync.WaitGroup
}

// openVersions serves v1beta1 or takes it away (V-20), and then makes sure that the cluster has what Run needs. It
// also returns the plug-ins that Run is to use. The caller has to close the conversion.
func openVersions(
	ctx context.Context, config Config, registry prometheus.Registerer, end context.CancelFunc, log logr.Logger,
) (c *conversion, installed []plugin.Plugin, err error) {
	if _, err := serve.CheckServer(ctx, config.REST); err != nil {
		return nil, nil, err
	}
	chosen, err := named(config.Plugins, config.Providers)
	if err != nil {
		return nil, nil, err
	}
	chosen, err = able(chosen, len(config.Providers) > 0, func(name, lacks string) {
		log.Info("a provider is left out", "provider", name, "reason", "--"+lacks+" is not set")
	})
	if err != nil {
		return nil, nil, err
	}
	direct, err := directClient(config)
	if err != nil {
		return nil, nil, err
	}
	var changed []string
	if config.V1beta1 {
		c, changed, err = startConversion(ctx, config, direct, registry, end, log)
	} else {
		c, err = endConversion(ctx, direct, log)
	}
	if err != nil {
		return nil, nil, err
	}
	if len(changed) > 0 {
		log.Info("changed CustomResourceDefinitions", "names", changed)
	}
	// The API server serves changed CRDs a moment later.
	deadline := time.Now().Add(conversionWithin)
	for {
		installed, err = checkCluster(ctx, config.REST, chosen, len(config.Providers) > 0)
		if err == nil || len(changed) == 0 || !time.Now().Before(deadline) || ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryEvery):
		}
	}
	if err != nil {
		c.close()
		return nil, nil, err
	}
	return c, installed, nil
}

// startConversion serves the webhook, in every replica, and then puts v1beta1 into the CRDs. It returns when both are
// done; the webhook is served until close. A later failure calls end and is sent to failed.
func startConversion(ctx context.Context, config Config, direct client.Client, registry prometheus.Registerer,
	end context.CancelFunc, log logr.Logger) (_ *conversion, changed []string, err error) {
	own, err := conversionCertificates(ctx, config, direct, log)
	if err != nil {
		return nil, nil, err
	}
	c := &conversion{pools: &poolExpiry{live: direct}, failed: make(chan error, 1)}
	handler, err := conversionHandler(c.pools, registry, log)
	if err != nil {
		return nil, nil, err
	}
	if err := registry.Register(serve.ExpiryMetric("karpenter_v1beta1_certificate_expiry_timestamp_seconds",
		own)); err != nil {
		return nil, nil, err
	}
	listener, err := serve.ListenPort("webhook-port", config.WebhookPort)
	if err != nil {
		return nil, nil, err
	}
	secured := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: own.GetCertificate,
		NextProtos: []string{"http/1.1"}}
	// The webhook outlives ctx, until close: steps under way may need it.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	c.running.Go(func() {
		served := serve.Server{Listener: tls.NewListener(listener, secured), Handler: handler,
			AnswerWithin: serve.AnswerWithin}
		if err := served.Start(serving); err != nil && serving.Err() == nil {
			c.failed <- fmt.Errorf("serving the conversion webhook: %w", err)
			end()
		}
	})
	if err = firstCertificate(ctx, own); err == nil {
		changed, err = serveV1beta1(ctx, direct, config.webhook(config.SystemNamespace, own.Bundle()))
	}
	if err != nil {
		c.close()
		return nil, nil, err
	}
	c.running.Go(func() { _ = own.Start(serving) }) // it ends with its context only
	c.definitions = &definitionKeeper{log: log, write: func(ctx context.Context) ([]string, error) {
		return serveV1beta1(ctx, direct, config.webhook(config.SystemNamespace, own.Bundle()))
	}}
	return c, changed, nil
}

// endConversion prepares to take v1beta1 away, and fails while that is impossible. Only the leader takes it away:
// another leader may still be set to serve it. Without the right to read CRDs nothing is done: whoever served v1beta1
// had it.
func endConversion(ctx context.Context, direct client.Client, log logr.Logger) (*conversion, error) {
	c := &conversion{stop: func() {}}
	_, err := servedDefinitions(ctx, direct)
	switch {
	case err == nil:
		c.definitions = &definitionKeeper{optional: true, log: log,
			write: func(ctx context.Context) ([]string, error) { return withdrawV1beta1(ctx, direct) }}
	case apierrors.IsForbidden(err):
		err = nil
	}
	return c, err
}

// add registers with the manager what only the leader runs.
func (c *conversion) add(mgr manager.Manager) error {
	if c.definitions == nil {
		return nil
	}
	return mgr.Add(c.definitions)
}

// failure returns why the webhook could not go on, or nil.
func (c *conversion) failure() error {
	select {
	case err := <-c.failed:
		return err
	default:
		return nil
	}
}

// close stops the webhook, and returns when it has stopped.
func (c *conversion) close() {
	c.stop()
	c.running.Wait()
}

func directClient(config Config) (client.Client, error) {
	scheme, err := newScheme(nil)
	if err != nil {
		return nil, err
	}
	named := rest.CopyConfig(config.REST)
	named.QPS, named.Burst = config.KubeClientQPS, config.KubeClientBurst
	named.UserAgent, named.Timeout = "joiner", serve.CertificateStepWithin
	direct, err := client.New(named, client.Options{Scheme: scheme}) // a cache would answer with old state
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig for %s cannot be used: %w", config.REST.Host, err)
	}
	return direct, nil
}

// firstCertificate steps until there is a certificate. It is no failure that the CRDs do not name the webhook yet.
func firstCertificate(ctx context.Context, own serve.KeptCertificates) error {
	ctx, cancel := context.WithTimeout(ctx, conversionWithin)
	defer cancel()
	ticks := time.NewTicker(retryEvery)
	defer ticks.Stop()
	for {
		_, err := own.Step(ctx, time.Now())
		if len(own.Bundle()) > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf(
				"--v1beta1 has no certificate (the rights for its Secret %s are in deploy/v1beta1.yaml): %w",
				conversionSecret, errors.Join(err, ctx.Err()))
		case <-ticks.C:
		}
	}
}

func conversionHandler(pools *poolExpiry, registry prometheus.Registerer, log logr.Logger) (http.Handler, error) {
	converter, err := convert.New(convert.Config{Expiry: pools.of})
	if err != nil {
		return nil, err
	}
	unconverted := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "karpenter_v1beta1_unconverted_objects_total",
		Help: "Answers of the conversion webhook in which another object stands for one that cannot be converted.",
	}, []string{"kind"})
	door, err := webhook.NewConversion(webhook.ConversionConfig{Converter: converter,
		Observe: observeHeld(unconverted, log)})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(webhook.ConversionPath, atOnce(conversionsAtOnce, convert.MaxReview, conversionBytes, door))
	return mux, registry.Register(unconverted)
}

// observeHeld counts objects that could not be converted, and logs each one when its problems change.
func observeHeld(count *prometheus.CounterVec, log logr.Logger) func([]convert.Held) {
	const most = 1000 // objects that are remembered
	var mu sync.Mutex
	said := map[string]string{}
	return func(held []convert.Held) {
		for _, h := range held {
			count.WithLabelValues(h.Kind).Inc()
			key, text := h.Kind+" "+h.Name, convert.Describe(h.Problems)
			mu.Lock()
			known := said[key] == text
			if len(said) >= most {
				clear(said)
			}
			said[key] = text
			mu.Unlock()
			if !known {
				log.Info("an object of v1beta1 cannot be converted; another one stands for it", "kind", h.Kind, "name",
					h.Name, "problem", text)
			}
		}
	}
}

// poolExpiry knows when NodeClaims of a NodePool expire. It reads the cache; while that is not filled, it asks for the
// one pool. It never waits for the cache: filling it may need the conversion of NodePools. Without an answer, a
// NodeClaim that an API server reads in the meantime would not expire until it is written.
type poolExpiry struct {
	live   client.Reader
	cached atomic.Pointer[toolscache.SharedIndexInformer]
}

// watch makes poolExpiry use a cache. A nil poolExpiry does nothing.
func (p *poolExpiry) watch(ctx context.Context, pools cache.Cache) error {
	if p == nil {
		return nil
	}
	informer, err := pools.GetInformer(ctx, &karpenterv1.NodePool{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	indexed, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return fmt.Errorf("the cache of NodePools is a %T: it cannot be read without waiting", informer)
	}
	p.cached.Store(&indexed)
	return nil
}

// of is convert.Config.Expiry.
func (p *poolExpiry) of(pool string) (string, bool) {
	if informer := p.cached.Load(); informer != nil && (*informer).HasSynced() {
		found, exists, err := (*informer).GetStore().GetByKey(pool)
		nodePool, ok := found.(*karpenterv1.NodePool)
		if err != nil || !exists || !ok {
			return "", false
		}
		return nodePool.Spec.Template.Spec.ExpireAfter.String(), true
	}
	ctx, cancel := context.WithTimeout(context.Background(), poolWithin)
	defer cancel()
	var found karpenterv1.NodePool
	if err := p.live.Get(ctx, client.ObjectKey{Name: pool}, &found); err != nil {
		return "", false
	}
	return found.Spec.Template.Spec.ExpireAfter.String(), true
}
