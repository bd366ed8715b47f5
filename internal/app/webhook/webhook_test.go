package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

func TestWebhookConfigNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	config := DefaultConfig()
	config.BindAddress, config.Namespace, config.KubeClientQPS = "8443", "A b", 0
	err := config.Validate()
	for _, want := range []string{"--policy-file is missing", "--tls-cert-file is missing",
		"--tls-key-file is missing", `--bind-address is "8443"`, `--namespace is "A b"`, "--kube-client-qps is 0"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// certificates come from files or are the webhook's own; a mixture is refused, and names are checked.
func TestCertificateSettings(t *testing.T) {
	t.Parallel()
	own := OwnCertificates{CertSecretName: "own", ServiceName: "hook", WebhookConfigurationName: "guard",
		Lifetime: time.Hour}
	valid := Config{Namespace: "space", OwnCertificates: own}
	if err := valid.validateCertificates(); err != nil ||
		!slices.Equal(own.hosts("space"), []string{"hook.space.svc"}) {
		t.Errorf("%v, %v", own.hosts("space"), err)
	}
	for want, change := range map[string]func(*Config){
		"not both":                           func(c *Config) { c.TLSCertFile = "file" },
		"--namespace is missing":             func(c *Config) { c.Namespace = "" },
		`--cert-secret-name is "A b"`:        func(c *Config) { c.OwnCertificates.CertSecretName = "A b" },
		`--webhook-configuration-name is ""`: func(c *Config) { c.OwnCertificates.WebhookConfigurationName = "" },
		`--service-name is "a.b"`:            func(c *Config) { c.OwnCertificates.ServiceName = "a.b" },
		"--service-name is missing":          func(c *Config) { c.OwnCertificates.ServiceName = "" },
		`--cert-hosts has "a b"`: func(c *Config) {
			c.OwnCertificates.CertHosts = []string{"127.0.0.1", "a b"}
		},
		"--cert-lifetime is 1s":       func(c *Config) { c.OwnCertificates.Lifetime = time.Second },
		"want --cert-secret-name too": func(c *Config) { c.OwnCertificates.CertSecretName = "" },
	} {
		config := valid
		change(&config)
		if err := config.validateCertificates(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TLS 1.2 is the least, whoever brings the certificate.
func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	secured, err := Config{}.tls(logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = nil
	server.TLS = secured
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	for version, accepted := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true,
		tls.VersionTLS13: true} {
		connection, err := tls.Dial("tcp", server.Listener.Addr().String(),
			&tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: version, MaxVersion: version})
		if (err == nil) != accepted {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		if err == nil {
			_ = connection.Close()
		}
	}
}

// a webhook that was asked to stop is not ready, so that nobody sends it more, while it still answers.
func TestX12_AWebhookThatGoesIsNotReady(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	ready := false
	why := unready(ctx, func() bool { return ready })
	if text := why(); !strings.Contains(text, "are being read") {
		t.Errorf("before it is ready: %q", text)
	}
	if ready = true; why() != "" {
		t.Errorf("when it is ready: %q", why())
	}
	stop()
	if text := why(); !strings.Contains(text, "asked to stop") {
		t.Errorf("after the signal: %q", text)
	}
	if DefaultConfig().Linger <= 0 {
		t.Error("by default it does not linger")
	}
}
