package webhook

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/certificate"
)

// OwnCertificates configures a webhook that makes its certificates itself. Its fields are named like their flags.
type OwnCertificates struct {
	// the Secret that replicas share, in --namespace; "" for certificates from files
	CertSecretName           string
	ServiceName              string        // the service in front of the webhook, in --namespace; "" for none
	CertHosts                []string      // more names and addresses by which the API server calls
	WebhookConfigurationName string        // whose caBundle the webhook writes
	Lifetime                 time.Duration // --cert-lifetime
}

func (o OwnCertificates) hosts(namespace string) []string {
	hosts := slices.Clone(o.CertHosts)
	if o.ServiceName != "" {
		hosts = append(hosts, o.ServiceName+"."+namespace+".svc")
	}
	return hosts
}

// validateCertificates checks that the certificates come either from files or from the webhook itself.
func (c Config) validateCertificates() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	own := c.OwnCertificates
	if own.CertSecretName == "" {
		for _, file := range []struct{ flag, path, want string }{
			{"tls-cert-file", c.TLSCertFile, "the certificate that the API server is to see, in PEM"},
			{"tls-key-file", c.TLSKeyFile, "its key, in PEM"},
		} {
			if file.path == "" {
				fault("--%s is missing: want the path of %s, or --cert-secret-name for certificates of its own",
					file.flag, file.want)
			}
		}
		if own.ServiceName != "" || len(own.CertHosts) > 0 || own.WebhookConfigurationName != "" {
			fault(
				"--service-name, --cert-hosts and --webhook-configuration-name are for certificates of its own: " +
					"want --cert-secret-name too")
		}
		return errors.Join(faults...)
	}
	if c.TLSCertFile != "" || c.TLSKeyFile != "" {
		fault(
			"--cert-secret-name is %q beside --tls-cert-file or --tls-key-file: want certificates of its own or from files, not both",
			own.CertSecretName)
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

// certificates provide a server's certificate, and renew it while they run.
type certificates interface {
	manager.Runnable
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Ready reports whether clients may be sent here.
	Ready() bool
}

// openCertificates reads the files of a certificate, or prepares certificates of the webhook's own.
func openCertificates(config Config, log logr.Logger) (certificates, error) {
	if config.OwnCertificates.CertSecretName == "" {
		watcher, err := certwatcher.New(config.TLSCertFile, config.TLSKeyFile)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert-file and --tls-key-file: %s", serve.OneLine(err))
		}
		return filedCertificates{watcher}, nil
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	named := rest.CopyConfig(config.Cluster)
	named.UserAgent = "joiner-webhook"
	direct, err := client.New(named, client.Options{Scheme: scheme}) // a cache would answer with old state
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig for %s cannot be used: %w", config.Cluster.Host, err)
	}
	own := config.OwnCertificates
	return serve.NewOwnCertificates(certificate.Config{
		Terms:   certificate.Terms{Name: "joiner-webhook", Hosts: own.hosts(config.Namespace), Lifetime: own.Lifetime},
		Store:   certificate.SecretStore(direct, config.Namespace, own.CertSecretName),
		Targets: []certificate.Target{certificate.ValidatingWebhooks(direct, own.WebhookConfigurationName)},
		Path:    pathToKeep(config.Authentication),
	}, log)
}

// pathToKeep returns the path before the token that the webhook maintains in its configuration. Without tokens it
// leaves the path alone.
func pathToKeep(authentication Authentication) string {
	if authentication == ByPath {
		return Path
	}
	return ""
}

// filedCertificates come from files that somebody else renews.
type filedCertificates struct{ *certwatcher.CertWatcher }

// Ready implements certificates: whoever maintains the files has to make clients trust them.
func (filedCertificates) Ready() bool { return true }
