package app

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWebhookConfigNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	config := DefaultWebhookConfig()
	config.BindAddress, config.Namespace, config.KubeClientQPS = "8443", "A b", 0
	err := config.Validate()
	for _, want := range []string{"--policy-file is missing", "--tls-cert-file is missing", "--tls-key-file is missing", `--bind-address is "8443"`, `--namespace is "A b"`, "--kube-client-qps is 0"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// certificates come from files or are the webhook's own; a mixture is refused, and names are checked.
func TestCertificateSettings(t *testing.T) {
	t.Parallel()
	own := OwnCertificates{CertSecretName: "own", ServiceName: "hook", WebhookConfigurationName: "guard", Lifetime: time.Hour}
	valid := WebhookConfig{Namespace: "space", OwnCertificates: own}
	if err := valid.validateCertificates(); err != nil || !slices.Equal(own.hosts("space"), []string{"hook.space.svc"}) {
		t.Errorf("%v, %v", own.hosts("space"), err)
	}
	for want, change := range map[string]func(*WebhookConfig){
		"not both":                           func(c *WebhookConfig) { c.TLSCertFile = "file" },
		"--namespace is missing":             func(c *WebhookConfig) { c.Namespace = "" },
		`--cert-secret-name is "A b"`:        func(c *WebhookConfig) { c.OwnCertificates.CertSecretName = "A b" },
		`--webhook-configuration-name is ""`: func(c *WebhookConfig) { c.OwnCertificates.WebhookConfigurationName = "" },
		`--service-name is "a.b"`:            func(c *WebhookConfig) { c.OwnCertificates.ServiceName = "a.b" },
		"--service-name is missing":          func(c *WebhookConfig) { c.OwnCertificates.ServiceName = "" },
		`--cert-hosts has "a b"`:             func(c *WebhookConfig) { c.OwnCertificates.CertHosts = []string{"127.0.0.1", "a b"} },
		"--cert-lifetime is 1s":              func(c *WebhookConfig) { c.OwnCertificates.Lifetime = time.Second },
		"want --cert-secret-name too":        func(c *WebhookConfig) { c.OwnCertificates.CertSecretName = "" },
	} {
		config := valid
		change(&config)
		if err := config.validateCertificates(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
