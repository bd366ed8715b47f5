package conversion

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/joiner-autoscaler/joiner/internal/webhook"
)

const (
	// lifetime is the shortest that joiner takes. It renews after 40 s, and serves the next certificate 5 s later.
	lifetime = time.Minute
	// renewalsEnv is the environment variable with the number of renewals, for more than one of them.
	renewalsEnv = "JOINER_CONVERSION_RENEWALS"
	// rateEnv is the environment variable with the objects that must be converted per second. Only on a machine that
	// does nothing else can one demand that. Without it the number is only logged.
	rateEnv = "JOINER_CONVERSION_RATE"
	// listers read all EC2NodeClasses at once. If no rate is demanded, fewer of them do, with a pause: a renewal
	// within a minute needs a part of the machine, since the API server checks a whole CRD for each write. getters
	// read NodePools one by one.
	listers, easyListers, easyPause, getters = 8, 2, 100 * time.Millisecond, 2
	// stale is how far our own callers lag behind the CRDs at least, as an API server may; at most it is twice that.
	stale = 1500 * time.Millisecond
	// callers of our own each send reviewed objects over every connection.
	callers, reviewed = 4, 100
)

func classes(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "karpenter.k8s.aws", Version: version, Resource: "ec2nodeclasses"}
}

func pools(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "karpenter.sh", Version: version, Resource: "nodepools"}
}

// load converts as much as it can until its end, in three ways, and remembers every failure.
type load struct {
	*replicated
	at       string // the resource version of the lists
	stop     chan struct{}
	running  sync.WaitGroup
	bundle   atomic.Pointer[[]byte]
	direct   atomic.Int64 // objects that were converted for callers of our own
	mu       sync.Mutex
	seen     map[string]bool // certificates, by serial number
	failures []string
}

// renews: V-20, X-12, both replicas renew certificate and authority, and the first authority expires, while objects
// are converted. That is for the API server, which reads objects from etcd in the version that is not stored, and for
// callers that make a new connection for each review and learn late of a change in the CRDs.
func (r *replicated) renews(t *testing.T) {
	renewals, wantRate := fromEnv(t, renewalsEnv, 1), fromEnv(t, rateEnv, 1)
	l := &load{replicated: r, stop: make(chan struct{}), seen: map[string]bool{}}
	list, err := r.client.Resource(classes("v1beta1")).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l.at = list.GetResourceVersion()
	l.bundle.Store(l.published(t))
	first := l.shown(t, 0)
	good, bad := r.converted(t)
	connections, began := r.front.accepted.Load(), time.Now()
	many, pause := easyListers, easyPause
	if wantRate > 1 {
		many, pause = listers, 0
	}
	l.start(t, list, many, pause)
	time.Sleep(time.Until(first.NotAfter.Add(3*time.Second + time.Duration(renewals-1)*lifetime*3/4)))
	close(l.stop)
	l.running.Wait()
	took := time.Since(began)
	goodAfter, badAfter := r.converted(t)
	if badAfter != bad || len(l.failures) > 0 {
		t.Errorf("%d conversions failed for the API server; %d requests failed, the first of them: %s", badAfter-bad,
			len(l.failures), strings.Join(l.failures[:min(3, len(l.failures))], "\n"))
	}
	l.eventually("the first authority to go", func() (bool, string) {
		l.bundle.Store(l.published(t))
		return !trusts(*l.bundle.Load(), first), first.NotAfter.String()
	})
	for i := range r.replicas {
		if now := l.shown(t, i); now.Equal(first) {
			t.Errorf("replica %d still shows the first certificate", i)
		}
	}
	if len(l.seen) < 1+renewals {
		t.Errorf("%d certificates were seen, want %d", len(l.seen), 1+renewals)
	}
	byServer, byUs := float64(goodAfter-good)/took.Seconds(), float64(l.direct.Load())/took.Seconds()
	t.Logf(
		"%d certificates in %s: %.0f conversions/s for the API server and %.0f/s for callers of our own, "+
			"over %d new connections; %d failures",
		len(l.seen), took.Round(time.Second), byServer, byUs, r.front.accepted.Load()-connections, len(l.failures)+
			badAfter-bad)
	if byServer+byUs < float64(wantRate) {
		t.Errorf("%.0f conversions/s, want %d", byServer+byUs, wantRate)
	}
	if t.Failed() {
		r.tellCertificates(t)
	}
}

// tellCertificates tells what both replicas have logged about their certificates.
func (r *replicated) tellCertificates(t *testing.T) {
	t.Helper()
	for i := range r.replicas {
		log, err := os.ReadFile(r.replicas[i].Log())
		if err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, "certificates") {
				t.Logf("replica %d: %s", i, line)
			}
		}
	}
}

func fromEnv(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		t.Fatalf("%s is %q: want a number of at least 1", name, text)
	}
	return number
}

// published returns what the CRDs trust.
func (l *load) published(t *testing.T) *[]byte {
	definition := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
	found, err := l.client.Resource(definition).Get(t.Context(), "ec2nodeclasses.karpenter.k8s.aws",
		metav1.GetOptions{})
	if err != nil {
		l.failed("reading the CRD", err)
		return l.bundle.Load()
	}
	text, _, _ := unstructured.NestedString(found.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	bundle, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(bundle) == 0 {
		l.failed("the CRD's caBundle", fmt.Errorf("%q: %w", text, err))
	}
	return &bundle
}

// start begins all readers. many of them read a list with a pause; it must be as long as this one.
func (l *load) start(t *testing.T, list *unstructured.UnstructuredList, many int, pause time.Duration) {
	for range many {
		l.repeat(pause, func() {
			found, err := l.names.Resource(classes("v1beta1")).List(t.Context(),
				metav1.ListOptions{ResourceVersion: l.at, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
			if err == nil && len(found.Items) != len(list.Items) {
				err = fmt.Errorf("%d objects of %d", len(found.Items), len(list.Items))
			}
			l.failed("list", err)
		})
	}
	for range getters {
		l.repeat(10*time.Millisecond, func() {
			_, err := l.client.Resource(pools("v1beta1")).Get(t.Context(), "p0", metav1.GetOptions{})
			l.failed("get", err)
		})
	}
	review := reviewOf(t, list.Items[:reviewed])
	for range callers {
		l.repeat(100*time.Millisecond, func() { l.failed("review", l.review(review)) })
	}
	l.repeat(0, func() {
		bundle := l.published(t)
		time.Sleep(stale)
		l.bundle.Store(bundle)
	})
}

// repeat does something until the end, with a pause.
func (l *load) repeat(pause time.Duration, do func()) {
	l.running.Go(func() {
		for {
			select {
			case <-l.stop:
				return
			case <-time.After(pause):
				do()
			}
		}
	})
}

func (l *load) failed(what string, err error) {
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, what+": "+err.Error())
}

// reviewOf returns a review of objects of v1beta1.
func reviewOf(t *testing.T, objects []unstructured.Unstructured) []byte {
	t.Helper()
	var contents []map[string]any
	for _, o := range objects {
		contents = append(contents, o.Object)
	}
	review, err := json.Marshal(map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
		"request": map[string]any{"uid": "ours", "desiredAPIVersion": "karpenter.k8s.aws/v1", "objects": contents}})
	if err != nil {
		t.Fatal(err)
	}
	return review
}

// review sends a review over a connection of its own, and trusts what the CRDs trusted a while ago.
func (l *load) review(review []byte) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(*l.bundle.Load())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true}
	client := http.Client{Transport: transport, Timeout: 30 * time.Second}
	answer, err := client.Post(l.front.url()+webhook.ConversionPath, "application/json", bytes.NewReader(review))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || !bytes.Contains(body, []byte(`"status":"Success"`)) {
		return fmt.Errorf("HTTP status %d, %.300s, %w", answer.StatusCode, body, err)
	}
	l.direct.Add(reviewed)
	l.mu.Lock()
	l.seen[answer.TLS.PeerCertificates[0].SerialNumber.String()] = true
	l.mu.Unlock()
	return nil
}

// shown returns a replica's certificate, as a client sees it that trusts what the CRDs trusted a while ago.
func (l *load) shown(t *testing.T, replica int) *x509.Certificate {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(*l.bundle.Load())
	connection, err := tls.Dial("tcp", l.front.backends[replica],
		&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots})
	if err != nil {
		t.Fatalf("replica %d is not trusted: %v", replica, err)
	}
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0]
}

func trusts(bundle []byte, certificate *x509.Certificate) bool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := certificate.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: certificate.NotBefore})
	return err == nil
}

// converted returns how many conversions the API server has counted: those that succeeded and those that failed.
func (r *replicated) converted(t *testing.T) (good, bad int) {
	t.Helper()
	for line := range strings.SplitSeq(r.must("", "get", "--raw", "/metrics"), "\n") {
		if !strings.HasPrefix(line, "apiserver_crd_conversion_webhook_duration_seconds_count{") {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, `succeeded="true"`) {
			good += int(value)
		} else {
			bad += int(value)
		}
	}
	return good, bad
}
