package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// PolicyConfig is what the controller of the policy's status works with; all fields are required.
type PolicyConfig struct {
	Management ManagementClient
	Guest      GuestClient
	Kinds      []Kind
	Board      *Board
	Metrics    Metrics
	Now        func() time.Time
	Log        logr.Logger
}

// PolicyController is the only writer of the policy's status (G16). A step looks at all wrappers and writes at most once.
type PolicyController struct {
	config PolicyConfig
}

// NewPolicyController returns the controller.
func NewPolicyController(config PolicyConfig) *PolicyController {
	return &PolicyController{config: config}
}

// Reconcile sums up what the wrappers say of the policy's present generation. A conflict is an error: somebody has changed
// the policy, and the feed's next answer brings it (G29).
func (c *PolicyController) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	targets, err := c.survey(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	policy := c.config.Board.Reading().Policy
	if policy == nil || !c.config.Board.Protected() { // G22: not Ready before the guest is protected
		return reconcile.Result{}, nil
	}
	ready := merge.Ready(policy, targets)
	status := policy.Status.DeepCopy()
	if !condition.Set(&status.Conditions, policy.Generation, ready, c.config.Now()) {
		return reconcile.Result{}, nil
	}
	if err := c.config.Management.WriteStatus(ctx, policy, status); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("writing the status of AutoNodePolicy %s/%s: %w", policy.Namespace, policy.Name, err)
	}
	c.config.Log.V(1).Info("wrote the policy's status", "ready", ready.Status, "reason", ready.Reason)
	return reconcile.Result{}, nil
}

// survey reads all wrappers, and shows how many there are in which state, and what belongs to none (G18).
func (c *PolicyController) survey(ctx context.Context) ([]merge.Target, error) {
	var targets []merge.Target
	for _, kind := range c.config.Kinds {
		wrappers, err := c.list(ctx, kind.NewWrapperList())
		if err != nil {
			return nil, fmt.Errorf("listing %ss: %w", kind.Wrapper, err)
		}
		counts := map[string]int{"True": 0, "False": 0, "Unknown": 0}
		names := map[string]bool{}
		for _, wrapper := range wrappers {
			targets = append(targets, kind.Target(wrapper))
			said, _ := condition.Get(*kind.State(wrapper).Conditions, hypershiftv1beta1.ConditionTypePolicyApplied)
			if said.Status == "" {
				said.Status = "Unknown"
			}
			counts[string(said.Status)]++
			names[wrapper.GetName()] = true
		}
		for status, n := range counts {
			c.config.Metrics.Wrappers.WithLabelValues(kind.Wrapper, status).Set(float64(n))
		}
		products, err := c.list(ctx, kind.NewProductList())
		if err != nil {
			return nil, fmt.Errorf("listing %ss: %w", kind.Product, err)
		}
		unmanaged := 0
		for _, product := range products {
			if !names[product.GetName()] && !managed(product, kind.Wrapper) {
				unmanaged++
			}
		}
		c.config.Metrics.Unmanaged.WithLabelValues(kind.Product).Set(float64(unmanaged))
	}
	return targets, nil
}

// list reads from the cache; nobody changes the objects.
func (c *PolicyController) list(ctx context.Context, list client.ObjectList) ([]client.Object, error) {
	if err := c.config.Guest.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var objects []client.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		objects = append(objects, item.(client.Object))
		return nil
	})
	return objects, err
}
