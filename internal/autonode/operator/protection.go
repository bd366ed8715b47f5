package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// inForceAfter is how long API servers may take to put a new admission policy into force. Each looks once a second.
const inForceAfter = 2 * time.Second

// ProtectionConfig is the configuration of a [ProtectionController].
type ProtectionConfig struct {
	Guest    GuestClient
	Wanted   []merge.Protection
	Unwanted []merge.Protection // deleted if they exist and are the operator's
	Others   []merge.Protection // that another operator writes: checked, never written
	Board    *Board
	Wake     func(context.Context) // all other controllers, once the guest is protected
	Events   event.Recorder
	Metrics  Metrics
	Now      func() time.Time
	Log      logr.Logger
}

// ProtectionController keeps the admission policies of the guest and their bindings as wanted (R34 to R38). It runs
// one step for all of them, at the start and whenever one changes.
type ProtectionController struct {
	config  ProtectionConfig
	pending []string // written, and possibly not in force everywhere yet; there is one worker
}

// NewProtectionController returns the controller.
func NewProtectionController(config ProtectionConfig) *ProtectionController {
	return &ProtectionController{config: config}
}

// Reconcile writes what is missing or different, and deletes what is unwanted. When everything is as wanted for the
// first time, the other controllers may begin (G22).
func (c *ProtectionController) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if c.config.Board.Released() {
		return reconcile.Result{}, nil
	}
	c.config.Board.begin(c.config.Now())
	if err := c.lookAtOthers(ctx); err != nil {
		return reconcile.Result{}, err
	}
	repaired := c.config.Board.Protected() // before that, a missing one never existed
	for _, wanted := range c.config.Wanted {
		for _, object := range []client.Object{wanted.Policy.DeepCopy(), wanted.Binding.DeepCopy()} {
			changed, err := c.ensure(ctx, object)
			if name := kindOf(object) + " " + object.GetName(); (changed || err != nil) &&
				!slices.Contains(c.pending, name) {
				c.pending = append(c.pending, name)
			}
			if err != nil {
				c.config.Board.SetMissing(slices.Clone(c.pending))
				return reconcile.Result{}, err
			}
			if changed {
				c.config.Board.wroteProtection(c.config.Now())
			}
			if changed && repaired {
				c.report(object)
			}
		}
	}
	for _, unwanted := range c.config.Unwanted {
		for _, object := range []client.Object{unwanted.Binding.DeepCopy(), unwanted.Policy.DeepCopy()} {
			if err := c.remove(ctx, object); err != nil {
				return reconcile.Result{}, err
			}
		}
	}
	if wait := c.config.Board.protectionWritten().Add(inForceAfter).Sub(c.config.Now()); wait > 0 {
		c.config.Board.SetMissing(slices.Clone(c.pending))
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	c.pending = nil
	c.config.Board.SetMissing(nil)
	if c.config.Board.Protect() {
		c.config.Log.Info("the admission policies are in place", "policies", len(c.config.Wanted))
		c.config.Wake(ctx)
	}
	return reconcile.Result{}, nil
}

// lookAtOthers finds out which of the admission policies that others write are not in force. Nothing waits for these.
func (c *ProtectionController) lookAtOthers(ctx context.Context) error {
	var missing []string
	for _, ours := range c.config.Others {
		policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
		for _, part := range []struct {
			object, ours client.Object
			good         func() bool
		}{
			{policy, &ours.Policy, func() bool { return guards(ours, policy) }},
			{binding, &ours.Binding, func() bool { return binds(ours.Policy.Name, binding) }},
		} {
			name := kindOf(part.object) + " " + part.ours.GetName()
			err := c.config.Guest.Get(ctx, client.ObjectKeyFromObject(part.ours), part.object)
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("reading %s: %w", name, err)
			}
			if !part.good() { // a missing object is empty, and not good
				missing = append(missing, name)
			}
		}
	}
	c.config.Board.setMissingOfOthers(missing)
	return nil
}

// ensure makes the object in the cluster like the wanted one. It keeps metadata that others added.
func (c *ProtectionController) ensure(ctx context.Context, wanted client.Object) (changed bool, err error) {
	kind := kindOf(wanted)
	found := emptyLike(wanted)
	err = c.config.Guest.Get(ctx, client.ObjectKeyFromObject(wanted), found)
	switch {
	case apierrors.IsNotFound(err):
		c.config.Metrics.Writes.WithLabelValues(kind, "create").Inc()
		if err := c.config.Guest.Create(ctx, wanted); err != nil {
			return false, fmt.Errorf("creating %s %s: %w", kind, wanted.GetName(), err)
		}
		return true, nil
	case err != nil:
		return false, fmt.Errorf("reading %s %s: %w", kind, wanted.GetName(), err)
	case sameProtection(wanted, found):
		// even if it is being deleted: a finalizer holds it, and it stays in force until it is gone
		return false, nil
	}
	adopt(wanted, found)
	c.config.Metrics.Writes.WithLabelValues(kind, "update").Inc()
	if err := c.config.Guest.Update(ctx, wanted); err != nil {
		return false, fmt.Errorf("restoring %s %s: %w", kind, wanted.GetName(), err)
	}
	return true, nil
}

// remove deletes the object, unless it belongs to somebody else.
func (c *ProtectionController) remove(ctx context.Context, unwanted client.Object) error {
	kind := kindOf(unwanted)
	found := emptyLike(unwanted)
	err := c.config.Guest.Get(ctx, client.ObjectKeyFromObject(unwanted), found)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %s %s: %w", kind, unwanted.GetName(), err)
	}
	if err != nil || found.GetDeletionTimestamp() != nil ||
		found.GetLabels()[merge.ManagedByLabel] != merge.ManagedByValue {
		return nil
	}
	c.config.Metrics.Writes.WithLabelValues(kind, "delete").Inc()
	if err := c.config.Guest.Delete(ctx, found); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s %s: %w", kind, unwanted.GetName(), err)
	}
	c.config.Log.Info("an admission policy that is switched off was deleted", "kind", kind, "name", unwanted.GetName())
	return nil
}

// report reports that somebody had changed or deleted what protects the cluster (G4).
func (c *ProtectionController) report(object client.Object) {
	kind := kindOf(object)
	c.config.Metrics.Repairs.WithLabelValues(kind).Inc()
	c.config.Events.Event(object, event.Warning, ReasonRestored,
		fmt.Sprintf("%s %s had been changed or deleted and was restored", kind, object.GetName()))
}

// sameProtection compares the specs. The wanted ones include the API server's defaults.
func sameProtection(a, b client.Object) bool {
	switch a := a.(type) {
	case *admissionv1.ValidatingAdmissionPolicy:
		return equality.Semantic.DeepEqual(a.Spec, b.(*admissionv1.ValidatingAdmissionPolicy).Spec)
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		return equality.Semantic.DeepEqual(a.Spec, b.(*admissionv1.ValidatingAdmissionPolicyBinding).Spec)
	}
	return false
}

// adopt prepares the wanted object to replace the found one: with its version, and the labels and annotations of
// others.
func adopt(wanted, found client.Object) {
	wanted.SetResourceVersion(found.GetResourceVersion())
	wanted.SetUID(found.GetUID())
	wanted.SetLabels(union(found.GetLabels(), wanted.GetLabels()))
	wanted.SetAnnotations(union(found.GetAnnotations(), wanted.GetAnnotations()))
	wanted.SetFinalizers(found.GetFinalizers())
	wanted.SetOwnerReferences(found.GetOwnerReferences())
	wanted.SetDeletionTimestamp(found.GetDeletionTimestamp())
}
