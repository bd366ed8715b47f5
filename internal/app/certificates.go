package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/joiner-autoscaler/joiner/internal/certificate"
)

// OwnCertificates are the settings of a webhook that makes its certificates itself. Fields are named like their flags.
type OwnCertificates struct {
	CertSecretName           string        // the Secret that replicas share, in --namespace; "" for certificates from files
	ServiceName              string        // the service in front of the webhook, in --namespace; "" for none
	CertHosts                []string      // further names and addresses by which the API server calls
	WebhookConfigurationName string        // whose caBundle is kept
	Lifetime                 time.Duration // --cert-lifetime
}

func (o OwnCertificates) hosts(namespace string) []string {
	hosts := slices.Clone(o.CertHosts)
	if o.ServiceName != "" {
		hosts = append(hosts, o.ServiceName+"."+namespace+".svc")
	}
	return hosts
}

// validateCertificates: they come either from files or from the webhook itself.
func (c WebhookConfig) validateCertificates() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	own := c.OwnCertificates
	if own.CertSecretName == "" {
		for _, file := range []struct{ flag, path, want string }{
			{"tls-cert-file", c.TLSCertFile, "the certificate that the API server is to see, in PEM"},
			{"tls-key-file", c.TLSKeyFile, "its key, in PEM"},
		} {
			if file.path == "" {
				fault("--%s is missing: want the path of %s, or --cert-secret-name for certificates of its own", file.flag, file.want)
			}
		}
		if own.ServiceName != "" || len(own.CertHosts) > 0 || own.WebhookConfigurationName != "" {
			fault("--service-name, --cert-hosts and --webhook-configuration-name are for certificates of its own: want --cert-secret-name too")
		}
		return errors.Join(faults...)
	}
	if c.TLSCertFile != "" || c.TLSKeyFile != "" {
		fault("--cert-secret-name is %q beside --tls-cert-file or --tls-key-file: want certificates of its own or from files, not both", own.CertSecretName)
	}
	if c.Namespace == "" {
		fault("--namespace is missing: want the namespace of the Secret --cert-secret-name")
	}
	for _, name := range []struct{ flag, value string }{
		{"cert-secret-name", own.CertSecretName}, {"webhook-configuration-name", own.WebhookConfigurationName},
	} {
		if problems := validation.IsDNS1123Subdomain(name.value); len(problems) > 0 {
			fault("--%s is %q: want the name of an object (%s)", name.flag, name.value, strings.Join(problems, "; "))
		}
	}
	if problems := validation.IsDNS1035Label(own.ServiceName); own.ServiceName != "" && len(problems) > 0 {
		fault("--service-name is %q: want the name of a service (%s)", own.ServiceName, strings.Join(problems, "; "))
	}
	if len(own.hosts(c.Namespace)) == 0 {
		fault("--service-name is missing: want the service by which the API server calls, or --cert-hosts")
	}
	for _, host := range own.CertHosts {
		if net.ParseIP(host) == nil && len(validation.IsDNS1123Subdomain(host)) > 0 {
			fault("--cert-hosts has %q: want DNS names and IP addresses", host)
		}
	}
	if own.Lifetime < certificate.MinLifetime {
		fault("--cert-lifetime is %s: want at least %s", own.Lifetime, certificate.MinLifetime)
	}
	return errors.Join(faults...)
}

// certificates show a server's clients its certificate, and keep it new while they run.
type certificates interface {
	manager.Runnable
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Ready says whether clients may be sent here.
	Ready() bool
}

// openCertificates reads the files of a certificate, or prepares certificates of the webhook's own.
func openCertificates(config WebhookConfig, log logr.Logger) (certificates, error) {
	if config.OwnCertificates.CertSecretName == "" {
		watcher, err := certwatcher.New(config.TLSCertFile, config.TLSKeyFile)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert-file and --tls-key-file: %s", oneLine(err))
		}
		return filedCertificates{watcher}, nil
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	named := rest.CopyConfig(config.Cluster)
	named.UserAgent = "joiner-webhook"
	direct, err := client.New(named, client.Options{Scheme: scheme}) // a cache would answer with the past
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig for %s cannot be used: %w", config.Cluster.Host, err)
	}
	own := config.OwnCertificates
	return newOwnCertificates(certificate.Config{
		Terms:   certificate.Terms{Name: "joiner-webhook", Hosts: own.hosts(config.Namespace), Lifetime: own.Lifetime},
		Store:   certificate.SecretStore(direct, config.Namespace, own.CertSecretName),
		Targets: []certificate.Target{certificate.ValidatingWebhooks(direct, own.WebhookConfigurationName)},
	}, log)
}

// expiryMetric tells when what is shown ends, for an alert on a renewal that does not go on; 0 while there is nothing.
func expiryMetric(name string, shown interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
}) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: name, Help: "When the certificate that clients are shown ends, in seconds since 1970.",
	}, func() float64 {
		if served, err := shown.GetCertificate(nil); err == nil && served.Leaf != nil {
			return float64(served.Leaf.NotAfter.Unix())
		}
		return 0
	})
}

// filedCertificates come from files that somebody else renews.
type filedCertificates struct{ *certwatcher.CertWatcher }

// Ready implements certificates: who put the files there has to see to it that they are trusted.
func (filedCertificates) Ready() bool { return true }

// certificateStepWithin bounds one step of a keeper.
const certificateStepWithin = 10 * time.Second

// stepped are certificates that are kept new by steps.
type stepped interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Bundle is what clients are to trust.
	Bundle() []byte
	Step(context.Context, time.Time) (certificate.Change, error)
}

// keptCertificates makes the steps, in every replica.
type keptCertificates struct {
	stepped
	every time.Duration
	log   logr.Logger
}

// ownCertificates are those that a webhook makes itself.
type ownCertificates struct {
	keptCertificates
	keeper *certificate.Keeper
}

func newOwnCertificates(config certificate.Config, log logr.Logger) (ownCertificates, error) {
	keeper, err := certificate.NewKeeper(config)
	return ownCertificates{keptCertificates{stepped: keeper, every: config.Terms.Every(), log: log}, keeper}, err
}

// Ready implements certificates.
func (o ownCertificates) Ready() bool { return o.keeper.Ready() }

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica serves.
func (keptCertificates) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (k keptCertificates) Start(ctx context.Context) error {
	ticks := time.NewTicker(k.every)
	defer ticks.Stop()
	said := ""
	for {
		said = k.step(ctx, said)
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// step makes one step, and logs a failure that was not said last.
func (k keptCertificates) step(ctx context.Context, said string) string {
	bounded, cancel := context.WithTimeout(ctx, certificateStepWithin)
	defer cancel()
	change, err := k.Step(bounded, time.Now())
	if change != "" {
		k.log.Info("certificates", "change", change)
	}
	if err == nil || ctx.Err() != nil {
		return ""
	}
	if text := oneLine(err); text != said {
		k.log.Error(err, "certificates cannot be kept; what is served stays")
		return text
	}
	return said
}
