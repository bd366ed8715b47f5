package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

const (
	// refusedAgainAfter is when to try a product again that the API server refused or altered: its rules may have
	// changed. No event tells of that, and until then a stricter policy is not in force.
	refusedAgainAfter = 20 * time.Second
	// unreadAgainAfter is when to read again what nodes start with, after a failure.
	unreadAgainAfter = 10 * time.Second
	// behindAgainAfter is when to repeat a step whose cache was behind the API server.
	behindAgainAfter = 100 * time.Millisecond
)

// apply makes the product as policy and wrapper want it. It returns the outcome, or nil if the step must be repeated
// first. If the policy is unknown or invalid, what was written last stays (G14, G15).
func (c *Controller) apply(ctx context.Context, s scene) (reconcile.Result, *outcome, error) {
	c.meet(s)
	// An existing product is restored even if the guest does not take the finalizer: its admin can refuse that too.
	out := outcome{product: s.product, unheld: c.addFinalizer(ctx, s.wrapper)}
	if out.unheld != nil && s.product == nil {
		return reconcile.Result{}, nil, out.unheld
	}
	var result reconcile.Result
	if s.reading.Known() {
		made, err := c.config.Kind.Make(ctx, s.reading.Policy, s.wrapper)
		if err != nil { // from the management cluster: log the cause, do not show it to users
			c.config.Log.Error(err, "what the object is made from cannot be read", "kind", c.config.Kind.Product,
				"name", s.name)
			made = Made{Missing: "what nodes start with cannot be read at the moment", RetryAfter: unreadAgainAfter}
		}
		later, err := c.guardClass(ctx, s, &made)
		if err != nil {
			return reconcile.Result{}, nil, err
		}
		if made.Withheld != nil && s.product == nil {
			made.Product, made.Problems = nil, append(made.Problems, *made.Withheld)
		}
		out.made = &made
		result.RequeueAfter = made.RetryAfter
		if made.Product != nil {
			if err := c.write(ctx, s, &out); errors.Is(err, errBehind) {
				return reconcile.Result{RequeueAfter: behindAgainAfter}, nil, nil
			} else if err != nil {
				return reconcile.Result{}, nil, err
			}
			if out.refused == nil {
				c.failing.forget(s.name)
			}
			c.verify(&out)
			if out.altered.Any() {
				result.RequeueAfter = refusedAgainAfter
			}
		}
		c.warn(s, out)
		if later && out.unheld == nil {
			return reconcile.Result{RequeueAfter: classPatience}, nil, nil
		}
	}
	if out.refused != nil && out.refused.again > 0 {
		result.RequeueAfter = out.refused.again
	}
	return result, &out, nil
}

// errBehind says that the API server has a newer state than the cache.
var errBehind = errors.New("the cache is behind the API server")

// refusal says why the API server did not store a product as written.
type refusal struct {
	reason, message string
	again           time.Duration // 0 waits for an event
}

// write creates or updates the product if it differs. It returns an error for failures that may pass. A refusal of the
// API server goes into the outcome.
func (c *Controller) write(ctx context.Context, s scene, out *outcome) error {
	wanted := out.made.Product
	kind := c.config.Kind.Product
	if s.product == nil {
		c.config.Metrics.Writes.WithLabelValues(kind, "create").Inc()
		answer := wanted.DeepCopyObject().(client.Object)
		err := c.config.Guest.Create(ctx, answer)
		if apierrors.IsAlreadyExists(err) {
			return errBehind
		}
		if out.refused = refused(kind, err); err != nil && out.refused == nil {
			return fmt.Errorf("creating %s %s: %w", kind, s.name, err)
		}
		if err == nil {
			out.product = answer
			c.remember(nil, answer, wanted)
			c.repaired(s, "deleted")
		}
		return nil
	}
	if s.product.GetDeletionTimestamp() != nil {
		out.refused = &refusal{reason: ReasonDeleting,
			message: fmt.Sprintf("the %s is being deleted and will be created again", kind)}
		return nil
	}
	fresh := s.product.DeepCopyObject().(client.Object)
	// Fields that the policy decides are written at each step. Other altered fields are retried no more often than a
	// refusal.
	altered := c.config.Kind.Altered(s.product, wanted)
	spec := len(altered.Policy) > 0 || len(altered.Other) > 0 && !c.written.same(s.product, wanted, c.config.Now())
	if spec {
		c.config.Kind.Overwrite(fresh, wanted)
	}
	if metadata := overwriteMetadata(fresh, wanted); !spec && !metadata {
		return nil
	}
	c.config.Metrics.Writes.WithLabelValues(kind, "update").Inc()
	err := c.config.Guest.Update(ctx, fresh)
	if out.refused = refused(kind, err); err != nil {
		if out.refused == nil {
			return c.failed(ctx, s, out, fmt.Errorf("updating %s %s: %w", kind, s.name, err))
		}
		return nil
	}
	out.product = fresh
	c.remember(s.product, fresh, wanted)
	if fresh.GetGeneration() != s.product.GetGeneration() {
		c.repaired(s, "changed")
	}
	return nil
}

// failed decides what a failed write means that [refused] does not explain. The guest's admin can let writes of the
// operator fail with any status, so no list of statuses is enough. But closing a pool costs it its nodes, and must not
// follow from a failure that passes. So two things must come together: the writes have failed for a while, and the API
// server itself shows the product as it must not be. If it does not answer, nobody knows, and the step is repeated.
func (c *Controller) failed(ctx context.Context, s scene, out *outcome, err error) error {
	if c.failing.holds(s.name, true, c.config.Now()) {
		return err
	}
	stored, unread := c.live(ctx, s.name)
	if unread != nil || stored == nil || len(c.config.Kind.Altered(stored, out.made.Product).Policy) == 0 {
		return err
	}
	out.refused = &refusal{reason: ReasonRefused, message: fmt.Sprintf("the %s cannot be written: %s",
		c.config.Kind.Product, err), again: refusedAgainAfter}
	return nil
}

// remember keeps the answer to a write, and counts it if it is not what was written.
func (c *Controller) remember(before, answer, wanted client.Object) {
	c.written.remember(before, answer, wanted, c.config.Now())
	if c.config.Kind.Altered(answer, wanted).Any() {
		c.config.Metrics.Altered.WithLabelValues(c.config.Kind.Product).Inc()
	}
}

// verify checks whether the product is as wanted, after an accepted write and in every other step. The guest's
// admin controls admission there, which may change what the operator writes. That is no success. Writing the same
// again may change nothing and so cause no event, so the write is retried after a while.
func (c *Controller) verify(out *outcome) {
	if out.refused != nil || out.product == nil {
		return
	}
	c.written.hold(out.product)
	out.altered = c.config.Kind.Altered(out.product, out.made.Product)
	if len(out.altered.Policy) > 0 {
		out.refused = &refusal{reason: hypershiftv1beta1.ReasonAlteredOnWrite, again: refusedAgainAfter,
			message: alteration(c.config.Kind.Product, out.altered.Policy)}
	}
}

// overwriteMetadata gives product the owner, labels and annotations of wanted, and reports whether that changed
// anything. Those of others stay: Karpenter keeps its hash there.
func overwriteMetadata(product, wanted client.Object) (changed bool) {
	labels, annotations := union(product.GetLabels(), wanted.GetLabels()),
		union(product.GetAnnotations(), wanted.GetAnnotations())
	owners := ownedBy(product.GetOwnerReferences(), wanted.GetOwnerReferences())
	// a product with a wrapper leaves quarantine; union has returned a new map
	delete(annotations, LimitsAnnotation)
	changed = !maps.Equal(labels, product.GetLabels()) || !maps.Equal(annotations, product.GetAnnotations()) ||
		!equality.Semantic.DeepEqual(owners, product.GetOwnerReferences())
	product.SetLabels(labels)
	product.SetAnnotations(annotations)
	product.SetOwnerReferences(owners)
	return changed
}

// refused returns a refusal for errors that a retry alone does not solve (400, 403, 404, 422), nil for others.
func refused(kind string, err error) *refusal {
	switch {
	case err == nil:
		return nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &refusal{reason: ReasonRefusedInvalid, message: fmt.Sprintf("the API server does not accept the %s: %s",
			kind, err), again: refusedAgainAfter}
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return &refusal{reason: ReasonRefused, message: fmt.Sprintf("the %s cannot be written: %s", kind, err),
			again: refusedAgainAfter}
	}
	return nil
}

// repaired reports what somebody else did to the product, if the wrapper had already been applied in this state (R23,
// G4).
func (c *Controller) repaired(s scene, what string) {
	state := c.config.Kind.State(s.wrapper)
	was, policy := applied(*state.Conditions, s.wrapper.GetGeneration()), *state.ObservedPolicy
	// the status is only a hint, from an earlier process
	if v, found := c.config.Board.Verdict(c.config.Kind.Wrapper, s.wrapper); found {
		was, policy = v.applied(), v.Observed
	}
	if !was || !samePolicy(policy, s.reading.Policy) {
		return
	}
	kind := c.config.Kind.Product
	c.config.Metrics.Repairs.WithLabelValues(kind).Inc()
	c.config.Events.Event(s.wrapper, event.Warning, ReasonRestored,
		fmt.Sprintf("%s %s had been %s by somebody else and was restored", kind, s.name, what))
}

// warn writes events for users of wrapper and product about policy and merge (G9).
func (c *Controller) warn(s scene, out outcome) {
	if s.reading.State == StatePermissive { // G15
		c.config.Events.Event(s.wrapper, event.Warning, hypershiftv1beta1.ReasonPolicyUnreadable,
			"the provider's policy may not be read, so none is applied")
	}
	if out.made.Warning == "" {
		return
	}
	c.config.Events.Event(s.wrapper, event.Warning, out.made.WarningReason, out.made.Warning)
	if out.product != nil {
		c.config.Events.Event(out.product, event.Warning, out.made.WarningReason, out.made.Warning)
	}
}

func (c *Controller) addFinalizer(ctx context.Context, wrapper client.Object) error {
	before := wrapper.DeepCopyObject().(client.Object)
	if !controllerutil.AddFinalizer(wrapper, c.config.Kind.Finalizer) {
		return nil
	}
	if err := c.config.Guest.Patch(ctx, wrapper,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("adding the finalizer to %s %s: %w", c.config.Kind.Wrapper, wrapper.GetName(), err)
	}
	c.answers.remember(before.GetResourceVersion(), wrapper)
	return nil
}

func (c *Controller) dropFinalizer(ctx context.Context, wrapper client.Object) error {
	before := wrapper.DeepCopyObject().(client.Object)
	if !controllerutil.RemoveFinalizer(wrapper, c.config.Kind.Finalizer) {
		return nil
	}
	err := c.config.Guest.Patch(ctx, wrapper,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("taking the finalizer off %s %s: %w", c.config.Kind.Wrapper, wrapper.GetName(), err)
	}
	return nil
}

// report sets the verdict on the board, and writes the wrapper's status if it differs. If the guest's API server
// stored another status, it returns when to write again: an earlier write would only be altered again. The
// verdict does not depend on the stored status.
func (c *Controller) report(ctx context.Context, s scene, out outcome) (again time.Duration, err error) {
	kind := c.config.Kind
	now := c.config.Now()
	before := s.wrapper.DeepCopyObject().(client.Object)
	known, _ := c.config.Board.lastVerdict(kind.Wrapper, s.wrapper)
	astray := out.made != nil && c.standings.astray(s.name, out)
	if astray && out.made.Missing != "" {
		out.made.Missing += fmt.Sprintf("; somebody else has changed the %s meanwhile", kind.Product)
	}
	reached := verdict(kind.Product, s, out, known)
	if reached != nil {
		reached.astray = astray
		if known.same(*reached) {
			reached.statusAltered = known.statusAltered
		}
		c.config.Board.Reach(kind.Wrapper, s.name, *reached)
		if wait := refusedAgainAfter - now.Sub(reached.statusAltered); wait > 0 {
			return wait, nil
		}
	}
	var mirrored []karpenterv1.Condition
	if out.product != nil {
		mirrored = kind.Mirror(s.wrapper, out.product)
	}
	describe(kind.State(s.wrapper), s, out, mirrored, now)
	change := kind.PatchStatus(before, s.wrapper)
	sent := s.wrapper.DeepCopyObject().(client.Object)
	if change != nil {
		if err := c.config.Guest.Status().Patch(ctx, s.wrapper, change); apierrors.IsNotFound(err) {
			return 0, nil // it was deleted meanwhile
		} else if err != nil {
			return 0, fmt.Errorf("writing the status of %s %s: %w", kind.Wrapper, s.name, err)
		}
		c.answers.remember(before.GetResourceVersion(), s.wrapper)
	}
	if reached == nil {
		return 0, nil
	}
	reached.statusAltered = time.Time{}
	if kind.PatchStatus(sent, s.wrapper) != nil {
		reached.statusAltered, again = now, refusedAgainAfter
		c.config.Metrics.Altered.WithLabelValues(alteredStatus).Inc()
	}
	c.config.Board.Reach(kind.Wrapper, s.name, *reached)
	return again, nil
}

// alteredStatus is the metric label for altered writes of a wrapper's status.
const alteredStatus = "status"
