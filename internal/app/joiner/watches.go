package joiner

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/node"
	"github.com/joiner-autoscaler/joiner/internal/controller/notice"
	"github.com/joiner-autoscaler/joiner/internal/controller/pool"
	"github.com/joiner-autoscaler/joiner/internal/kube"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// countAfter is how long changes are gathered before things made of many objects are counted anew: the claims of a
// pool, unhealthy nodes.
const countAfter = time.Second

// indexClaimNode is the index field of the cache from a node's name to its claim.
const indexClaimNode = "status.nodeName"

// Indexes returns the fields that the controllers list by.
func Indexes() []kube.Index {
	pods := func(get func(*corev1.Pod) string) func(client.Object) []string {
		return func(o client.Object) []string { return nonEmpty(get(o.(*corev1.Pod))) }
	}
	nodes := func(get func(*corev1.Node) string) func(client.Object) []string {
		return func(o client.Object) []string { return nonEmpty(get(o.(*corev1.Node))) }
	}
	claims := func(field string, get func(*karpenterv1.NodeClaim) string) kube.Index {
		return kube.Index{Object: &karpenterv1.NodeClaim{}, Field: field,
			Value: func(o client.Object) []string { return nonEmpty(get(o.(*karpenterv1.NodeClaim))) }}
	}
	return []kube.Index{
		{Object: &corev1.Pod{}, Field: node.IndexPodNode,
			Value: pods(func(p *corev1.Pod) string { return p.Spec.NodeName })},
		{Object: &corev1.Node{}, Field: claim.IndexNodeProviderID,
			Value: nodes(func(n *corev1.Node) string { return n.Spec.ProviderID })},
		claims(node.IndexClaimProviderID, func(c *karpenterv1.NodeClaim) string { return c.Status.ProviderID }),
		claims(indexClaimNode, func(c *karpenterv1.NodeClaim) string { return c.Status.NodeName }),
		claims(pool.IndexClaimPool, translate.PoolOf),
	}
}

func nonEmpty(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

func claimNames(ctx context.Context, reader client.Reader, field, value string) []string {
	var claims karpenterv1.NodeClaimList
	if value == "" || reader.List(ctx, &claims, client.MatchingFields{field: value},
		client.UnsafeDisableDeepCopy) != nil {
		return nil // a cache fails only before it is started, and then everything is listed again
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

func claimWatches(reader client.Reader, plugged []plugin.Parts) []kube.Watch {
	watches := []kube.Watch{
		{Object: &karpenterv1.NodeClaim{},
			Requests: func(ctx context.Context, old, fresh client.Object) []reconcile.Request {
				if fresh == nil ||
					old != nil && sameForItself(old.(*karpenterv1.NodeClaim), fresh.(*karpenterv1.NodeClaim)) {
					return nil
				}
				return kube.Itself(ctx, old, fresh)
			}},
		{Object: &corev1.Node{}, After: kube.OwnPatches,
			Requests: func(ctx context.Context, old, fresh client.Object) []reconcile.Request {
				if old != nil && fresh != nil && sameForClaim(old.(*corev1.Node), fresh.(*corev1.Node)) {
					return nil
				}
				if fresh == nil {
					fresh = old
				}
				return kube.Requests(claimNames(ctx, reader, node.IndexClaimProviderID,
					fresh.(*corev1.Node).Spec.ProviderID)...)
			}},
		{Object: &karpenterv1.NodePool{},
			Requests: func(ctx context.Context, old, fresh client.Object) []reconcile.Request {
				if old == nil || fresh == nil || old.GetGeneration() == fresh.GetGeneration() {
					return nil
				}
				return kube.Requests(claimNames(ctx, reader, pool.IndexClaimPool, fresh.GetName())...)
			}},
	}
	for _, parts := range plugged {
		served := parts.Provider.NodeClass()
		drift := func(ctx context.Context, old, fresh client.Object) []reconcile.Request {
			if old == nil || fresh == nil {
				return nil
			}
			if maps.Equal(old.GetAnnotations(), fresh.GetAnnotations()) &&
				(parts.Drifts == nil || !parts.Drifts(old, fresh)) {
				return nil
			}
			return kube.Requests(claimsOfClass(ctx, reader, served, fresh.GetName())...) // they may drift now
		}
		watches = append(watches, kube.Watch{Object: parts.Class, Requests: drift})
	}
	return watches
}

func claimsOfClass(ctx context.Context, reader client.Reader, kind schema.GroupKind, class string) []string {
	var claims karpenterv1.NodeClaimList
	if reader.List(ctx, &claims) != nil {
		return nil // as in claimNames
	}
	var names []string
	for i := range claims.Items {
		if refersTo(claims.Items[i].Spec.NodeClassRef, kind, class) {
			names = append(names, claims.Items[i].Name)
		}
	}
	return names
}

// refersTo reports whether a reference is to this node class of this kind.
func refersTo(ref *karpenterv1.NodeClassReference, kind schema.GroupKind, class string) bool {
	return ref != nil && ref.Name == class && ref.Group == kind.Group && ref.Kind == kind.Kind
}

// sameForItself reports whether at most labels and annotations of a claim have changed. Its own steps write those, and
// go on anyway. The pool's label is an exception: it is put back when somebody changes it.
func sameForItself(a, b *karpenterv1.NodeClaim) bool {
	const pool = karpenterv1.NodePoolLabelKey
	return a.Labels[pool] == b.Labels[pool] && a.Generation == b.Generation &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		slices.Equal(a.Finalizers, b.Finalizers) && patch.SameStatus(&a.Status, &b.Status)
}

// sameForClaim reports whether nothing has changed that matters to a claim: most changes of nodes are heartbeats. The
// pool's label counts, since it is put back there too.
func sameForClaim(a, b *corev1.Node) bool {
	const pool = karpenterv1.NodePoolLabelKey
	return a.Labels[pool] == b.Labels[pool] && a.Spec.ProviderID == b.Spec.ProviderID &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		equality.Semantic.DeepEqual(a.Spec.Taints, b.Spec.Taints) &&
		patch.SameAmounts(a.Status.Allocatable, b.Status.Allocatable) && ready(a) == ready(b) &&
		a.Status.NodeInfo.BootID == b.Status.NodeInfo.BootID
}

func ready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func nodeWatches(reader client.Reader) []kube.Watch {
	return []kube.Watch{
		{Object: &karpenterv1.NodeClaim{},
			Requests: func(_ context.Context, _, fresh client.Object) []reconcile.Request {
				if claim, is := fresh.(*karpenterv1.NodeClaim); is && node.RebootDecided(claim) {
					return kube.Requests(nonEmpty(claim.Status.NodeName)...)
				}
				return nil
			}},
		{Object: &corev1.Node{}, After: kube.OwnPatches,
			Requests: func(ctx context.Context, old, fresh client.Object) []reconcile.Request {
				if fresh == nil || fresh.GetDeletionTimestamp() == nil {
					return nil
				}
				return kube.Itself(ctx, old, fresh)
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
			return kube.Requests(n.Name)
		}},
	}
}

// sameForPool reports whether a claim counts as before: conditions of claims change all the time.
func sameForPool(a, b *karpenterv1.NodeClaim) bool {
	return translate.PoolOf(a) == translate.PoolOf(b) && patch.SameAmounts(a.Status.Capacity, b.Status.Capacity)
}

func sameBesideStatus(a, b client.Object) bool {
	return a.GetGeneration() == b.GetGeneration() &&
		(a.GetDeletionTimestamp() == nil) == (b.GetDeletionTimestamp() == nil) &&
		maps.Equal(a.GetAnnotations(), b.GetAnnotations())
}

func poolWatches(reader client.Reader, plugged []plugin.Parts) []kube.Watch {
	watches := []kube.Watch{
		{Object: &karpenterv1.NodePool{},
			Requests: func(ctx context.Context, old, fresh client.Object) []reconcile.Request {
				// nobody else writes the status, apart from fields that nobody waits for
				if old != nil && fresh != nil && sameBesideStatus(old, fresh) {
					return nil
				}
				return kube.Itself(ctx, old, fresh)
			}},
		{Object: &karpenterv1.NodeClaim{}, After: countAfter,
			Requests: func(_ context.Context, old, fresh client.Object) []reconcile.Request {
				if old != nil && fresh != nil &&
					sameForPool(old.(*karpenterv1.NodeClaim), fresh.(*karpenterv1.NodeClaim)) {
					return nil
				}
				if fresh == nil {
					fresh = old
				}
				return kube.Requests(nonEmpty(translate.PoolOf(fresh.(*karpenterv1.NodeClaim)))...)
			}},
	}
	for _, parts := range plugged {
		watches = append(watches,
			kube.Watch{Object: parts.Class, Requests: poolsOfClass(reader, parts.Provider.NodeClass())})
	}
	return watches
}

func poolsOfClass(reader client.Reader, kind schema.GroupKind) func(context.Context, client.Object,
	client.Object) []reconcile.Request {
	return func(ctx context.Context, old, fresh client.Object) []reconcile.Request {
		if fresh == nil {
			fresh = old
		}
		var pools karpenterv1.NodePoolList
		if reader.List(ctx, &pools) != nil {
			return nil // as in claimNames
		}
		var names []string
		for i := range pools.Items {
			if refersTo(pools.Items[i].Spec.Template.Spec.NodeClassRef, kind, fresh.GetName()) {
				names = append(names, pools.Items[i].Name)
			}
		}
		return kube.Requests(names...)
	}
}

// disruptionWatches wake the singleton after changes of a pool that the snapshot does not show. Budgets depend on the
// time, so the engine gets them when it plans. Otherwise a budget that opens would wait for the next look.
func disruptionWatches() []kube.Watch {
	return []kube.Watch{{Object: &karpenterv1.NodePool{}, After: disruptAfter,
		Requests: func(_ context.Context, old, fresh client.Object) []reconcile.Request {
			if fresh == nil || old != nil && old.GetGeneration() == fresh.GetGeneration() {
				return nil
			}
			return []reconcile.Request{kube.Singleton()}
		}}}
}

// overlayWatches wake all overlays: each may be in conflict with any other.
func overlayWatches(reader client.Reader) []kube.Watch {
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
		return kube.Requests(names...)
	}
	return []kube.Watch{
		{Object: &karpenterv1alpha1.NodeOverlay{}, After: kube.OwnPatches, Requests: all},
		{Object: &karpenterv1.NodePool{}, After: countAfter, Requests: all},
	}
}

// bufferWatches wake a buffer when somebody has written it. The objects that it refers to are polled.
func bufferWatches() []kube.Watch {
	written := func(_ context.Context, old, fresh client.Object) []reconcile.Request {
		if fresh == nil || old != nil && old.GetGeneration() == fresh.GetGeneration() {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(fresh)}}
	}
	return []kube.Watch{{Object: &autoscalingv1beta1.CapacityBuffer{}, Requests: written}}
}

func podNoticeWatches() []kube.Watch {
	return []kube.Watch{
		{Object: &corev1.Pod{}, Requests: func(_ context.Context, _, fresh client.Object) []reconcile.Request {
			if fresh == nil || !notice.Concerns(fresh) {
				return nil
			}
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(fresh)}}
		}}}
}

func nodeNoticeWatches() []kube.Watch {
	return []kube.Watch{
		{Object: &corev1.Node{}, Requests: func(ctx context.Context, old, fresh client.Object) []reconcile.Request {
			if fresh == nil || !notice.Concerns(fresh) {
				return nil
			}
			return kube.Itself(ctx, old, fresh)
		}}, {Object: &karpenterv1.NodeClaim{},
			Requests: func(_ context.Context, _, fresh client.Object) []reconcile.Request {
				claim, is := fresh.(*karpenterv1.NodeClaim)
				if !is || claim == nil || claim.Status.NodeName == "" || !notice.Concerns(claim) {
					return nil
				}
				return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: claim.Status.NodeName}}}
			}}}
}

// interruptionWatches wake the singleton after changes that may bring notices.
func interruptionWatches(plugged []plugin.Parts) []kube.Watch {
	var watches []kube.Watch
	for _, parts := range plugged {
		for _, watch := range parts.Notices {
			said := watch.Requests
			watch.Requests = func(ctx context.Context, old, fresh client.Object) []reconcile.Request {
				if len(said(ctx, old, fresh)) == 0 {
					return nil
				}
				return []reconcile.Request{kube.Singleton()}
			}
			watches = append(watches, watch)
		}
	}
	return watches
}

// repairWatches wake the singleton when a condition of a node appears, changes or goes; heartbeats do not.
func repairWatches() []kube.Watch {
	return []kube.Watch{{Object: &corev1.Node{}, After: countAfter,
		Requests: func(_ context.Context, old, fresh client.Object) []reconcile.Request {
			if fresh == nil || old != nil && sameConditions(old.(*corev1.Node), fresh.(*corev1.Node)) {
				return nil
			}
			return []reconcile.Request{kube.Singleton()}
		}}}
}

func sameConditions(a, b *corev1.Node) bool {
	return slices.EqualFunc(a.Status.Conditions, b.Status.Conditions, func(x, y corev1.NodeCondition) bool {
		return x.Type == y.Type && x.Status == y.Status && x.Reason == y.Reason &&
			x.LastTransitionTime.Equal(&y.LastTransitionTime)
	})
}
