// Package buffer keeps the status of CapacityBuffers up to date: whether the request is understood, whether the room
// exists, and what limits it (K-36). It decides nothing. The store resolves buffers, the engine plans for them, and
// this package writes the result as conditions.
package buffer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// Reasons of the condition Provisioning, and of LimitedByQuotas.
const (
	FitsExistingCapacity    = "FitsExistingCapacity"
	RequiresNewCapacity     = "RequiresNewCapacity"
	NotReadyForProvisioning = "NotReadyForProvisioning"
	Empty                   = "BufferEmpty"
	LimitReached            = "LimitReached" // of a pool, or of the cluster
	PoolPaused              = "PoolPaused"
	OwnLimits               = "OwnLimits"
	WithinLimits            = "WithinLimits"
)

// lookEvery is how often a buffer is checked: what it refers to may have changed. A check reads only memory (K-36).
const lookEvery = 2 * time.Second

// Verdicts knows what a buffer asks for, and of which generation. known is false for a buffer that it has not seen.
type Verdicts interface {
	BufferVerdict(name types.NamespacedName) (verdict translate.BufferVerdict, generation int64, known bool)
}

// Config configures the controller; all fields are required.
type Config struct {
	Client   client.Client // reads from a cache
	Verdicts Verdicts
	Board    *Board
	// Off says that the feature gate is off: buffers are not planned for, and their status says so (K-04).
	Off    bool
	Events event.Recorder
	Now    func() time.Time
}

// Controller keeps the status of CapacityBuffers.
type Controller struct {
	config Config
}

// New returns the controller.
func New(config Config) *Controller { return &Controller{config: config} }

// Reconcile updates the status of one CapacityBuffer, with at most one patch.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var b autoscalingv1beta1.CapacityBuffer
	if err := c.config.Client.Get(ctx, request.NamespacedName, &b); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if b.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	before := b.DeepCopy()
	if c.config.Off {
		// once an hour
		c.config.Events.Event(&b, event.Warning, event.FeatureGateDisabled, "The buffer has no effect: "+gateOff)
		c.sayOff(&b)
	} else {
		verdict, generation, known := c.config.Verdicts.BufferVerdict(request.NamespacedName)
		if !known || generation != b.Generation {
			return reconcile.Result{RequeueAfter: lookEvery / 10}, nil // its watch event is on its way
		}
		c.say(&b, verdict)
	}
	if !equality.Semantic.DeepEqual(before.Status, b.Status) {
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := c.config.Client.Status().Patch(ctx, &b, patch); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	return reconcile.Result{RequeueAfter: lookEvery}, nil
}

const gateOff = "the feature gate CapacityBuffer is off (--feature-gates)"

func (c *Controller) sayOff(b *autoscalingv1beta1.CapacityBuffer) {
	b.Status.PodTemplateRef, b.Status.PodTemplateGeneration, b.Status.Replicas = nil, nil, nil
	c.set(b, autoscalingv1beta1.ConditionTypeReadyForProvisioning, metav1.ConditionFalse, event.FeatureGateDisabled,
		gateOff)
	c.set(b, autoscalingv1beta1.ConditionTypeProvisioning, metav1.ConditionFalse, NotReadyForProvisioning, gateOff)
	meta.RemoveStatusCondition(&b.Status.Conditions, autoscalingv1beta1.ConditionTypeLimitedByQuotas)
}

// say writes into the status what the buffer asks for and its state.
func (c *Controller) say(b *autoscalingv1beta1.CapacityBuffer, v translate.BufferVerdict) {
	status := &b.Status
	status.ProvisioningStrategy = b.Spec.ProvisioningStrategy
	status.PodTemplateRef, status.PodTemplateGeneration, status.Replicas = nil, nil, nil
	if !v.Ready() {
		c.set(b, autoscalingv1beta1.ConditionTypeReadyForProvisioning, metav1.ConditionFalse, v.Reason, v.Message)
		c.set(b, autoscalingv1beta1.ConditionTypeProvisioning, metav1.ConditionFalse, NotReadyForProvisioning,
			v.Message)
		meta.RemoveStatusCondition(&status.Conditions, autoscalingv1beta1.ConditionTypeLimitedByQuotas)
		return
	}
	if ref := b.Spec.PodTemplateRef; ref != nil {
		status.PodTemplateRef, status.PodTemplateGeneration = ref.DeepCopy(), new(v.Source.Generation)
	}
	status.Replicas = new(int32(v.Pods))
	c.set(b, autoscalingv1beta1.ConditionTypeReadyForProvisioning, metav1.ConditionTrue, v.Reason,
		fmt.Sprintf("it asks for room for %s", pods(v.Pods)))
	now, known := c.config.Board.Of(client.ObjectKeyFromObject(b))
	limited := known && now.Missing > 0 && slices.Contains(cause.LimitCodes(), now.Cause)
	switch {
	case v.Limited != "":
		c.set(b, autoscalingv1beta1.ConditionTypeLimitedByQuotas, metav1.ConditionTrue, OwnLimits, v.Limited)
	case limited:
		c.set(b, autoscalingv1beta1.ConditionTypeLimitedByQuotas, metav1.ConditionTrue, LimitReached, now.Text)
	default:
		c.set(b, autoscalingv1beta1.ConditionTypeLimitedByQuotas, metav1.ConditionFalse, WithinLimits, "")
	}
	const kind = autoscalingv1beta1.ConditionTypeProvisioning
	switch {
	case v.Pods == 0:
		c.set(b, kind, metav1.ConditionFalse, Empty, "it asks for no room")
	case !known || now.Asked() != v.Pods: // no plan has seen its current form
		if meta.FindStatusCondition(status.Conditions, kind) == nil {
			c.set(b, kind, metav1.ConditionFalse, RequiresNewCapacity, "no plan has been made for it yet")
		}
	case now.There == v.Pods:
		c.set(b, kind, metav1.ConditionTrue, FitsExistingCapacity, fmt.Sprintf("there is room for %s", pods(v.Pods)))
	case limited:
		c.set(b, kind, metav1.ConditionFalse, LimitReached, now.Says(v.Pods))
	case now.Missing > 0 && now.Cause == cause.PoolPaused:
		c.set(b, kind, metav1.ConditionFalse, PoolPaused, now.Says(v.Pods))
	default:
		c.set(b, kind, metav1.ConditionFalse, RequiresNewCapacity, now.Says(v.Pods))
	}
}

func pods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

func (c *Controller) set(b *autoscalingv1beta1.CapacityBuffer, kind string, value metav1.ConditionStatus,
	reason, message string) {
	meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
		Type: kind, Status: value, Reason: reason, Message: message, ObservedGeneration: b.Generation,
		LastTransitionTime: metav1.NewTime(c.config.Now()),
	})
}
