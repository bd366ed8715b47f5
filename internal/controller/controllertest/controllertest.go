// Package controllertest has small fakes for the tests of the controllers: an API server in memory, a clock that
// stands still, a recorder that remembers. Only tests import it.
package controllertest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// Start returns the time of the tests' clock: a whole second, as in the API.
func Start() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// NewServer returns a builder of an API server in memory with these objects. It knows our kinds and Kubernetes', and
// has the indexes of the process's caches: pods by node, nodes by provider ID, claims by provider ID, node and pool.
func NewServer(t *testing.T, objects ...client.Object) *fake.ClientBuilder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme, karpenterv1.AddToScheme,
		karpenterv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	claimField := func(get func(*karpenterv1.NodeClaim) string) client.IndexerFunc {
		return func(o client.Object) []string { return []string{get(o.(*karpenterv1.NodeClaim))} }
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&karpenterv1.NodeClaim{}, &karpenterv1.NodePool{}, &karpenterv1alpha1.NodeOverlay{}).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string {
			return []string{o.(*corev1.Pod).Spec.NodeName}
		}).
		WithIndex(&corev1.Node{}, "spec.providerID", func(o client.Object) []string {
			return []string{o.(*corev1.Node).Spec.ProviderID}
		}).
		WithIndex(&karpenterv1.NodeClaim{}, "status.providerID",
			claimField(func(c *karpenterv1.NodeClaim) string { return c.Status.ProviderID })).
		WithIndex(&karpenterv1.NodeClaim{}, "status.nodeName",
			claimField(func(c *karpenterv1.NodeClaim) string { return c.Status.NodeName })).
		WithIndex(&karpenterv1.NodeClaim{}, "nodepool", claimField(translate.PoolOf))
}

// Clock is a clock that moves only with Advance.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands at Start.
func NewClock() *Clock { return &Clock{now: Start()} }

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Tape is a recorder that remembers events as "name reason: message".
type Tape struct {
	mu   sync.Mutex
	said []string
}

// Event implements event.Recorder.
func (t *Tape) Event(about client.Object, _ event.Kind, reason, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = append(t.said, fmt.Sprintf("%s %s: %s", about.GetName(), reason, message))
}

// Said returns the events so far.
func (t *Tape) Said() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.said...)
}
