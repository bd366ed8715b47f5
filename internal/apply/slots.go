package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// viewFor is how long claims may be created from a pool's view, with or without slots. It keeps plans from being
// carried out on stale facts. It bounds nothing: a request that was given up may still land (docs/limits.md).
const viewFor = 10 * time.Second

// youngFor is the age at which a view is refreshed in the middle of a plan, so that a long plan does not outlive it.
const youngFor = viewFor / 2

// maxLaunches bounds the slots that one plan uses in one pool.
const maxLaunches = 1 << 16

// view is a pool as the API server has it.
type view struct {
	pool    *karpenterv1.NodePool
	refusal string // why nothing may be launched; "" when it may
	err     error
	slots   int64 // limit.None when claims need none
	count   int64 // claims of the pool that exist; known for pools with slots
	// surgeSlots is slots for replacements.
	surgeSlots int64
	usable     map[int]bool
	surge      map[int]bool                      // usable for replacements
	named      map[string]*karpenterv1.NodeClaim // all claims, of pools with slots
	at         time.Time
	shared     *shared // nil without a hard limit of the whole cluster
}

// look reads a pool from the API server and, when its claims are created in slots, all claims. A cache may not show a
// lowered limit yet, or claims that others have created. The order matters: the list is at least as new as the limit.
// All claims are listed, because a claim whose label was changed by hand counts too.
func (a *Applier) look(ctx context.Context, snapshot *cluster.Snapshot, launch plan.Launch) *view {
	v := &view{pool: &karpenterv1.NodePool{}, slots: limit.None, surgeSlots: limit.None, at: a.config.Now()}
	var common table
	if a.config.Cluster != nil { // first: everything read below is newer than its limit
		if common, v.refusal, v.err = a.table(ctx); v.err != nil || v.refusal != "" {
			return v
		}
	}
	if err := a.config.Live.Get(ctx, client.ObjectKey{Name: launch.Pool}, v.pool); err != nil {
		if v.err = client.IgnoreNotFound(err); v.err == nil {
			v.refusal = "the NodePool is gone"
		}
		return v
	}
	if snapshot.Pool(launch.Pool) == nil || string(v.pool.UID) != launch.PoolUID || v.pool.DeletionTimestamp != nil {
		v.refusal = "the NodePool was deleted"
		return v
	}
	if !a.config.Fleet.OwnsPool(v.pool) {
		v.refusal = "no provider here serves the NodePool's node class any more"
		return v
	}
	slots, err := translate.Slots(v.pool)
	if err != nil {
		v.refusal = err.Error()
		return v
	}
	if v.slots = slots; slots == limit.None && a.config.Cluster == nil {
		return v
	}
	if v.err = a.countClaims(ctx, v, launch); v.err != nil {
		return v
	}
	if slots != limit.None {
		v.surgeSlots = translate.SurgeSlots(v.pool, v.count)
	}
	if a.config.Cluster != nil {
		v.shared = v.shareOf(common, a.config.Cluster.most, launch.Pool, launch.PoolUID)
		return v
	}
	v.usable, v.surge = map[int]bool{}, map[int]bool{}
	taken := func(slot int) bool { return v.named[limit.SlotName(launch.Pool, launch.PoolUID, slot)] != nil }
	for _, slot := range limit.Usable(slots, v.count, taken, maxLaunches) {
		v.usable[slot] = true
	}
	for _, slot := range limit.Usable(v.surgeSlots, v.count, taken, maxLaunches) {
		v.surge[slot] = true
	}
	return v
}

// countClaims lists all claims, and counts those of the launch's pool.
func (a *Applier) countClaims(ctx context.Context, v *view, launch plan.Launch) error {
	var claims karpenterv1.NodeClaimList
	if err := a.config.Live.List(ctx, &claims); err != nil {
		return err
	}
	v.named = make(map[string]*karpenterv1.NodeClaim, len(claims.Items))
	for i := range claims.Items {
		claim := &claims.Items[i]
		v.named[claim.Name] = claim
		if translate.Belongs(claim, launch.Pool, launch.PoolUID) {
			v.count++
		}
	}
	return nil
}

// objection says why the launch may not be made in its slot, or without one; "" when it may. A claim is created only
// in a slot that was usable in this same view: the proof in docs/limits.md depends on it. If the slot is taken, it
// must hold this same launch.
func (v *view) objection(p plan.Plan, launch plan.Launch) string {
	usable := v.usable
	if len(launch.Replaces) > 0 {
		usable = v.surge
	}
	switch {
	case v.refusal != "":
		return v.refusal
	case launch.Slot == plan.NoSlot && v.slots != limit.None:
		return "the NodePool has got a hard limit meanwhile"
	case launch.Slot == plan.NoSlot:
		return ""
	case v.slots == limit.None:
		return "the NodePool's hard limit was taken away meanwhile"
	case v.shared != nil:
		return "" // its slot is a cluster slot, chosen when the claim is created
	}
	if holder := v.named[limit.SlotName(launch.Pool, launch.PoolUID, launch.Slot)]; holder != nil {
		if !sameLaunch(holder, translate.NodeClaimFor(v.pool, p.Names, launch, holder.Name)) {
			return taken(launch, holder)
		}
		return ""
	}
	if !usable[launch.Slot] {
		return fmt.Sprintf("slot %d is out of use: %d NodeClaims exist, the NodePool may have %d", launch.Slot,
			v.count, v.slots)
	}
	return ""
}

// taken says who has the slot of a launch.
func taken(launch plan.Launch, holder *karpenterv1.NodeClaim) string {
	text := fmt.Sprintf("slot %d is taken by NodeClaim %s", launch.Slot, holder.Name)
	if label := holder.Labels[karpenterv1.NodePoolLabelKey]; label != launch.Pool {
		text += fmt.Sprintf(", whose label %s is %q", karpenterv1.NodePoolLabelKey, label)
	}
	return text
}

// sameLaunch reports whether a claim stands for the same launch as ours. Then it comes from an earlier create whose
// answer was lost, or from the same plan of another replica.
func sameLaunch(found, ours *karpenterv1.NodeClaim) bool {
	return found.DeletionTimestamp == nil &&
		found.Labels[karpenterv1.NodePoolLabelKey] == ours.Labels[karpenterv1.NodePoolLabelKey] &&
		equality.Semantic.DeepEqual(found.OwnerReferences, ours.OwnerReferences) &&
		slices.Equal(translate.Replaces(found), translate.Replaces(ours)) &&
		equality.Semantic.DeepEqual(found.Spec.Requirements, ours.Spec.Requirements) &&
		equality.Semantic.DeepEqual(found.Spec.Resources, ours.Spec.Resources)
}
