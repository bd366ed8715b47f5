package joiner

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/joiner-autoscaler/joiner/internal/certificate"
)

// folder writes a certificate with an authority of its own to a folder, like a mounted Secret of somebody else. It
// returns the settings that name the files.
func folder(t *testing.T, host string) (c Conversion) {
	t.Helper()
	cluster := installed(t, "", interceptor.Funcs{})
	keeper, err := certificate.NewKeeper(certificate.Config{
		Terms: certificate.Terms{Name: "somebody", Hosts: []string{host}, Lifetime: time.Hour},
		Store: certificate.SecretStore(cluster, "space", "s"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keeper.Step(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	var secret corev1.Secret
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "space", Name: "s"}, &secret); err != nil {
		t.Fatal(err)
	}
	at := t.TempDir()
	for name, data := range secret.Data {
		if err := os.WriteFile(filepath.Join(at, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.TLSCertFile, c.TLSKeyFile, c.TLSCAFile = filepath.Join(at, "tls.crt"), filepath.Join(at, "tls.key"),
		filepath.Join(at, "ca.crt")
	return c
}

// V-20: with a Secret of somebody else, the webhook serves that certificate, the CRDs trust its authority, and no
// Secret is made.
func TestTheWebhookShowsACertificateFromFiles(t *testing.T) {
	t.Parallel()
	c := installed(t, "", interceptor.Funcs{})
	config := DefaultConfig()
	config.Conversion = folder(t, "localhost")
	config.V1beta1 = true
	config.WebhookPort, config.WebhookURL = freePort(t)
	served, changed, err := startConversion(t.Context(), config, c, prometheus.NewRegistry(),
		func() { t.Error("the server ended") }, logr.Discard())
	if err != nil || len(changed) != 3 {
		t.Fatalf("changed %v, %v", changed, err)
	}
	defer served.close()
	for _, name := range []string{pools, claims, classes} {
		found, err := definition(t.Context(), c, name)
		if err != nil {
			t.Fatal(err)
		}
		text, _, _ := unstructured.NestedString(found.Object, "spec", "conversion", "webhook", "clientConfig",
			"caBundle")
		bundle, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		trusted := x509.NewCertPool()
		trusted.AppendCertsFromPEM(bundle)
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true}
		if body := post(t, &http.Client{Transport: transport}, config.WebhookURL+"/convert"); !strings.Contains(body,
			"ConversionReview") {
			t.Errorf("to who trusts %s it answers %q", name, body)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: config.SystemNamespace, Name: conversionSecret},
		&corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("a Secret of its own: %v", err)
	}
}

// V-20, X-09: files that cannot be served end the start with the flag and the reason, in one line without a key.
func TestBadFilesOfCertificatesAreNamed(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(c, other *Conversion){
		"--tls-cert-file: open ": func(c, _ *Conversion) { c.TLSCertFile += "x" },
		"--tls-ca-file: open ":   func(c, _ *Conversion) { c.TLSCAFile += "x" },
		"private key does not match": func(c, other *Conversion) {
			c.TLSKeyFile = other.TLSKeyFile
		},
		"tls.crt is not trusted by who trusts --tls-ca-file ": func(c, other *Conversion) {
			c.TLSCAFile = other.TLSCAFile
		},
		`tls.crt is not for "joiner.kube-system.svc"`: func(c, _ *Conversion) {
			c.WebhookURL, c.KarpenterService = "", "joiner"
		},
	} {
		config := DefaultConfig()
		config.Conversion = folder(t, "localhost")
		config.WebhookURL = "https://localhost"
		other := folder(t, "localhost")
		change(&config.Conversion, &other)
		_, _, err := startConversion(t.Context(), config, installed(t, "", interceptor.Funcs{}),
			prometheus.NewRegistry(), func() {}, logr.Discard())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") ||
			strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
