package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"
)

const objects = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: guard}
webhooks:
- {name: one.example.com, clientConfig: {service: {name: hook, namespace: space}}, unknownToUs: kept}
- {name: two.example.com, clientConfig: {service: {name: hook, namespace: space}, caBundle: eA==}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {url: "https://hook.space.svc"}, conversionReviewVersions: [v1]}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: plain.example.com}
spec: {conversion: {strategy: None}}
`

// cluster is an API server in memory with the objects.
func cluster(t *testing.T, more ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for text := range strings.SplitSeq(objects, "---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		more = append(more, o)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(more...).Build()
}

func targets(c client.Client) []Target {
	return []Target{ValidatingWebhooks(c, "guard"), ConvertedDefinition(c, "things.example.com")}
}

func keeper(t *testing.T, c client.Client, to ...Target) *Keeper {
	t.Helper()
	k, err := NewKeeper(Config{Terms: terms(), Store: SecretStore(c, "space", "own"), Targets: to})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// X-12, V-20: replicas that start at the same moment, and then renew at the same moment, agree on one certificate, and
// every target of both kinds trusts it.
func TestReplicasAgree(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	replicas := []*Keeper{keeper(t, c, targets(c)...), keeper(t, c, targets(c)...)}
	changes := map[Change]int{}
	together := func(now time.Time) {
		var all sync.WaitGroup
		said := make([]Change, len(replicas))
		for i, k := range replicas {
			all.Go(func() {
				var err error
				if said[i], err = k.Step(t.Context(), now); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, change := range said {
			changes[change]++
		}
	}
	for _, at := range []time.Duration{0, 0, 0, 60 * day, 60 * day, 61 * day, 61 * day, 62 * day, 62 * day, 62 * day} {
		together(began().Add(at))
	}
	first, second := replicas[0].served.Load(), replicas[1].served.Load()
	if !first.Leaf.Equal(second.Leaf) || changes[Created] != 1 || changes[Prepared] != 1 || changes[Renewed] != 1 {
		t.Errorf("one certificate %t, changes %v", first.Leaf.Equal(second.Leaf), changes)
	}
	for i, target := range targets(c) {
		held, err := target.Read(t.Context())
		if err != nil || len(held.Bundles) != 2-i {
			t.Fatalf("target %d: %d bundles, %v", i, len(held.Bundles), err)
		}
		for _, bundle := range held.Bundles {
			if err := trusts(bundle, first, began().Add(62*day)); err != nil {
				t.Errorf("target %d: %v", i, err)
			}
		}
	}
	if !replicas[0].Ready() || !replicas[1].Ready() {
		t.Error("not ready")
	}
	guard := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "admissionregistration.k8s.io/v1",
		"kind": "ValidatingWebhookConfiguration"}}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "guard"}, guard); err != nil {
		t.Fatal(err)
	}
	webhooks, _, _ := unstructured.NestedSlice(guard.Object, "webhooks")
	if webhooks[0].(map[string]any)["unknownToUs"] != "kept" {
		t.Error("what we do not know was taken away")
	}
}

// Errors name what cannot be used. Somebody else's Secret is left alone, and a replica is not ready without its
// target.
func TestWhatIsInTheWayIsNamed(t *testing.T) {
	t.Parallel()
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "space", Name: "own"},
		Data: map[string][]byte{"precious": []byte("x")}}
	c := cluster(t)
	for want, k := range map[string]*Keeper{
		"the Secret space/own has no label joiner.sh/own-certificates": keeper(t, cluster(t, foreign), targets(c)...),
		"ValidatingWebhookConfiguration none: it does not exist":       keeper(t, c, ValidatingWebhooks(c, "none")),
		"plain.example.com: spec.conversion.webhook.clientConfig": keeper(t, c,
			ConvertedDefinition(c, "plain.example.com")),
	} {
		if _, err := k.Step(t.Context(), began()); err == nil || !strings.Contains(err.Error(), want) || k.Ready() {
			t.Errorf("ready %t, %v; want %q", k.Ready(), err, want)
		}
	}
	for want, config := range map[string]Config{
		"Store is missing": {Terms: terms()},
		"Hosts is empty":   {Terms: Terms{Name: "n", Lifetime: Lifetime}, Store: &shared{}},
		"Lifetime is 1s: ": {Terms: Terms{Name: "n", Hosts: []string{"h"}, Lifetime: time.Second}, Store: &shared{}},
		"Name is missing":  {Store: &shared{}},
	} {
		if _, err := NewKeeper(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := keeper(t, c).GetCertificate(nil); err == nil {
		t.Error("a certificate before the first step")
	}
}

// a server that renews its certificate under 1,000 requests, each with a connection and the bundle of its own,
// fails none; what a client sees is the published bundle only.
func TestNoRequestFailsForARenewal(t *testing.T) {
	t.Parallel()
	const rounds, clients = 250, 4
	b := &board{meanwhile: func() {}}
	k, err := NewKeeper(Config{Terms: terms(), Store: &shared{meanwhile: func() {}}, Targets: []Target{b}})
	if err != nil {
		t.Fatal(err)
	}
	now := began()
	if _, err := k.Step(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "yes")
	}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: k.GetCertificate}
	server.StartTLS()
	defer server.Close()
	renewals := 0
	for range rounds {
		// Clients learn of a bundle late: during this step, they use the one from before it.
		bundle, at := b.bundle, now
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				if err := ask(server.URL, bundle, at); err != nil {
					t.Error(err)
				}
			})
		}
		now = now.Add(12 * time.Hour)
		change, err := k.Step(t.Context(), now)
		if err != nil || !k.Ready() {
			t.Errorf("at %s: ready %t, %v", now, k.Ready(), err)
		}
		if change == Renewed {
			renewals++
		}
		if all.Wait(); t.Failed() {
			return
		}
	}
	if renewals != 2 {
		t.Errorf("%d renewals", renewals)
	}
}

func ask(url string, bundle []byte, now time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: roots, ServerName: "hook.space.svc", Time: func() time.Time { return now },
	}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if answer, err := io.ReadAll(response.Body); err != nil || string(answer) != "yes" {
		return errors.Join(err, errors.New("answered "+string(answer)))
	}
	return nil
}
