// Package unseen remembers what this process wrote last, so that a step can tell when its cache is behind. Such a step
// would start from stale objects: its writes would be refused, or repeat what was written (B-12). The watch event with
// the newer object wakes it.
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

// most is the longest that a step waits for its cache. A watch may break, and an object may never be shown.
const most = 5 * time.Second

// again is the delay until a waiting step checks again. The watch event nearly always comes first.
const again = time.Second

// Objects are the NodeClaims, Nodes and NodePools that this process has written and not seen since. It is safe for
// concurrent use, and calls nothing while locked. A nil *Objects remembers nothing.
type Objects struct {
	now func() time.Time

	mu   sync.Mutex
	last map[string]write // by kind and name
}

type write struct {
	version string
	at      time.Time
	ends    types.UID // UID of the object, if the write removed it
}

// New returns an empty memory.
func New(now func() time.Time) *Objects { return &Objects{now: now, last: map[string]write{}} }

// Behind returns how long to wait until the cache shows the last write to the object. obj is the cache's version. It
// returns 0 if the cache is up to date or the wait took too long. A version that is no Kubernetes resource version
// counts as up to date.
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

// Gone forgets an object that is not in the cache.
func (o *Objects) Gone(obj client.Object, name string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.last, key(obj, name))
}

// noted remembers the object as a write returned it, unless the write failed with err. It returns err.
func (o *Objects) noted(obj client.Object, err error) error {
	id, now := keyOf(obj), o.now()
	if id == "" || err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	next := write{version: obj.GetResourceVersion(), at: now}
	// the object is gone: the answer has its old version
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 {
		next.ends = obj.GetUID()
	}
	if known, found := o.last[id]; !found || next.ends != "" || before(known.version, next.version) {
		o.last[id] = next
	}
	return nil
}

// before reports whether resource version a is certainly older than b.
func before(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// keyOf returns the key of an object, "" if its kind is not remembered. None of the remembered kinds has a namespace.
func keyOf(obj client.Object) string { return key(obj, obj.GetName()) }

func key(obj client.Object, name string) string {
	switch obj.(type) {
	case *karpenterv1.NodeClaim, *corev1.Node, *karpenterv1.NodePool:
		return fmt.Sprintf("%T %s", obj, name)
	}
	return ""
}

// Client returns a client that remembers the patches it sends.
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
func (w statusWriter) Patch(ctx context.Context, obj client.Object, patch client.Patch,
	opts ...client.SubResourcePatchOption) error {
	return w.objects.noted(obj, w.SubResourceWriter.Patch(ctx, obj, patch, opts...))
}
