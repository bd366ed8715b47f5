package serve

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/joiner-autoscaler/joiner/internal/certificate"
)

// a replica without a certificate, or with one that is not trusted, says so to probes. With a trusted one, the
// metric shows when it ends.
func TestReadinessAndExpiryFollowTheCertificate(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme).Build()
	config := certificate.Config{Terms: certificate.Terms{Name: "hook", Hosts: []string{"hook.space.svc"},
		Lifetime: time.Hour}, Store: certificate.SecretStore(cluster, "space", "own")}
	own, err := NewOwnCertificates(config, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(ExpiryMetric("joiner_webhook_certificate_expiry_timestamp_seconds", own))
	expiry := func() float64 {
		families, err := registry.Gather()
		if err != nil || len(families) != 1 ||
			families[0].GetName() != "joiner_webhook_certificate_expiry_timestamp_seconds" {
			t.Fatalf("metrics %v, %v", families, err)
		}
		return families[0].GetMetric()[0].GetGauge().GetValue()
	}
	health := HealthHandler(own.Ready)
	probe := func() int {
		answer := httptest.NewRecorder()
		health.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		return answer.Code
	}
	if code := probe(); code != http.StatusServiceUnavailable || expiry() != 0 {
		t.Errorf("before the first step: %d", code)
	}
	if said := own.step(t.Context(), ""); said != "" {
		t.Fatal(said)
	}
	if code, ends := probe(), expiry(); code != http.StatusOK || ends < float64(time.Now().Unix()) {
		t.Errorf("after it: %d, ends at %v", code, ends)
	}
	config.Targets = []certificate.Target{certificate.ValidatingWebhooks(cluster, "none")}
	without, err := NewOwnCertificates(config, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if said := without.step(t.Context(), ""); !strings.Contains(said, "none") || without.Ready() {
		t.Errorf("without its configuration: ready %t, %q", without.Ready(), said)
	}
}
