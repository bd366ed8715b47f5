package apply

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// Removal is a protocol of two steps. The API objects are its only memory (D-10):
//
//  1. Mark: the claim gets the condition DisruptionReason, then the node gets the taint karpenter.sh/disrupted. From
//     now on no pod is placed there.
//  2. In a later step, once the watches show both, the removal is judged again: it still holds, and Delete deletes the
//     claim; or it does not, and Undo takes the taint and then the condition away.
//
// The condition comes first and goes last, so it marks every state between two calls. Each call can be repeated, and
// is skipped when the object is already as it should be.

// Mark writes the intent to remove a node onto its claim and then onto the node. It reports false if the claim is no
// longer the one that the plan saw, or the claim or node is gone.
func (a *Applier) Mark(ctx context.Context, remove plan.Remove) (bool, error) {
	return a.mark(ctx, remove, false)
}

// mark is Mark. With atOnce, nothing has to come first: the same patch also takes the node out of load balancers,
// which saves its drain a write. A node that waits for its replacement goes on serving.
func (a *Applier) mark(ctx context.Context, remove plan.Remove, atOnce bool) (bool, error) {
	claim, err := a.claimOf(ctx, remove)
	if claim == nil {
		return false, err
	}
	before := claim.DeepCopy()
	text := "chosen to be removed: " + string(remove.Reason)
	if remove.Why != "" {
		text += ": " + remove.Why
	}
	value := condition.True(karpenterv1.ConditionTypeDisruptionReason, string(remove.Reason), text)
	known, _ := condition.Get(claim.Status.Conditions, value.Type)
	chosen := known.Status == value.Status && known.Reason == value.Reason
	if !chosen && condition.Set(&claim.Status.Conditions, claim.Generation, value, a.config.Now()) {
		if err := a.config.Client.Status().Patch(ctx, claim, optimistic(before)); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		id := a.removing(remove, causeOf(remove.Reason), Planned)
		a.config.Log.Info("marked for removal", "event", "NodeTainted", "decision", id,
			"claim", remove.Claim, "node", remove.Node, "pool", remove.Pool,
			"reason", remove.Reason, "pricePerHour", remove.Price.String())
	}
	if remove.Node == "" {
		return true, nil
	}
	if err := a.taint(ctx, remove.Node, claim, true, atOnce); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return true, nil
}

// Delete deletes a marked claim; the drain and the rest follow. It reports false if the claim is gone or is no longer
// marked.
func (a *Applier) Delete(ctx context.Context, remove plan.Remove) (bool, error) {
	claim, err := a.claimOf(ctx, remove)
	if claim == nil {
		return false, err
	}
	// Another replica may have taken the intent back. Then the cache shows that, or the claim differs from the cache
	// and the preconditions fail.
	if intent, _ := condition.Get(claim.Status.Conditions,
		karpenterv1.ConditionTypeDisruptionReason); intent.Status != metav1.ConditionTrue {
		return false, nil
	}
	if err := a.config.Client.Delete(ctx, claim,
		client.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion}); err != nil {
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return false, client.IgnoreNotFound(err)
	}
	a.removing(remove, marked(claim), Done)
	return true, nil
}

// DeleteUnchanged is Delete for a claim exactly as the caller read it. It reports false if anything was written to it
// since.
func (a *Applier) DeleteUnchanged(ctx context.Context, remove plan.Remove, resourceVersion string) (bool, error) {
	uid := types.UID(remove.ClaimUID)
	claim := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: remove.Claim}}
	if err := a.config.Client.Delete(ctx, claim,
		client.Preconditions{UID: &uid, ResourceVersion: &resourceVersion}); err != nil {
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return false, client.IgnoreNotFound(err)
	}
	a.removing(remove, causeOf(remove.Reason), Done)
	return true, nil
}

// Undo takes the intent back: first the taint of the node, then the condition of the claim.
func (a *Applier) Undo(ctx context.Context, remove plan.Remove) error {
	claim, err := a.claimOf(ctx, remove)
	if err != nil {
		return err
	}
	if remove.Node != "" {
		if err := client.IgnoreNotFound(a.taint(ctx, remove.Node, claim, false, false)); err != nil {
			return err
		}
	}
	if claim == nil {
		return nil
	}
	before, cause := claim.DeepCopy(), marked(claim)
	if !condition.Clear(&claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason) {
		return nil
	}
	if err := a.config.Client.Status().Patch(ctx, claim, optimistic(before)); err != nil {
		return client.IgnoreNotFound(err)
	}
	a.removing(remove, cause, TakenBack)
	return nil
}

// Release removes from a claim what it was made to replace: it is then a claim like any other. replaced are the names
// of the replaced claims that are gone. They stay written on it, and its node is left alone for a while (D-15).
func (a *Applier) Release(ctx context.Context, remove plan.Remove, replaced []string) error {
	claim, err := a.claimOf(ctx, remove)
	if claim == nil {
		return err
	}
	before := claim.DeepCopy()
	delete(claim.Annotations, karpenterv1.ReplacesAnnotationKey)
	delete(claim.Annotations, karpenterv1.ReplacementsAnnotationKey)
	if len(claim.Annotations) == len(before.Annotations) {
		return nil
	}
	if len(replaced) > 0 {
		claim.Annotations[karpenterv1.ReplacedAnnotationKey] = strings.Join(replaced, ",")
	}
	return client.IgnoreNotFound(a.config.Client.Patch(ctx, claim, optimistic(before)))
}

// Narrow limits a replacement to these claims. together is how many replacements there are now: some that were
// launched with it did not come.
func (a *Applier) Narrow(ctx context.Context, replacement plan.Remove, replaces []string, together int) error {
	claim, err := a.claimOf(ctx, replacement)
	if claim == nil {
		return err
	}
	before := claim.DeepCopy()
	translate.SetReplaces(claim, replaces, together)
	if maps.Equal(claim.Annotations, before.Annotations) {
		return nil
	}
	return client.IgnoreNotFound(a.config.Client.Patch(ctx, claim, optimistic(before)))
}

// claimOf returns the claim of a removal. It is nil with an error. It is also nil, without one, if the claim is gone,
// being deleted, another program's, or a new one of the same name.
func (a *Applier) claimOf(ctx context.Context, remove plan.Remove) (*karpenterv1.NodeClaim, error) {
	var claim karpenterv1.NodeClaim
	if err := a.config.Client.Get(ctx, client.ObjectKey{Name: remove.Claim}, &claim); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if claim.DeletionTimestamp != nil || string(claim.UID) != remove.ClaimUID || !a.config.Fleet.OwnsClaim(&claim) {
		return nil, nil
	}
	return &claim, nil
}

// taint adds the disrupted taint to a claim's node, or removes it. With exclude it also adds the label that takes the
// node out of load balancers; removing takes both off. claim is nil when it is gone. A node that is being deleted
// keeps them.
func (a *Applier) taint(ctx context.Context, name string, claim *karpenterv1.NodeClaim, want, exclude bool) error {
	var node corev1.Node
	if err := a.config.Client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return err
	}
	has := slices.ContainsFunc(node.Spec.Taints, isDisrupted)
	// any other value is somebody else's
	excluded := node.Labels[karpenterv1.ExcludeBalancersLabelKey] == karpenterv1.ExcludeBalancersLabelValue
	done := want && has || !want && !has && !excluded // somebody may have taken only the taint off
	if done || node.DeletionTimestamp != nil || !a.config.Fleet.OwnsNode(&node, claim, nil) {
		return nil
	}
	before := node.DeepCopy()
	if want {
		node.Spec.Taints = append(node.Spec.Taints,
			corev1.Taint{Key: karpenterv1.DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule})
		if exclude {
			metav1.SetMetaDataLabel(&node.ObjectMeta, karpenterv1.ExcludeBalancersLabelKey,
				karpenterv1.ExcludeBalancersLabelValue)
		}
	} else {
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, isDisrupted)
		if excluded {
			delete(node.Labels, karpenterv1.ExcludeBalancersLabelKey)
		}
	}
	return a.config.Client.Patch(ctx, &node, optimistic(before))
}

func isDisrupted(taint corev1.Taint) bool { return taint.Key == karpenterv1.DisruptedTaintKey }

// optimistic returns a merge patch that fails if the object has changed. Lists are replaced as a whole, so a patch
// from a stale object would undo what others wrote.
func optimistic(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}
