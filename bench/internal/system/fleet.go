package system

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	retry "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// priceLabel is the label with the price of KWOK nodes of either side, in dollars per hour.
const priceLabel = "eks-node-viewer/instance-price"

// onePlan is the longest time between two claims of one plan.
const onePlan = time.Second

// fleet holds the nodes, claims and pods of the cluster, kept current by watches.
type fleet struct {
	stop func()

	mu                sync.Mutex
	pods              map[types.UID]bool // that are not on their way out; true: bound
	claims            map[types.UID]bool // true: initialized and not on their way out
	nodes             map[types.UID]float64
	launched, removed int // nodes so far
	// planned counts the claims of the phase's first plan that launches any: those that came before the first pod was
	// bound, or else the first one, and then each within a second of the one before. claimed is when the last of them
	// came.
	planned int
	claimed time.Time
	// changed is when something last changed: a claim or node came, was told to go, or went; a pod was bound or went.
	changed time.Time
	bound   time.Time // when the last pod was bound
	// over are the pods for which kube-scheduler has found no node at least once. passed is when the last of them was
	// added.
	over   map[types.UID]bool
	passed time.Time
	broken error
}

// sight is a fleet at a moment.
type sight struct {
	bound, unbound       int // pods
	claims, ready, nodes int // claims, those of them that are initialized and stay, and nodes
	launched, removed    int // nodes so far
	planned              int // claims of the first plan
	price                float64
	changed, lastBound   time.Time
	over                 int // pods that kube-scheduler has found no node for at least once
	passed               time.Time
}

// see begins to watch. The caller has to call stop.
func see(ctx context.Context, api client.WithWatch) (*fleet, error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	f := &fleet{
		pods: map[types.UID]bool{}, claims: map[types.UID]bool{}, nodes: map[types.UID]float64{},
		over: map[types.UID]bool{}, stop: func() { cancel(); running.Wait() },
	}
	for _, list := range []client.ObjectList{&corev1.PodList{}, &karpenterv1.NodeClaimList{}, &corev1.NodeList{}} {
		if err := api.List(ctx, list); err != nil {
			f.stop()
			return nil, fmt.Errorf("listing %T: %w", list, err)
		}
		// The cluster is empty: what is in the list, such as pods of another namespace, does not count.
		// The API server ends watches that do not keep up; they go on where they ended.
		events, err := retry.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), watches{api, list})
		if err != nil {
			f.stop()
			return nil, fmt.Errorf("watching %T: %w", list, err)
		}
		running.Go(func() {
			for event := range events.ResultChan() {
				f.take(event, time.Now())
			}
			if ctx.Err() == nil {
				f.fail(fmt.Errorf("the watch of %T has ended", list))
			}
		})
	}
	return f, nil
}

// watches begins watches of one kind.
type watches struct {
	api  client.WithWatch
	list client.ObjectList
}

// WatchWithContext implements cache.WatcherWithContext.
func (w watches) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return w.api.Watch(ctx, w.list, &client.ListOptions{Raw: &options})
}

func (f *fleet) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken == nil {
		f.broken = err
	}
}

func (f *fleet) take(event watch.Event, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	gone := event.Type == watch.Deleted
	switch object := event.Object.(type) {
	case *corev1.Pod:
		if object.Namespace == metav1.NamespaceDefault {
			if object.Spec.NodeName != "" && !f.pods[object.UID] && object.DeletionTimestamp == nil {
				f.bound = now
			}
			if passedOver(object) && !f.over[object.UID] {
				f.over[object.UID], f.passed = true, now
			}
			set(f, f.pods, object.UID, gone || object.DeletionTimestamp != nil, object.Spec.NodeName != "", now)
		}
	case *karpenterv1.NodeClaim:
		if event.Type == watch.Added && (f.bound.IsZero() || f.claimed.IsZero() || now.Sub(f.claimed) <= onePlan) {
			f.planned, f.claimed = f.planned+1, now
		}
		set(f, f.claims, object.UID, gone, initialized(object) && object.DeletionTimestamp == nil, now)
	case *corev1.Node:
		if event.Type == watch.Added {
			f.launched++
		}
		if gone {
			f.removed++
		}
		price, _ := strconv.ParseFloat(object.Labels[priceLabel], 64)
		set(f, f.nodes, object.UID, gone, price, now)
	default:
		f.broken = fmt.Errorf("a watch answered %s %v", event.Type, event.Object)
	}
}

// set records an object's state, and when it changed.
func set[S comparable](f *fleet, known map[types.UID]S, uid types.UID, gone bool, state S, now time.Time) {
	before, found := known[uid]
	if gone {
		delete(known, uid)
	} else {
		known[uid] = state
	}
	if found == gone || !gone && before != state {
		f.changed = now
	}
}

// passedOver reports whether kube-scheduler has looked for a node for the pod, and found none.
func passedOver(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse &&
			c.Reason == corev1.PodReasonUnschedulable
	})
}

func initialized(claim *karpenterv1.NodeClaim) bool {
	for _, condition := range claim.Status.Conditions {
		if condition.Type == karpenterv1.ConditionTypeInitialized {
			return condition.Status == metav1.ConditionTrue
		}
	}
	return false
}

// begin begins a phase: its first plan is still to come.
func (f *fleet) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.planned, f.claimed = 0, time.Time{}
}

func (f *fleet) look() (sight, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := sight{claims: len(f.claims), nodes: len(f.nodes), launched: f.launched, removed: f.removed,
		planned: f.planned, changed: f.changed, lastBound: f.bound, over: len(f.over), passed: f.passed}
	for _, bound := range f.pods {
		if bound {
			s.bound++
		}
	}
	s.unbound = len(f.pods) - s.bound
	for _, ready := range f.claims {
		if ready {
			s.ready++
		}
	}
	for _, price := range f.nodes {
		s.price += price
	}
	return s, f.broken
}

// String says what is there, for messages.
func (s sight) String() string {
	return fmt.Sprintf("%d pods bound, %d not; %d claims, %d of them ready, %d nodes", s.bound, s.unbound, s.claims,
		s.ready, s.nodes)
}
