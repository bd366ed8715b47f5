package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// HandOverConfig is the configuration of a [HandOver]. All fields are required.
type HandOverConfig struct {
	Guest       GuestClient
	Live        client.Reader // reads from the guest's API server
	Management  ManagementClient
	Kinds       []Kind // that this operator wrote, pools first
	Protections []merge.Protection
	Done        func() // called once when it is over
	Metrics     Metrics
	Now         func() time.Time
	Log         logr.Logger
}

// HandOver gives a hosted cluster back to HyperShift's own operator. What only this operator knows is removed,
// and what runs stays. NodePools, EC2NodeClasses and nodes keep everything except labels and owners. The admission
// policy that HyperShift has under the same name stays in force. No other controller runs at the same time. A
// hand-over may be interrupted anywhere and started again.
type HandOver struct {
	config HandOverConfig
}

// NewHandOver returns the step function.
func NewHandOver(config HandOverConfig) *HandOver { return &HandOver{config: config} }

// Reconcile does the whole hand-over. First, the policy loses its condition ProtectedOnce: otherwise this operator,
// when it comes back, would take what users made meanwhile for foreign. Products come before wrappers, since a
// deleted wrapper takes its product along. Admission policies come last.
func (h *HandOver) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if err := h.sayReleased(ctx); err != nil {
		return reconcile.Result{}, err
	}
	for _, kind := range h.config.Kinds {
		wrappers, err := h.list(ctx, kind.NewWrapperList())
		if err != nil {
			return reconcile.Result{}, err
		}
		products, err := h.list(ctx, kind.NewProductList())
		if err != nil {
			return reconcile.Result{}, err
		}
		going := map[string]bool{} // the wrapper is being deleted, and its product with it
		for _, wrapper := range wrappers {
			going[wrapper.GetName()] = wrapper.GetDeletionTimestamp() != nil
		}
		for _, product := range products {
			if err := h.product(ctx, kind, product, going[product.GetName()]); err != nil {
				return reconcile.Result{}, err
			}
		}
		for _, wrapper := range wrappers {
			if err := h.wrapper(ctx, kind, wrapper); err != nil {
				return reconcile.Result{}, err
			}
		}
		h.config.Log.Info("released", "kind", kind.Wrapper, "objects", len(wrappers))
	}
	for _, protection := range h.config.Protections {
		for _, object := range []client.Object{&protection.Binding, &protection.Policy} {
			if err := h.protection(ctx, object); err != nil {
				return reconcile.Result{}, err
			}
		}
	}
	h.config.Log.Info("the hand-over is done")
	h.config.Done()
	return reconcile.Result{}, nil
}

// sayReleased sets the policy's conditions to say that nobody applies it. It does nothing if the policy may not be
// read.
func (h *HandOver) sayReleased(ctx context.Context) error {
	policy, _, err := h.config.Management.Policy(ctx)
	if err != nil && !denied(err) {
		return err
	}
	if policy == nil {
		return nil
	}
	status := policy.Status.DeepCopy()
	changed := condition.Clear(&status.Conditions, hypershiftv1beta1.ConditionTypeProtectedOnce)
	for _, kind := range []string{hypershiftv1beta1.ConditionTypeReady, hypershiftv1beta1.ConditionTypeProtected,
		hypershiftv1beta1.ConditionTypeConforming} {
		value := condition.Unknown(kind, hypershiftv1beta1.ReasonReleased,
			"the hosted cluster was handed over by --release, and no operator of policies looks at it")
		changed = condition.Set(&status.Conditions, policy.Generation, value, h.config.Now()) || changed
	}
	if !changed {
		return nil
	}
	if err := h.config.Management.WriteStatus(ctx, policy, status); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of AutoNodePolicy %s/%s: %w", policy.Namespace, policy.Name, err)
	}
	return nil
}

// product removes this operator's label and owner from a product. The owner stays if HyperShift's operator uses the
// same one, or if the user has deleted the wrapper: then the garbage collector finishes the deletion.
func (h *HandOver) product(ctx context.Context, kind Kind, product client.Object, going bool) error {
	labels, owners := without(product.GetLabels(), merge.ManagedByLabel), product.GetOwnerReferences()
	if !kind.Shared && !going {
		owners = slices.DeleteFunc(slices.Clone(owners), func(owner metav1.OwnerReference) bool {
			return owner.Kind == kind.Wrapper && groupOf(owner.APIVersion) == hypershiftv1beta1.Group
		})
	}
	if len(labels) == len(product.GetLabels()) && len(owners) == len(product.GetOwnerReferences()) {
		return nil
	}
	product.SetLabels(labels)
	product.SetOwnerReferences(owners)
	h.config.Metrics.Writes.WithLabelValues(kind.Product, "update").Inc()
	if err := h.config.Guest.Update(ctx, product); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("releasing %s %s: %w", kind.Product, product.GetName(), err)
	}
	return nil
}

// wrapper removes this operator's label and finalizer from a wrapper. A finalizer that HyperShift's operator shares
// stays.
func (h *HandOver) wrapper(ctx context.Context, kind Kind, wrapper client.Object) error {
	before := wrapper.DeepCopyObject().(client.Object)
	labels := without(wrapper.GetLabels(), merge.ManagedByLabel)
	changed := len(labels) != len(wrapper.GetLabels())
	wrapper.SetLabels(labels)
	if !kind.Shared && controllerutil.RemoveFinalizer(wrapper, kind.Finalizer) {
		changed = true
	}
	if !changed {
		return nil
	}
	err := h.config.Guest.Patch(ctx, wrapper,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("releasing %s %s: %w", kind.Wrapper, wrapper.GetName(), err)
	}
	return nil
}

// protection deletes a part of an admission policy that only this operator knows. From the one that HyperShift has
// under the same name, it removes only the label.
func (h *HandOver) protection(ctx context.Context, ours client.Object) error {
	var list client.ObjectList = &admissionv1.ValidatingAdmissionPolicyList{}
	if kindOf(ours) == bindingKind {
		list = &admissionv1.ValidatingAdmissionPolicyBindingList{}
	}
	all, err := h.list(ctx, list) // there is no right to get a single one
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(object client.Object) bool { return object.GetName() == ours.GetName() })
	if i < 0 || all[i].GetLabels()[merge.ManagedByLabel] != merge.ManagedByValue {
		return nil
	}
	found := all[i]
	if name := found.GetName(); name == "karpenter.ec2nodeclass.hypershift.io" ||
		name == "karpenter-binding.ec2nodeclass.hypershift.io" {
		found.SetLabels(without(found.GetLabels(), merge.ManagedByLabel))
		err = h.config.Guest.Update(ctx, found)
	} else {
		err = h.config.Guest.Delete(ctx, found)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("releasing %s %s: %w", kindOf(ours), ours.GetName(), err)
	}
	return nil
}

// list reads objects from the API server. Callers may change them.
func (h *HandOver) list(ctx context.Context, list client.ObjectList) (objects []client.Object, err error) {
	if err := h.config.Live.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing what is to be handed over: %w", err)
	}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		objects = append(objects, item.(client.Object))
		return nil
	})
	return objects, err
}

func without(labels map[string]string, key string) map[string]string {
	rest := union(labels, nil)
	delete(rest, key)
	return rest
}
