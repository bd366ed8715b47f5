package churn

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/machinetime"
)

// nominatedTo precedes the claim's name in the event about a pod for which a node is launched.
const nominatedTo = "it should run on the node of NodeClaim "

// view is the state of the cluster as seen by watches, and what was seen of deleted claims. Returned objects must not
// be changed.
type view struct {
	cache cache.Cache
	clock *machinetime.Clock

	mu      sync.Mutex
	lives   map[string]*life // NodeClaims by name
	order   []*life          // in the order of their creation
	hand    map[string]bool  // names of objects that users deleted
	changed time.Duration    // machine time at which a claim last came, went or was chosen
	limits  *limits
	static  map[string]bool // names of static pools
	// nominated has, by pod, the claims that joiner said it launched for the pod.
	nominated map[string][]string
}

// life is the history of a NodeClaim.
type life struct {
	name, pool                 string
	born                       time.Duration // machine time
	initialized, leaving, gone time.Duration // 0: not yet
	held                       int           // pods of workloads that were bound to its node
	byHand                     bool          // users deleted it or its node
	reason                     string        // why it was disrupted
	static                     bool
	left                       time.Duration // when a pod last left its node, or the drain began
}

// newView returns a view that watches until ctx ends.
func newView(ctx context.Context, config *rest.Config, scheme *runtime.Scheme,
	clock *machinetime.Clock) (*view, error) {
	informers, err := cache.New(config, cache.Options{Scheme: scheme, ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Event{}: {Field: fields.OneTermEqualSelector("reason", "Nominated")},
		}})
	if err != nil {
		return nil, err
	}
	v := &view{cache: informers, clock: clock, lives: map[string]*life{}, hand: map[string]bool{},
		limits: newLimits(), static: map[string]bool{}, nominated: map[string][]string{}}
	for _, kind := range []client.Object{
		&corev1.Pod{}, &corev1.Node{}, &karpenterv1.NodeClaim{}, &karpenterv1.NodePool{},
		&policyv1.PodDisruptionBudget{}, &appsv1.DaemonSet{}, &corev1.Namespace{},
		&corev1.LimitRange{}, &corev1.Event{},
	} {
		informer, err := informers.GetInformer(ctx, kind)
		if err != nil {
			return nil, fmt.Errorf("watching %T: %w", kind, err)
		}
		if _, err := informer.AddEventHandler(v.handler()); err != nil {
			return nil, err
		}
	}
	go func() { _ = informers.Start(ctx) }() // ends with ctx; it retries failures
	if !informers.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("the watches do not begin: %w", ctx.Err())
	}
	return v, nil
}

func (v *view) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { v.note(nil, object, false) },
		UpdateFunc: func(old, object any) { v.note(old, object, false) },
		DeleteFunc: func(object any) {
			if last, missed := object.(toolscache.DeletedFinalStateUnknown); missed {
				object = last.Obj
			}
			v.note(object, object, true)
		},
	}
}

// note records an event.
func (v *view) note(old, object any, deleted bool) {
	now := v.clock.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	switch object := object.(type) {
	case *karpenterv1.NodeClaim:
		v.noteClaim(object, deleted, now)
	case *karpenterv1.NodePool:
		if !deleted {
			v.limits.pool(object)
			v.static[object.Name] = object.Spec.Replicas != nil
		}
	case *corev1.Pod:
		v.notePod(old, object, deleted, now)
	case *corev1.Event:
		if _, text, launched := strings.Cut(object.Message, nominatedTo); launched && !deleted {
			claim, _, _ := strings.Cut(text, ",")
			pod := object.InvolvedObject.Namespace + "/" + object.InvolvedObject.Name
			if !slices.Contains(v.nominated[pod], claim) {
				v.nominated[pod] = append(v.nominated[pod], claim)
			}
		}
	}
}

func (v *view) noteClaim(claim *karpenterv1.NodeClaim, deleted bool, now time.Duration) {
	if isNeighbour(claim) {
		return
	}
	l := v.lives[claim.Name]
	if l != nil && l.gone > 0 && !deleted {
		l = nil // the name is reused
	}
	if l == nil {
		pool := claim.Labels[karpenterv1.NodePoolLabelKey]
		l = &life{name: claim.Name, pool: pool, static: v.static[pool], born: now, left: now}
		v.lives[claim.Name], v.order, v.changed = l, append(v.order, l), now
		v.limits.born(claim)
	}
	l.byHand = l.byHand || v.hand[claim.Name] || v.hand[claim.Status.NodeName]
	if l.initialized == 0 && conditionTrue(claim.Status.Conditions, karpenterv1.ConditionTypeInitialized) {
		l.initialized = now
	}
	leaving := claim.DeletionTimestamp != nil
	for _, c := range claim.Status.Conditions {
		if string(c.Type) == karpenterv1.ConditionTypeDisruptionReason && c.Status == "True" {
			leaving, l.reason = true, c.Reason
		}
	}
	switch {
	case leaving && l.leaving == 0:
		l.leaving, l.left, v.changed = now, now, now
	case !leaving && l.leaving > 0:
		l.leaving, v.changed = 0, now
	}
	if deleted {
		l.gone, v.changed = now, now
		delete(v.hand, claim.Name)
		v.limits.gone(claim)
	}
}

func (v *view) notePod(old any, pod *corev1.Pod, deleted bool, now time.Duration) {
	l := v.lives[pod.Spec.NodeName]
	if l == nil || daemon(pod) {
		return
	}
	before, known := old.(*corev1.Pod)
	if !deleted && (!known || before.Spec.NodeName == "") {
		l.held++
	}
	if deleted || known && before.DeletionTimestamp == nil && pod.DeletionTimestamp != nil {
		l.left = now
	}
}

func conditionTrue(conditions []karpenterv1.Condition, name string) bool {
	for _, c := range conditions {
		if string(c.Type) == name {
			return c.Status == "True"
		}
	}
	return false
}

// daemon reports whether a pod belongs to a DaemonSet.
func daemon(pod *corev1.Pod) bool {
	for _, owner := range pod.OwnerReferences {
		if owner.Kind == "DaemonSet" {
			return true
		}
	}
	return false
}

// byHand records that users delete an object.
func (v *view) byHand(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.hand[name] = true
	if l := v.lives[name]; l != nil {
		l.byHand = true
	}
}

// stories returns the histories of all claims, in the order of creation, and when one of them last changed.
func (v *view) stories() (all []life, changed time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, l := range v.order {
		all = append(all, *l)
	}
	return all, v.changed
}

// launchedFor returns the claims that were launched for each pod, by pod name.
func (v *view) launchedFor() map[string][]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := map[string][]string{}
	for pod, claims := range v.nominated {
		all[pod] = slices.Clone(claims)
	}
	return all
}

// forget resets the view: deleted objects do not count for the next seed.
func (v *view) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.order, v.hand, v.static, v.limits = nil, map[string]bool{}, map[string]bool{}, newLimits()
	v.lives, v.nominated = map[string]*life{}, map[string][]string{}
}

// listed reads a kind from the cache. That cannot fail, since the cache is synced.
func listed[T any](v *view, into client.ObjectList, items func() []T) []*T {
	if err := v.cache.List(context.Background(), into, client.UnsafeDisableDeepCopy,
		client.MatchingLabelsSelector{Selector: labels.Everything()}); err != nil {
		panic(fmt.Sprintf("reading the cache: %v", err)) // every kind asked for is watched
	}
	var all []*T
	found := items()
	for i := range found {
		all = append(all, &found[i])
	}
	return all
}

func (v *view) pods() []*corev1.Pod {
	var l corev1.PodList
	return listed(v, &l, func() []corev1.Pod { return l.Items })
}

// nodes returns our nodes, without the other program's; claims and pools do the same.
func (v *view) nodes() []*corev1.Node { return ours(v.everyNode()) }

func (v *view) claims() []*karpenterv1.NodeClaim { return ours(v.everyClaim()) }

func (v *view) pools() []*karpenterv1.NodePool { return ours(v.everyPool()) }

func ours[T client.Object](all []T) []T {
	return slices.DeleteFunc(all, func(o T) bool { return isNeighbour(o) })
}

func (v *view) everyNode() []*corev1.Node {
	var l corev1.NodeList
	return listed(v, &l, func() []corev1.Node { return l.Items })
}

func (v *view) namespaces() []*corev1.Namespace {
	var l corev1.NamespaceList
	return listed(v, &l, func() []corev1.Namespace { return l.Items })
}

func (v *view) everyClaim() []*karpenterv1.NodeClaim {
	var l karpenterv1.NodeClaimList
	return listed(v, &l, func() []karpenterv1.NodeClaim { return l.Items })
}

func (v *view) everyPool() []*karpenterv1.NodePool {
	var l karpenterv1.NodePoolList
	return listed(v, &l, func() []karpenterv1.NodePool { return l.Items })
}

func (v *view) guards() []*policyv1.PodDisruptionBudget {
	var l policyv1.PodDisruptionBudgetList
	return listed(v, &l, func() []policyv1.PodDisruptionBudget { return l.Items })
}

func (v *view) daemonSets() []*appsv1.DaemonSet {
	var l appsv1.DaemonSetList
	return listed(v, &l, func() []appsv1.DaemonSet { return l.Items })
}

func (v *view) ranges() []*corev1.LimitRange {
	var l corev1.LimitRangeList
	return listed(v, &l, func() []corev1.LimitRange { return l.Items })
}
