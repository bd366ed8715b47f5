// Package unseen knows what this process wrote last, so that a step can tell when its cache does not show that yet. Such a step
// would begin from a picture that is known to be old: what it writes is refused, or written a second time (B-12). The watch that
// brings the newer object wakes it.
package unseen

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// most is for how long a step waits for its cache at most: a watch may break, and an object may never be shown.
const most = 5 * time.Second

// again is how soon a step that waits looks again. The watch nearly always comes before.
const again = time.Second

// Objects are the NodeClaims, Nodes and NodePools that this process has written and not seen since. It is safe for concurrent
// use, and calls nothing while locked. Nil remembers nothing.
type Objects struct {
	now func() time.Time

	mu   sync.Mutex
	last map[string]write // by kind and name
}

type write struct {
	version string
	at      time.Time
	ends    types.UID // of the object, when the write was its end
}

// New returns a memory of nothing.
func New(now func() time.Time) *Objects { return &Objects{now: now, last: map[string]write{}} }

// Behind returns how long to wait until the cache shows what was written last of the object, which is from the cache; 0 when it
// does, or was waited for long enough. What is no resource version of Kubernetes counts as shown.
func (o *Objects) Behind(obj client.Object) time.Duration {
	if o == nil {
		return 0
	}
	key, now := keyOf(obj), o.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	known, found := o.last[key]
	if !found {
		return 0
	}
	ending := known.ends != "" && known.ends == obj.GetUID()
	shown := !ending && !before(obj.GetResourceVersion(), known.version)
	if passed := now.Sub(known.at); shown || passed < 0 || passed >= most { // clocks jump
		delete(o.last, key)
		return 0
	}
	return again
}

// Gone forgets an object that the cache does not have.
func (o *Objects) Gone(obj client.Object, name string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.last, key(obj, name))
}

// noted remembers the object that a write has returned, unless that failed with err, which it returns.
func (o *Objects) noted(obj client.Object, err error) error {
	id, now := keyOf(obj), o.now()
	if id == "" || err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	next := write{version: obj.GetResourceVersion(), at: now}
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 { // it is gone: the answer has the version of before
		next.ends = obj.GetUID()
	}
	if known, found := o.last[id]; !found || next.ends != "" || before(known.version, next.version) {
		o.last[id] = next
	}
	return nil
}

// before reports whether a version of an object is surely older than another one.
func before(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// keyOf is the key of an object of a kind that is remembered, else empty. None of them has a namespace.
func keyOf(obj client.Object) string { return key(obj, obj.GetName()) }

func key(obj client.Object, name string) string {
	switch obj.(type) {
	case *karpenterv1.NodeClaim, *corev1.Node, *karpenterv1.NodePool:
		return fmt.Sprintf("%T %s", obj, name)
	}
	return ""
}

// Client returns the client, whose patches are remembered.
func (o *Objects) Client(inner client.Client) client.Client { return writer{inner, o} }

type writer struct {
	client.Client
	objects *Objects
}

// Patch implements client.Writer.
func (w writer) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return w.objects.noted(obj, w.Client.Patch(ctx, obj, patch, opts...))
}

// Status implements client.StatusClient.
func (w writer) Status() client.SubResourceWriter { return statusWriter{w.Client.Status(), w.objects} }

type statusWriter struct {
	client.SubResourceWriter
	objects *Objects
}

// Patch implements client.SubResourceWriter.
func (w statusWriter) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return w.objects.noted(obj, w.SubResourceWriter.Patch(ctx, obj, patch, opts...))
}
