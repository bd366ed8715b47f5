package protection

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
)

// reviews is how many forged reviews are sent without the path, and how many with it.
const reviews = 10_000

// forged is a review that claims a pod of an invented owner in an invented namespace.
func forged(i int) string {
	return fmt.Sprintf(
		`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1", "operation": "CREATE",
		"resource": {"group": "", "version": "v1", "resource": "pods"}, "namespace": "invented-%d", "name": "invented-%d", "userInfo": {"username": "mallory-%d"},
		"object": {"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "invented-%d", "uid": "1", "controller": true}]},
		"spec": {"nodeName": "cp1"}}}}`, i, i, i, i)
}

// asker returns a client on the network of the nodes, which trusts the webhook and has no certificate.
func (g guarded) asker(t *testing.T) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(g.configuration(t).Webhooks[0].ClientConfig.CABundle)
	return &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}},
	}
}

// ask sends a review to an address and returns the status and the answer.
func ask(t *testing.T, client *http.Client, url, review string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader([]byte(review)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// whoever reaches the webhook over the network of the nodes without knowing the path gets no verdict.
// Nothing is written, and only the rejection is counted. With the path one gets verdicts, but causes no event about
// what does not exist, and no more series of metrics. A cluster of processes has no network of pods, which would only
// be one more client.
func TestA14_ForgedReviewsCauseNothing(t *testing.T) {
	g := begin(t)
	g.Set(t, configv1.Inform)
	g.Eventually(t, "warn ControlPlane/NodeName", dry)
	client := g.asker(t)
	before, events := g.metrics(t), g.invented(t)
	for i := range reviews {
		url := g.Address()
		switch i % 3 {
		case 1:
			url += "/" + strings.ToUpper(placingtest.Token)
		case 2:
			url += "/" + placingtest.Token[1:]
		}
		if status, answer := ask(t, client, url, forged(i)); status != http.StatusNotFound ||
			strings.Contains(answer, "NodeSchedulingPolicy") {
			t.Fatalf("a forged review at %s: %d %s", url, status, answer)
		}
	}
	after := g.metrics(t)
	if rejected := value(t, after, "joiner_webhook_rejected_total") - value(t, before,
		"joiner_webhook_rejected_total"); rejected != reviews {
		t.Errorf("%d were counted, want %d", rejected, reviews)
	}
	if a, b := decisions(before), decisions(after); a != b {
		t.Errorf("decisions before\n%s\nafter\n%s", a, b)
	}
	for i := range reviews {
		if status, answer := ask(t, client, g.Address()+"/"+placingtest.Token, forged(i)); status != http.StatusOK ||
			!strings.Contains(answer, "NodeSchedulingPolicy") {
			t.Fatalf("who knows the path: %d %s", status, answer)
		}
	}
	if now := g.invented(t); now != events {
		t.Errorf("there are %d events about what does not exist, before %d", now, events)
	}
	once := g.metrics(t)
	if status, _ := ask(t, client, g.Address()+"/"+placingtest.Token, forged(reviews)); status != http.StatusOK ||
		series(once) != series(g.metrics(t)) || series(once)-series(after) > 1 {
		t.Errorf("there are %d series, before %d", series(once), series(after))
	}
}

func (g guarded) metrics(t *testing.T) string {
	t.Helper()
	text, err := g.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// invented counts the events about what forged reviews name.
func (g guarded) invented(t *testing.T) int {
	t.Helper()
	events, err := g.Clients.EventsV1().Events("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, event := range events.Items {
		if strings.Contains(event.Regarding.Name+event.Namespace+event.Note, "invented") {
			found++
		}
	}
	return found
}

// decisions returns the lines about decisions.
func decisions(metrics string) string {
	return strings.Join(regexp.MustCompile(`(?m)^node_scheduling_policy_decisions_total.*$`).FindAllString(metrics,
		-1), "\n")
}

// series counts the lines of the policy's own metrics.
func series(metrics string) int {
	return len(regexp.MustCompile(`(?m)^(node_scheduling_policy|joiner_webhook)_[^ ]+ `).FindAllString(metrics, -1))
}

func value(t *testing.T, metrics, name string) int {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(metrics)
	if found == nil {
		t.Fatalf("there is no metric %s", name)
	}
	var number float64
	if _, err := fmt.Sscan(found[1], &number); err != nil {
		t.Fatal(err)
	}
	return int(number)
}

// metricsOf returns the metrics of a replica.
func metricsOf(t *testing.T, replica *rig.Controller) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		fmt.Sprintf("http://127.0.0.1:%d/metrics", replica.MetricsPort), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
