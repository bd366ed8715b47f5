package joiner

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joiner-autoscaler/joiner/api/crd"
	"github.com/joiner-autoscaler/joiner/internal/certificate"
	"github.com/joiner-autoscaler/joiner/internal/webhook"
)

// Conversion configures how v1beta1 is served beside v1 (V-20). Its fields are named like their flags.
type Conversion struct {
	V1beta1          bool   // the webhook and the version in the CRDs, together
	WebhookPort      int    // of the webhook, and of the service in front of it
	KarpenterService string // that service, in the system namespace; "" with WebhookURL
	WebhookURL       string // for API servers that cannot reach services: https, host and port

	CertLifetime                       time.Duration // of certificates that the program makes itself
	TLSCertFile, TLSKeyFile, TLSCAFile string        // instead of those; all three, maintained by somebody else
}

// validate returns an error for each field that cannot work. Without V1beta1 it ignores the other fields, which charts
// always set.
func (c Conversion) validate(otherPorts ...int) error {
	if !c.V1beta1 {
		return nil
	}
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if c.WebhookPort < 1 || c.WebhookPort > 65535 {
		fault("--webhook-port is %d: want a port from 1 to 65535", c.WebhookPort)
	}
	for _, other := range otherPorts {
		if other == c.WebhookPort {
			fault("--webhook-port is %d, as another port is: give each its own", c.WebhookPort)
		}
	}
	if (c.KarpenterService == "") == (c.WebhookURL == "") {
		fault(
			"--v1beta1 needs --karpenter-service, by which the API server finds the webhook, or --webhook-url, "+
				"and not both: they are %q and %q",
			c.KarpenterService, c.WebhookURL)
	}
	if problems := validation.IsDNS1035Label(c.KarpenterService); c.KarpenterService != "" && len(problems) > 0 {
		fault("--karpenter-service is %q: want the name of a service (%s)", c.KarpenterService,
			strings.Join(problems, "; "))
	}
	if c.WebhookURL != "" {
		at, err := url.Parse(c.WebhookURL)
		if err != nil || at.Scheme != "https" || at.Hostname() == "" || at.User != nil || at.RawQuery != "" ||
			at.Fragment != "" || strings.Trim(at.Path, "/") != "" {
			fault("--webhook-url is %q: want https, host and port, for example https://10.0.0.1:8443", c.WebhookURL)
		}
	}
	if given := c.TLSCertFile != ""; given != (c.TLSKeyFile != "") || given != (c.TLSCAFile != "") {
		fault(
			"--tls-cert-file, --tls-key-file and --tls-ca-file are %q, %q and %q: want all three, or none for certificates of its own",
			c.TLSCertFile, c.TLSKeyFile, c.TLSCAFile)
	}
	if c.CertLifetime < certificate.MinLifetime {
		fault("--cert-lifetime is %s: want at least %s", c.CertLifetime, certificate.MinLifetime)
	}
	return errors.Join(faults...)
}

// webhook returns what CRDs say of the webhook, for a valid configuration.
func (c Conversion) webhook(namespace string, bundle []byte) crd.Webhook {
	if c.WebhookURL != "" {
		return crd.Webhook{URL: strings.TrimRight(c.WebhookURL, "/") + webhook.ConversionPath, CABundle: bundle}
	}
	return crd.Webhook{Namespace: namespace, Service: c.KarpenterService, Path: webhook.ConversionPath,
		Port: int32(c.WebhookPort), CABundle: bundle}
}

// host returns the name by which API servers call the webhook.
func (c Conversion) host(namespace string) string {
	if c.WebhookURL == "" {
		return c.KarpenterService + "." + namespace + ".svc"
	}
	at, err := url.Parse(c.WebhookURL)
	if err != nil {
		return "" // not a valid configuration
	}
	return at.Hostname()
}
