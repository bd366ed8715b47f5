package app

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/node"
	"github.com/joiner-autoscaler/joiner/internal/controller/notice"
	"github.com/joiner-autoscaler/joiner/internal/controller/patch"
	"github.com/joiner-autoscaler/joiner/internal/controller/pool"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// Watch says which changes of objects of one kind wake a controller.
type Watch struct {
	Object client.Object // an empty object of the kind
	// Requests returns whom a change concerns: old is nil for an object that is new, fresh for one that is gone. Both
	// are nil interfaces then. It reads from caches only.
	Requests func(ctx context.Context, old, fresh client.Object) []reconcile.Request
	// After gathers changes before the controller is called.
	After time.Duration
}

// countAfter gathers changes before what is made of many objects is counted anew: the claims of a pool, unhealthy nodes.
const countAfter = time.Second

// ownPatches lets the last patch of a step be seen before the event of its first one calls for the next step.
const ownPatches = 50 * time.Millisecond

// indexClaimNode is the index field of the cache by which a node's name leads to its claim.
const indexClaimNode = "status.nodeName"

// Index is a field by which objects of a kind can be listed from the cache.
type Index struct {
	Object client.Object
	Field  string
	Value  func(client.Object) []string
}

// Indexes returns the fields that the controllers list by.
func Indexes() []Index {
	claimField := func(get func(*karpenterv1.NodeClaim) string) func(client.Object) []string {
		return func(o client.Object) []string { return nonEmpty(get(o.(*karpenterv1.NodeClaim))) }
	}
	return []Index{
		{&corev1.Pod{}, node.IndexPodNode, func(o client.Object) []string { return nonEmpty(o.(*corev1.Pod).Spec.NodeName) }},
		{&corev1.Node{}, claim.IndexNodeProviderID, func(o client.Object) []string { return nonEmpty(o.(*corev1.Node).Spec.ProviderID) }},
		{&karpenterv1.NodeClaim{}, node.IndexClaimProviderID, claimField(func(c *karpenterv1.NodeClaim) string { return c.Status.ProviderID })},
		{&karpenterv1.NodeClaim{}, indexClaimNode, claimField(func(c *karpenterv1.NodeClaim) string { return c.Status.NodeName })},
		{&karpenterv1.NodeClaim{}, pool.IndexClaimPool, claimField(translate.PoolOf)},
	}
}

func nonEmpty(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// itself is the usual mapping: the object's own name.
func itself(_ context.Context, old, fresh client.Object) []reconcile.Request {
	if fresh == nil {
		fresh = old
	}
	return requests(fresh.GetName())
}

func requests(names ...string) []reconcile.Request {
	list := make([]reconcile.Request, len(names))
	for i, name := range names {
		list[i] = reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
	}
	return list
}

func claimNames(ctx context.Context, reader client.Reader, field, value string) []string {
	var claims karpenterv1.NodeClaimList
	if value == "" || reader.List(ctx, &claims, client.MatchingFields{field: value}, client.UnsafeDisableDeepCopy) != nil {
		return nil // a cache fails only while it is not started, and then everything is listed again
	}
	names := make([]string, len(claims.Items))
	for i := range claims.Items {
		names[i] = claims.Items[i].Name
	}
	return names
}

func claimByNode(reader client.Reader) func(string) (string, bool) {
	return func(name string) (string, bool) {
		names := claimNames(context.Background(), reader, indexClaimNode, name)
		if len(names) == 0 {
			return "", false
		}
		return names[0], true
	}
}

func claimWatches(reader client.Reader) []Watch {
	return []Watch{
		{Object: &karpenterv1.NodeClaim{}, Requests: func(ctx context.Context, old, fresh client.Object) []reconcile.Request {
			if fresh == nil || old != nil && sameForItself(old.(*karpenterv1.NodeClaim), fresh.(*karpenterv1.NodeClaim)) {
				return nil
			}
			return itself(ctx, old, fresh)
		}},
		{Object: &corev1.Node{}, After: ownPatches, Requests: func(ctx context.Context, old, fresh client.Object) []reconcile.Request {
			if old != nil && fresh != nil && sameForClaim(old.(*corev1.Node), fresh.(*corev1.Node)) {
				return nil
			}
			if fresh == nil {
				fresh = old
			}
			return requests(claimNames(ctx, reader, node.IndexClaimProviderID, fresh.(*corev1.Node).Spec.ProviderID)...)
		}},
		{Object: &karpenterv1.NodePool{}, Requests: func(ctx context.Context, old, fresh client.Object) []reconcile.Request {
			if old == nil || fresh == nil || old.GetGeneration() == fresh.GetGeneration() {
				return nil
			}
			return requests(claimNames(ctx, reader, pool.IndexClaimPool, fresh.GetName())...)
		}},
		{Object: &kwokv1alpha1.KWOKNodeClass{}, Requests: func(ctx context.Context, old, fresh client.Object) []reconcile.Request {
			if old == nil || fresh == nil || maps.Equal(old.GetAnnotations(), fresh.GetAnnotations()) {
				return nil
			}
			return requests(claimsOfClass(ctx, reader, fresh.GetName())...) // its faults may say that they drift
		}},
	}
}

func claimsOfClass(ctx context.Context, reader client.Reader, class string) []string {
	var claims karpenterv1.NodeClaimList
	if reader.List(ctx, &claims) != nil {
		return nil // as in claimNames
	}
	var names []string
	for _, c := range claims.Items {
		if ref := c.Spec.NodeClassRef; ref != nil && ref.Name == class && ref.Group == kwokv1alpha1.Group {
			names = append(names, c.Name)
		}
	}
	return names
}

// sameForItself reports whether only labels and annotations of a claim have changed: they are written by its own steps,
// which are not over then. Its pool's label is put back when somebody changes it.
func sameForItself(a, b *karpenterv1.NodeClaim) bool {
	const pool = karpenterv1.NodePoolLabelKey
	return a.Labels[pool] == b.Labels[pool] && a.Generation == b.Generation && (a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		slices.Equal(a.Finalizers, b.Finalizers) && patch.SameStatus(&a.Status, &b.Status)
}

// sameForClaim reports whether nothing has changed that a claim looks at: heartbeats are most of what nodes say. Its
// pool's label is put back there too.
func sameForClaim(a, b *corev1.Node) bool {
	const pool = karpenterv1.NodePoolLabelKey
	return a.Labels[pool] == b.Labels[pool] && a.Spec.ProviderID == b.Spec.ProviderID &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		equality.Semantic.DeepEqual(a.Spec.Taints, b.Spec.Taints) &&
		patch.SameAmounts(a.Status.Allocatable, b.Status.Allocatable) && ready(a) == ready(b)
}

func ready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func nodeWatches(reader client.Reader) []Watch {
	return []Watch{
		{Object: &corev1.Node{}, After: ownPatches, Requests: func(ctx context.Context, old, fresh client.Object) []reconcile.Request {
			if fresh == nil || fresh.GetDeletionTimestamp() == nil {
				return nil
			}
			return itself(ctx, old, fresh)
		}},
		{Object: &corev1.Pod{}, Requests: func(ctx context.Context, old, fresh client.Object) []reconcile.Request {
			pod, _ := fresh.(*corev1.Pod)
			if fresh == nil {
				pod, _ = old.(*corev1.Pod)
			}
			finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
			if pod.Spec.NodeName == "" || fresh != nil && !finished {
				return nil
			}
			var n corev1.Node
			if err := reader.Get(ctx, types.NamespacedName{Name: pod.Spec.NodeName}, &n,
				client.UnsafeDisableDeepCopy); err != nil || n.DeletionTimestamp == nil {
				return nil
			}
			return requests(n.Name)
		}},
	}
}

// sameForPool reports whether a claim counts as before: the conditions of claims change all the while.
func sameForPool(a, b *karpenterv1.NodeClaim) bool {
	return translate.PoolOf(a) == translate.PoolOf(b) && patch.SameAmounts(a.Status.Capacity, b.Status.Capacity)
}

func sameBesideStatus(a, b client.Object) bool {
	return a.GetGeneration() == b.GetGeneration() && (a.GetDeletionTimestamp() == nil) == (b.GetDeletionTimestamp() == nil) &&
		maps.Equal(a.GetAnnotations(), b.GetAnnotations())
}

func poolWatches(reader client.Reader) []Watch {
	return []Watch{
		{Object: &karpenterv1.NodePool{}, Requests: func(ctx context.Context, old, fresh client.Object) []reconcile.Request {
			if old != nil && fresh != nil && sameBesideStatus(old, fresh) { // the status is its own, but for what nobody waits for
				return nil
			}
			return itself(ctx, old, fresh)
		}},
		{Object: &karpenterv1.NodeClaim{}, After: countAfter, Requests: func(_ context.Context, old, fresh client.Object) []reconcile.Request {
			if old != nil && fresh != nil && sameForPool(old.(*karpenterv1.NodeClaim), fresh.(*karpenterv1.NodeClaim)) {
				return nil
			}
			if fresh == nil {
				fresh = old
			}
			return requests(nonEmpty(translate.PoolOf(fresh.(*karpenterv1.NodeClaim)))...)
		}},
		{Object: &kwokv1alpha1.KWOKNodeClass{}, Requests: func(ctx context.Context, old, fresh client.Object) []reconcile.Request {
			if fresh == nil {
				fresh = old
			}
			var pools karpenterv1.NodePoolList
			if reader.List(ctx, &pools) != nil {
				return nil // as in claimNames
			}
			var names []string
			for _, p := range pools.Items {
				if ref := p.Spec.Template.Spec.NodeClassRef; ref != nil && ref.Name == fresh.GetName() && ref.Group == kwokv1alpha1.Group {
					names = append(names, p.Name)
				}
			}
			return requests(names...)
		}},
	}
}

// overlayWatches wake all overlays: each may be in conflict with any other.
func overlayWatches(reader client.Reader) []Watch {
	all := func(ctx context.Context, old, fresh client.Object) []reconcile.Request {
		if old != nil && fresh != nil && old.GetGeneration() == fresh.GetGeneration() {
			return nil
		}
		var overlays karpenterv1alpha1.NodeOverlayList
		if reader.List(ctx, &overlays) != nil {
			return nil // as in claimNames
		}
		names := make([]string, len(overlays.Items))
		for i := range overlays.Items {
			names[i] = overlays.Items[i].Name
		}
		return requests(names...)
	}
	return []Watch{
		{Object: &karpenterv1alpha1.NodeOverlay{}, After: ownPatches, Requests: all},
		{Object: &karpenterv1.NodePool{}, After: countAfter, Requests: all},
	}
}

func podNoticeWatches() []Watch {
	return []Watch{{Object: &corev1.Pod{}, Requests: func(_ context.Context, _, fresh client.Object) []reconcile.Request {
		if fresh == nil || !notice.Concerns(fresh) {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(fresh)}}
	}}}
}

func nodeNoticeWatches() []Watch {
	return []Watch{{Object: &corev1.Node{}, Requests: func(ctx context.Context, old, fresh client.Object) []reconcile.Request {
		if fresh == nil || !notice.Concerns(fresh) {
			return nil
		}
		return itself(ctx, old, fresh)
	}}}
}

// interruptionWatches wake the singleton when a user gives a simulated machine notice, or faults that may bring some.
func interruptionWatches() []Watch {
	return []Watch{
		{Object: &corev1.Node{}, Requests: func(_ context.Context, old, fresh client.Object) []reconcile.Request {
			if fresh == nil || !noticed(fresh) || old != nil && noticed(old) {
				return nil
			}
			return []reconcile.Request{singleton()}
		}},
		{Object: &kwokv1alpha1.KWOKNodeClass{}, Requests: func(_ context.Context, old, fresh client.Object) []reconcile.Request {
			if old == nil || fresh == nil || maps.Equal(old.GetAnnotations(), fresh.GetAnnotations()) {
				return nil
			}
			return []reconcile.Request{singleton()}
		}},
	}
}

func noticed(node client.Object) bool {
	_, found := node.GetAnnotations()[kwok.InterruptedAnnotationKey]
	return found
}

// repairWatches wake the singleton when a condition of a node comes or goes; heartbeats change nothing.
func repairWatches() []Watch {
	return []Watch{{Object: &corev1.Node{}, After: countAfter,
		Requests: func(_ context.Context, old, fresh client.Object) []reconcile.Request {
			if fresh == nil || old != nil && sameConditions(old.(*corev1.Node), fresh.(*corev1.Node)) {
				return nil
			}
			return []reconcile.Request{singleton()}
		}}}
}

func sameConditions(a, b *corev1.Node) bool {
	return slices.EqualFunc(a.Status.Conditions, b.Status.Conditions, func(x, y corev1.NodeCondition) bool {
		return x.Type == y.Type && x.Status == y.Status && x.LastTransitionTime.Equal(&y.LastTransitionTime)
	})
}

func bootWatches() []Watch {
	return []Watch{{Object: &corev1.ConfigMap{}, Requests: func(_ context.Context, old, fresh client.Object) []reconcile.Request {
		if old != nil || fresh == nil || fresh.GetLabels()[bootRecordLabel] == "" {
			return nil
		}
		return []reconcile.Request{singleton()}
	}}}
}
