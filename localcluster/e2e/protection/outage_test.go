package protection

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/joiner-autoscaler/joiner/localcluster/placing"
)

// outage returns requests while the webhook does not answer. Ordinary pods are created and changed. The API server
// itself refuses what must be judged. Workloads, which only get warnings, pass.
func outage() []placing.Case {
	pass := func(line string) placing.Case { return placing.Case{Want: "allow", Line: line} }
	refuse := func(line string) placing.Case { return placing.Case{Want: "unanswered", Line: line} }
	return []placing.Case{
		pass("alice create pod app/plain"), pass("alice update pod app/plain -> label=a=b"),
		pass("alice update pod app/bound -> tolerate=*"),
		pass("alice create pod app/wish prefer=zone=a"), pass("alice create deployment app/web tolerate=* dry-run"),
		refuse("alice create pod app/named node=w1"), refuse("alice create pod app/named node=cp1"),
		refuse("system:admin create pod ops/named node=cp1"),
		refuse("alice bind app/plain to=w1"), refuse("alice bind-legacy app/plain to=w1"),
		refuse("alice create pod app/any tolerate=*"),
		refuse("alice create pod app/selects select=zone=a"), refuse("alice create pod app/needs need=zone=a"),
		refuse("alice update pod app/plain -> tolerate=dedicated"),
	}
}

// The matchConditions of the user's page: while the webhook does not answer, ordinary pods are created and changed.
// The API server itself refuses what must be judged.
func TestAnOutageStopsOnlyWhatMustBeJudged(t *testing.T) {
	g := begin(t)
	g.Expect(t, "allow", "alice create pod app/bound node=w1")
	if err := g.KillWebhook(); err != nil {
		t.Fatal(err)
	}
	g.ExpectAll(t, outage())
	if err := g.StartWebhook(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.Eventually(t, "allow", "alice bind app/plain to=w1")
}

// A webhook that answers nonsense, or not at all, is like one that is away: nothing passes that it did not allow.
func TestAnAnswerThatIsNoneLetsNothingPass(t *testing.T) {
	allowed := func(version, uid string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w,
				`{"apiVersion": %q, "kind": "AdmissionReview", "response": {"uid": %q, "allowed": true}}`, version,
				uid)
		}
	}
	g := begin(t)
	for name, answer := range map[string]http.HandlerFunc{
		"an error": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
		},
		"no JSON":                   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "yes") },
		"nothing":                   func(http.ResponseWriter, *http.Request) {},
		"another request's verdict": allowed("admission.k8s.io/v1", "other"),
		"another version":           allowed("admission.k8s.io/v7", "other"),
		"a page that is elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/other", http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g.callInstead(t, answer)
			g.Eventually(t, "unanswered", dry)
			for _, c := range outage() {
				if c.Line != "alice update pod app/bound -> tolerate=*" {
					g.Expect(t, c.Want, c.Line)
				}
			}
			g.Clear(t)
		})
	}
}

// N60: if the webhook hangs, requests that aim at a group wait for its timeout, and none passes. Ordinary pods do not
// wait.
func TestAWebhookThatHangsLetsNothingPass(t *testing.T) {
	g := begin(t)
	over := make(chan struct{})
	g.callInstead(t, func(http.ResponseWriter, *http.Request) { <-over })
	t.Cleanup(func() { close(over) }) // before the server ends, which waits for its requests
	g.Eventually(t, "unanswered", dry)
	g.Expect(t, "allow", "alice create pod app/plain")
	g.Expect(t, "unanswered", "alice bind app/plain to=w1")
}

// callInstead makes the API server call a server of ours, until the test ends.
func (g guarded) callInstead(t *testing.T, answer http.HandlerFunc) {
	t.Helper()
	other := httptest.NewUnstartedServer(answer)
	other.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	other.StartTLS()
	t.Cleanup(other.Close)
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: slices.Clone(other.Certificate().Raw)})
	g.point(t, func(int) admissionv1.WebhookClientConfig {
		return admissionv1.WebhookClientConfig{URL: &other.URL, CABundle: bundle}
	})
}
