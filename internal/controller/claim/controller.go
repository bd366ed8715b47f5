// Package claim takes NodeClaims through their life (P-30 to P-34): launch, registration, initialization, watching
// pods, drift, expiration and the end. Each step has its own file:
//
//	poollabel.go       a claim stays with the pool that it was made for
//	gate.go            whether its pool's hard limit lets it have an instance now
//	record.go          until when its launch may land
//	launch.go          the provider makes the instance
//	registration.go    the Node joins and is matched
//	initialization.go  the Node is ready for pods
//	liveness.go        timeouts of these stages
//	health.go          whether the nodes of its pool join
//	podevents.go       when a pod last came or went, and whether the node may be consolidated
//	drift.go           whether its pool would still make the claim like this
//	expiration.go      the claim's lifetime is over
//	finalization.go    Node, instance and claim go, in this order
//	garbage.go         instances without claim, claims without instance
//
// A step reads the current objects, does what is missing, and can be repeated at any point. The objects show what was
// done; nothing is remembered. Changes of the claim's status are collected and written in one patch at the end.
//
// Start with [Controller.Reconcile].
package claim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/kube/removal"
	"github.com/joiner-autoscaler/joiner/internal/kube/unseen"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// The cache's index fields by which a claim finds its node, and the pods there. The API server knows the latter
// itself.
const (
	IndexNodeProviderID = "spec.providerID"
	IndexPodNode        = "spec.nodeName"
)

// Catalogs receives the catalogue of a node class after a launch has found something unavailable.
type Catalogs interface {
	SetCatalog(class world.ClassRef, c catalog.Catalog) error
}

// Timeouts bound how long a claim may take; 0 means no timeout.
type Timeouts struct {
	Launch         time.Duration // from the claim's creation
	Registration   time.Duration // from the launch
	Initialization time.Duration // from the registration
}

// Config configures the controllers of this package. All fields are required unless they say otherwise.
type Config struct {
	Client    client.Client // reads from a cache with the index fields of this package
	Live      client.Reader // reads from the API server
	Fleet     *fleet.Fleet
	Catalogs  Catalogs
	PodEvents *PodEvents
	Timeouts  Timeouts
	Events    event.Recorder
	Removed   removal.Told // for the history (U-32)
	// Joined is called for each claim whose node has become ready for pods, with the time since the claim was created;
	// nil does nothing.
	Joined  func(*karpenterv1.NodeClaim, time.Duration)
	Metrics *metrics.Set
	Unseen  *unseen.Objects // this process's writes; nil never waits
	// PodsOf returns the pods that are expected on a claim, with the fields that an event needs; nil returns none.
	PodsOf func(claim string) []*corev1.Pod
	// Keep reserves room for the pods of a claim's launch before its node opens. It returns how long the node must
	// wait; nil reserves nothing.
	Keep func(ctx context.Context, claim, node string) (wait time.Duration)
	// Reboots says that this installation reboots nodes, if their provider can.
	Reboots bool
	// Holder names this process, for the record of who may have a launch under way. It must be unique.
	Holder string
	Now    func() time.Time
	// Ran returns how long the process has run, by a clock that nobody sets; nil uses Now.
	Ran func() time.Duration
	Log logr.Logger
}

// Controller takes NodeClaims through their life.
type Controller struct {
	config Config
	began  func() time.Time // when this process made its first step
	// attempts supplements the objects. If the process ends, losing it costs a wait, see findInstance.
	attempts *attempts
	gate     *gate
	health   *health
}

// New returns the controller.
func New(config Config) *Controller {
	if config.Ran == nil {
		began := config.Now()
		config.Ran = func() time.Duration { return config.Now().Sub(began) }
	}
	return &Controller{config: config, began: sync.OnceValue(config.Now), attempts: newAttempts(), gate: newGate(),
		health: newHealth()}
}

// attempts remembers, for claims that have not ended, when this process last requested their instance: the API server
// may not have the answer yet. It also remembers refusals. A cached claim may lack the refusal, and a launch from it
// might succeed after the claim was given up. It is safe for concurrent use.
type attempts struct {
	mu      sync.Mutex
	at      map[types.UID]time.Time
	refused map[types.UID]refusal
	open    map[types.UID]bool // a launch was not answered, or created a machine
	nodes   map[types.UID]bool // the cache has shown their nodes since they were deleted
}

// refusal is why the provider creates no instance for a claim: the reason of the condition Launched, the event and the
// text.
type refusal struct{ reason, event, message string }

func newAttempts() *attempts {
	return &attempts{at: map[types.UID]time.Time{}, refused: map[types.UID]refusal{}, open: map[types.UID]bool{},
		nodes: map[types.UID]bool{}}
}

// note records the answer to a launch.
func (a *attempts) note(claim types.UID, now time.Time, answer error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at[claim] = now
	a.open[claim] = a.open[claim] || !provider.Refused(answer)
}

// allAnswered reports whether each launch of this process for the claim was refused by the cloud itself.
func (a *attempts) allAnswered(claim types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.open[claim]
}

func (a *attempts) last(claim types.UID) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at[claim]
}

func (a *attempts) refuse(claim types.UID, why refusal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused[claim] = why
}

func (a *attempts) refusal(claim types.UID) (refusal, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	why, found := a.refused[claim]
	return why, found
}

func (a *attempts) forget(claim types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.at, claim)
	delete(a.refused, claim)
	delete(a.open, claim)
	delete(a.nodes, claim)
}

// sawNode records that the cache has shown the node of a deleted claim.
func (a *attempts) sawNode(claim types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.nodes[claim] = true
}

// hadNode reports whether sawNode was called. If the cache does not show the node after that, it is gone.
func (a *attempts) hadNode(claim types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.nodes[claim]
}

// work is one claim in one step.
type work struct {
	claim *karpenterv1.NodeClaim
	cloud provider.Provider
	node  *corev1.Node // nil if there is none; at first the cache's own: copy before changes
	again time.Duration
	fresh bool     // initialized in this step
	young bool     // launched in this step
	saved []func() // reports to make after the status is written, so that a repeated step does not repeat them
}

// askAgain schedules the next step after d or earlier; d must be more than 0.
func (w *work) askAgain(d time.Duration) {
	if w.again == 0 || d < w.again {
		w.again = d
	}
}

// is reports whether a condition of the claim is true.
func (w *work) is(kind string) bool { return condition.IsTrue(w.claim.Status.Conditions, kind) }

// Reconcile does the next step for the NodeClaim of that name. A request without a name comes at the start of the
// process, before any claim's request.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	c.began()
	var claim karpenterv1.NodeClaim
	if err := c.config.Client.Get(ctx, request.NamespacedName, &claim); err != nil {
		c.config.Unseen.Gone(&claim, request.Name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if wait := c.config.Unseen.Behind(&claim); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	cloud := c.config.Fleet.For(claim.Spec.NodeClassRef)
	if cloud == nil {
		return reconcile.Result{}, nil // another program's
	}
	w := &work{claim: &claim, cloud: cloud}
	if err := c.keepPool(ctx, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	c.writeHealth(ctx, w)
	if claim.DeletionTimestamp != nil {
		return c.finalize(ctx, w)
	}
	// the base of the status patch
	before := &karpenterv1.NodeClaim{Status: *claim.Status.DeepCopy()}
	if !controllerutil.ContainsFinalizer(&claim, karpenterv1.TerminationFinalizer) { // made by hand (P-33)
		bare := claim.DeepCopy()
		controllerutil.AddFinalizer(&claim, karpenterv1.TerminationFinalizer)
		if err := c.config.Client.Patch(ctx, &claim, optimistic(bare)); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	if launched, err := c.launch(ctx, w); !launched {
		return reconcile.Result{RequeueAfter: w.again}, err
	}
	if gone, err := c.endReboot(ctx, w); gone || err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before.ResourceVersion = claim.ResourceVersion // launch has written the metadata; the status is still to come
	if err := c.advance(ctx, w); err != nil {
		return reconcile.Result{}, err
	}
	vanished, unknown := c.vanished(ctx, w)
	if vanished {
		return reconcile.Result{}, unknown
	}
	if err := c.saveStatus(ctx, before, w.claim); err != nil {
		if client.IgnoreNotFound(err) == nil {
			if !w.young { // pods may run there by now: the collector will drain it
				return reconcile.Result{}, nil
			}
			return reconcile.Result{}, c.abandon(ctx, w)
		}
		return reconcile.Result{}, err
	}
	for _, tell := range w.saved {
		tell()
	}
	// The claim's age counts even if the provider does not say whether the instance is gone: nothing else ends a claim
	// whose node is gone and whose instance has another cluster's tag.
	_, err := c.checkAge(ctx, w)
	return reconcile.Result{RequeueAfter: w.again}, errors.Join(unknown, err)
}

// advance takes a launched claim as far as is possible now.
func (c *Controller) advance(ctx context.Context, w *work) error {
	var err error
	if w.node, err = c.config.nodeOf(ctx, w.claim); err != nil {
		return err
	}
	if w.node != nil {
		if wait := c.config.Unseen.Behind(w.node); wait > 0 {
			w.askAgain(wait)
			return nil
		}
	}
	if err := c.register(ctx, w); err != nil {
		return err
	}
	if err := c.keepMarks(ctx, w); err != nil {
		return err
	}
	if err := c.initialize(ctx, w); err != nil {
		return err
	}
	if err := c.keepNodePool(ctx, w); err != nil {
		return err
	}
	c.compare(w)
	c.sumUp(w)
	c.watchDrift(ctx, w)
	return c.watchPods(ctx, w)
}

// sumUp sets Ready, which combines the three stages.
func (c *Controller) sumUp(w *work) {
	value := condition.True(karpenterv1.ConditionTypeReady, "Ready", "")
	for _, kind := range []string{karpenterv1.ConditionTypeLaunched, karpenterv1.ConditionTypeRegistered,
		karpenterv1.ConditionTypeInitialized} {
		if !w.is(kind) {
			value = condition.Unknown(karpenterv1.ConditionTypeReady, "Not"+kind, "")
			break
		}
	}
	if w.node == nil && w.is(karpenterv1.ConditionTypeRegistered) {
		value = condition.Unknown(karpenterv1.ConditionTypeReady, reasonNodeGone, nodeGone(w.claim))
	}
	c.set(w, value)
}

func (c *Controller) set(w *work, value condition.Value) {
	condition.Set(&w.claim.Status.Conditions, w.claim.Generation, value, c.config.Now())
}

// saveStatus writes the status in one patch, if it changed.
func (c *Controller) saveStatus(ctx context.Context, before, claim *karpenterv1.NodeClaim) error {
	if patch.SameStatus(&before.Status, &claim.Status) {
		return nil
	}
	if err := c.config.Client.Status().Patch(ctx, claim,
		patch.Status(before, &before.Status, &claim.Status)); err != nil {
		return fmt.Errorf("writing the status of NodeClaim %s: %w", claim.Name, err)
	}
	return nil
}

// nodeOf returns the node of a launched claim, or nil if none is ours: a claim may name another program's machine. The
// node is the cache's own and must not be changed.
func (c *Config) nodeOf(ctx context.Context, claim *karpenterv1.NodeClaim) (*corev1.Node, error) {
	if claim.Status.ProviderID == "" {
		return nil, nil
	}
	var nodes corev1.NodeList
	if err := c.Client.List(ctx, &nodes, client.MatchingFields{IndexNodeProviderID: claim.Status.ProviderID},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("looking for the node of NodeClaim %s: %w", claim.Name, err)
	}
	for i := range nodes.Items {
		if node := &nodes.Items[i]; c.Fleet.OwnsNode(node, claim, nil) {
			return node, nil
		}
	}
	return nil, nil
}

// poolOf reads the pool of one of our claims. It returns nil if the pool is gone or is another program's by now.
func (c *Controller) poolOf(ctx context.Context, reader client.Reader,
	claim *karpenterv1.NodeClaim) (*karpenterv1.NodePool, error) {
	name := translate.PoolOf(claim)
	if name == "" {
		return nil, nil
	}
	var pool karpenterv1.NodePool
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, &pool, client.UnsafeDisableDeepCopy); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !c.config.Fleet.OwnsPool(&pool) {
		return nil, nil
	}
	return &pool, nil
}

// optimistic returns a merge patch that fails if the object has changed. Lists such as conditions, taints and
// finalizers are replaced as a whole, so a patch from an old object would undo what others wrote.
func optimistic(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}
