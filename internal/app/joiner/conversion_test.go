package joiner

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/joiner-autoscaler/joiner/api/crd"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/deploy"
	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/convert"
)

// V-20: bad settings are named, and mean nothing while v1beta1 is off.
func TestSettingsOfConversion(t *testing.T) {
	t.Parallel()
	good := Conversion{V1beta1: true, WebhookPort: 8443, KarpenterService: "joiner", CertLifetime: time.Hour}
	for _, row := range []struct {
		change func(*Conversion)
		want   string
	}{
		{func(*Conversion) {}, ""},
		{func(c *Conversion) { c.KarpenterService, c.WebhookURL = "", "https://10.0.0.1:8443" }, ""},
		{func(c *Conversion) { *c = Conversion{KarpenterService: "NO", WebhookURL: "ftp://x"} }, ""},
		{func(c *Conversion) { c.WebhookPort = 70000 }, "--webhook-port is 70000"},
		{func(c *Conversion) { c.WebhookPort = 8080 }, "--webhook-port is 8080, as another port is"},
		{func(c *Conversion) { c.KarpenterService = "" }, "--v1beta1 needs --karpenter-service"},
		{func(c *Conversion) { c.WebhookURL = "https://a" }, "and not both"},
		{func(c *Conversion) { c.KarpenterService = "NO" }, `--karpenter-service is "NO"`},
		{func(c *Conversion) { c.KarpenterService, c.WebhookURL = "", "http://a" },
			`--webhook-url is "http://a": want https`},
		{func(c *Conversion) { c.TLSCertFile, c.TLSKeyFile, c.TLSCAFile = "a", "b", "c" }, ""},
		{func(c *Conversion) { c.TLSCertFile, c.TLSKeyFile = "a", "b" },
			`--tls-cert-file, --tls-key-file and --tls-ca-file are "a", "b" and "": want all three, or none`},
		{func(c *Conversion) { c.CertLifetime = time.Second }, "--cert-lifetime is 1s: want at least 1m"},
		{func(c *Conversion) { c.KarpenterService, c.WebhookURL = "", "https://a/b" },
			`--webhook-url is "https://a/b"`},
	} {
		c := good
		row.change(&c)
		if err := c.validate(8080, 8081); (err == nil) != (row.want == "") ||
			err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v; want %q", c, err, row.want)
		}
	}
	if config := DefaultConfig(); config.V1beta1 {
		t.Error("v1beta1 is on by default")
	}
}

// installed is a cluster with CRDs as a user installs them.
func installed(t *testing.T, without string, funcs interceptor.Funcs) client.Client {
	t.Helper()
	found, err := definitions(crd.Manifests)
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := newScheme(nil)
	if err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(funcs)
	for name, o := range found {
		if o.GetKind() != "CustomResourceDefinition" || name == without {
			continue
		}
		if err := unstructured.SetNestedStringSlice(o.Object, []string{"v1"}, "status", "storedVersions"); err != nil {
			t.Fatal(err)
		}
		builder.WithObjects(o)
	}
	return builder.Build()
}

func versions(t *testing.T, c client.Client, name string) string {
	t.Helper()
	found, err := definition(t.Context(), c, name)
	if err != nil {
		t.Fatal(err)
	}
	list, _, _ := unstructured.NestedSlice(found.Object, "spec", "versions")
	var names []string
	for _, version := range list {
		names = append(names, fmt.Sprint(version.(map[string]any)["name"]))
	}
	strategy, _, _ := unstructured.NestedString(found.Object, "spec", "conversion", "strategy")
	return strings.Join(names, ",") + " " + strategy
}

const pools, claims, classes = "nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws"

// V-20: v1beta1 comes into all CRDs that there are, once, and goes again; a caBundle that is there stays.
func TestDefinitionsAreSwitchedOnAndOff(t *testing.T) {
	t.Parallel()
	c := installed(t, classes, interceptor.Funcs{})
	hook := crd.Webhook{URL: "https://a/convert", CABundle: []byte("first")}
	if changed, err := serveV1beta1(t.Context(), c, hook); err != nil ||
		!slices.Equal(changed, []string{claims, pools}) {
		t.Fatalf("changed %v, %v", changed, err)
	}
	if got := versions(t, c, pools); got != "v1,v1beta1 Webhook" {
		t.Errorf("switched on: %s", got)
	}
	hook.CABundle = []byte("second")
	if changed, err := serveV1beta1(t.Context(), c, hook); err != nil || len(changed) != 0 {
		t.Errorf("again it changes %v, %v", changed, err)
	}
	if changed, err := withdrawV1beta1(t.Context(), c); err != nil || !slices.Equal(changed, []string{claims, pools}) {
		t.Fatalf("changed back %v, %v", changed, err)
	}
	if got := versions(t, c, pools); got != "v1 None" {
		t.Errorf("switched off: %s", got)
	}
	if changed, err := withdrawV1beta1(t.Context(), c); err != nil || len(changed) != 0 {
		t.Errorf("off again it changes %v, %v", changed, err)
	}
}

// V-20: while one CRD has v1beta1 in storage, none is switched off. The message says which one, and what to do. CRDs
// that somebody else converts are not touched.
func TestStoredV1beta1CannotBeSwitchedOff(t *testing.T) {
	t.Parallel()
	c := installed(t, "", interceptor.Funcs{})
	if _, err := serveV1beta1(t.Context(), c,
		crd.Webhook{URL: "https://a/convert", CABundle: []byte("first")}); err != nil {
		t.Fatal(err)
	}
	stored, err := definition(t.Context(), c, pools)
	if err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedStringSlice(stored.Object, []string{"v1beta1", "v1"}, "status", "storedVersions")
	if err := c.Status().Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	changed, err := withdrawV1beta1(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), pools) ||
		!strings.Contains(err.Error(), "joinerctl migrate storage") || strings.Contains(err.Error(), claims) ||
		len(changed) != 0 {
		t.Errorf("changed %v, %v", changed, err)
	}
	if got := versions(t, c, claims); got != "v1,v1beta1 Webhook" {
		t.Errorf("another one was switched off: %s", got)
	}
	setAnnotation(stored, "") // Karpenter's, say
	if err := c.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	if _, err := withdrawV1beta1(t.Context(), c); err != nil || versions(t, c, pools) != "v1,v1beta1 Webhook" ||
		versions(t, c, claims) != "v1 None" {
		t.Errorf("%v, pools %s, claims %s", err, versions(t, c, pools), versions(t, c, claims))
	}
}

// V-20: without the rights of deploy/v1beta1.yaml off does nothing, and on says what is missing.
func TestConversionWithoutRights(t *testing.T) {
	t.Parallel()
	c := installed(t, "",
		interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object,
			...client.GetOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "customresourcedefinitions"}, pools, nil)
		}})
	if off, err := endConversion(t.Context(), c, logr.Discard()); err != nil || off.definitions != nil {
		t.Errorf("off: %v, %v", off, err)
	}
	_, _, err := startConversion(t.Context(),
		Config{Conversion: Conversion{V1beta1: true, WebhookURL: "https://localhost", CertLifetime: time.Hour}}, c,
		prometheus.NewRegistry(), func() {}, logr.Discard())
	if err == nil || !strings.Contains(err.Error(), "deploy/v1beta1.yaml") {
		t.Errorf("on: %v", err)
	}
	if manifest := deploy.V1beta1()["v1beta1.yaml"]; !bytes.Contains(manifest,
		[]byte("name: "+conversionSecret+"\n")) {
		t.Error("deploy/v1beta1.yaml makes another Secret")
	}
}

// V-20, V-24: the webhook answers with a certificate that the CRDs trust, without caches and without leading.
// Meanwhile it reads a NodePool from the API server. What cannot be converted is counted and logged once.
func TestTheWebhookAnswersBeforeTheCaches(t *testing.T) {
	t.Parallel()
	c := installed(t, "", interceptor.Funcs{})
	old := &karpenterv1.NodePool{}
	old.Name = "default"
	old.Spec.Template.Spec.ExpireAfter.Duration = new(24 * time.Hour)
	if err := c.Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	config := DefaultConfig()
	config.V1beta1 = true
	config.WebhookPort, config.WebhookURL = freePort(t)
	registry := prometheus.NewRegistry()
	var log lines
	served, changed, err := startConversion(t.Context(), config, c, registry, func() { t.Error("the server ended") },
		funcr.New(log.add, funcr.Options{}))
	if err != nil || len(changed) != 3 {
		t.Fatalf("changed %v, %v", changed, err)
	}
	var secret corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: config.SystemNamespace, Name: conversionSecret},
		&secret); err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(secret.Data["ca.crt"])
	for _, most := range []uint16{tls.VersionTLS11, tls.VersionTLS13} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS10,
			MaxVersion: most}}
		body := post(t, &http.Client{Transport: transport}, config.WebhookURL+"/convert")
		if most == tls.VersionTLS11 && body != "" {
			t.Error("TLS 1.1 is answered")
		}
		if most == tls.VersionTLS13 && !strings.Contains(body, `"expireAfter":"24h"`) {
			t.Errorf("answer %s", body)
		}
		transport.CloseIdleConnections()
	}
	served.close()
	families, err := registry.Gather()
	if err != nil || len(families) != 2 ||
		families[0].GetMetric()[0].GetGauge().GetValue() < float64(time.Now().Unix()) ||
		families[1].GetMetric()[0].GetCounter().GetValue() != 1 {
		t.Errorf("metrics %v, %v", families, err)
	}
	if strings.Count(strings.Join(log.said, "\n"), "spec.weight") != 1 {
		t.Errorf("log %s", log.said)
	}
}

// freePort returns a port that no other test gets until this one ends, and the URL of a webhook there. The port is
// below the range from which the kernel assigns ports. A UDP socket reserves the number, which does not keep TCP from
// listening there.
func freePort(t *testing.T) (port int, url string) {
	t.Helper()
	for port := 12000; port < 20000; port++ {
		held, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = held.Close() })
		if probe, err := serve.ListenPort("webhook-port", port); err == nil {
			_ = probe.Close()
			return port, fmt.Sprintf("https://localhost:%d", port)
		}
	}
	t.Fatal("no port is free")
	return 0, ""
}

// lines are what was logged.
type lines struct {
	mu   sync.Mutex
	said []string
}

func (l *lines) add(_, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, args)
}

// post asks to convert a claim and a broken pool; "" is no answer.
func post(t *testing.T, c *http.Client, url string) string {
	t.Helper()
	const review = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"karpenter.sh/v1","objects":[
{"apiVersion":"karpenter.sh/v1beta1","kind":"NodeClaim","metadata":{"name":"a","labels":{"karpenter.sh/nodepool":"default"}},"spec":{"requirements":[],"nodeClassRef":{"name":"default"}}},
{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePool","metadata":{"name":"bad"},"spec":{"weight":"heavy","template":{"spec":{"requirements":[],"nodeClassRef":{"name":"default"}}}}}]}}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(review))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	var body bytes.Buffer
	_, _ = body.ReadFrom(response.Body)
	return body.String()
}

// V-24: what is wrong is logged again when it changes, and counted always.
func TestObservedProblems(t *testing.T) {
	t.Parallel()
	count := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "n"}, []string{"kind"})
	lines := 0
	observe := observeHeld(count, funcr.New(func(string, string) { lines++ }, funcr.Options{}))
	for _, field := range []string{"a", "a", "b"} {
		observe([]convert.Held{{Kind: "NodePool", Name: "x", Problems: []convert.Problem{{Field: field}}}})
	}
	if lines != 2 {
		t.Errorf("%d lines, want 2", lines)
	}
}

// filled is an informer of NodePools.
type filled struct {
	toolscache.SharedIndexInformer
	store  toolscache.Store
	synced bool
}

func (f *filled) HasSynced() bool            { return f.synced }
func (f *filled) GetStore() toolscache.Store { return f.store }

// V-20: the expiration of a pool's claims is read from the API server until the cache is filled, and from the cache
// afterwards.
func TestPoolsAreReadFromTheCacheOnceItIsFilled(t *testing.T) {
	t.Parallel()
	pool := &karpenterv1.NodePool{}
	pool.Name = "live"
	informer := &filled{store: toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)}
	cached := pool.DeepCopy()
	cached.Name = "cached"
	cached.Spec.Template.Spec.ExpireAfter.Duration = new(time.Hour)
	if err := informer.store.Add(cached); err != nil {
		t.Fatal(err)
	}
	live := installed(t, "", interceptor.Funcs{})
	if err := live.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	p := &poolExpiry{live: live}
	var indexed toolscache.SharedIndexInformer = informer
	p.cached.Store(&indexed)
	for _, synced := range []bool{false, true} {
		informer.synced = synced
		_, foundLive := p.of("live")
		text, foundCached := p.of("cached")
		if foundLive == synced || foundCached != synced || synced && text != "1h" {
			t.Errorf("filled %t: live %t, cached %t %q", synced, foundLive, foundCached, text)
		}
	}
}
