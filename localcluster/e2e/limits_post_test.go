package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// latePost is a transport to the API server that may hold creates of NodeClaims. The sender gets an error as if the
// connection broke, and the create lands when the test delivers it.
type latePost struct {
	next  http.RoundTripper
	heard func() // called when a create is held
	mu    sync.Mutex
	// by pool: creates that still pass; other pools hold nothing
	pass    map[string]int
	letters map[string]map[string]*http.Request // by pool and claim: the first create of each name
	arrived map[string]bool                     // names of claims that were delivered: their creates pass
}

func newLatePost(heard func()) *latePost {
	return &latePost{heard: heard, pass: map[string]int{}, letters: map[string]map[string]*http.Request{},
		arrived: map[string]bool{}}
}

// through makes the transport use next, and returns it.
func (l *latePost) through(next http.RoundTripper) http.RoundTripper {
	l.next = next
	return l
}

// hold lets only pass further creates of a pool through.
func (l *latePost) hold(pool string, pass int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pass[pool], l.letters[pool] = pass, map[string]*http.Request{}
}

// open lets all further creates of a pool through. Held ones stay held.
func (l *latePost) open(pool string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pass, pool)
}

// names returns the pool's claims whose creates are held.
func (l *latePost) names(pool string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.letters[pool]))
}

var errHeld = errors.New("the connection broke")

func (l *latePost) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodPost || !strings.HasSuffix(request.URL.Path, "/nodeclaims") {
		return l.next.RoundTrip(request)
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	var claim metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &claim); err != nil {
		return nil, fmt.Errorf("reading the create of a NodeClaim: %w", err)
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	if l.holds(claim.Labels[karpenterv1.NodePoolLabelKey], claim.Name, request, body) {
		l.heard()
		return nil, errHeld
	}
	return l.next.RoundTrip(request)
}

// holds keeps a copy of the request that nobody can cancel.
func (l *latePost) holds(pool, name string, request *http.Request, body []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	pass, here := l.pass[pool]
	letters := l.letters[pool]
	switch {
	case l.arrived[name]:
		return false
	case letters[name] != nil: // a retry; only deliver lets it land, even when the pool is open
	case !here:
		return false
	case pass > 0:
		l.pass[pool]--
		return false
	default:
		letters[name] = request.Clone(context.WithoutCancel(request.Context()))
		letters[name].Body = io.NopCloser(bytes.NewReader(body))
	}
	return true
}

// deliver lets held creates land, and demands that each makes its claim.
func (l *latePost) deliver(t *testing.T, pool string, names ...string) {
	t.Helper()
	for _, name := range names {
		l.mu.Lock()
		letter := l.letters[pool][name]
		l.mu.Unlock()
		response, err := l.next.RoundTrip(letter)
		if err != nil {
			t.Fatalf("creating %s late: %v", name, err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusCreated {
			t.Fatalf("creating %s late: %s, want it created\n%s %v", name, response.Status, body, err)
		}
		l.mu.Lock()
		l.arrived[name] = true
		l.mu.Unlock()
	}
}
