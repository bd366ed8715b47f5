package apply

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// viewFor is how long a pool's view may be created from. It bounds what the invariant of hard limits cannot cover: a create
// that was on its way when the limit was lowered (docs/limits.md).
const viewFor = 10 * time.Second

// maxLaunches bounds the slots that one plan uses of one pool.
const maxLaunches = 1 << 16

// view is a pool as the API server itself has it, read once for each plan.
type view struct {
	pool    *karpenterv1.NodePool
	refusal string // why nothing may be launched; "" when it may
	err     error
	slots   int64 // limit.None when claims need none
	count   int64 // claims of the pool that exist; known for pools with slots
	usable  map[int]bool
	surge   map[int]bool    // usable for what replaces others
	names   map[string]bool // of the pool's claims
	at      time.Time
}

// look reads a pool and, when its claims are made in slots, all its claims, from the API server: a cache may not know of a
// lower limit yet, nor of claims that others have made. The order matters: what is listed is at least as new as the limit.
func (a *Applier) look(ctx context.Context, snapshot *cluster.Snapshot, launch plan.Launch) *view {
	v := &view{pool: &karpenterv1.NodePool{}, slots: limit.None, at: a.config.Now()}
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
	if v.slots = slots; slots == limit.None {
		return v
	}
	var claims karpenterv1.NodeClaimList
	if v.err = a.config.Live.List(ctx, &claims, client.MatchingLabels{karpenterv1.NodePoolLabelKey: launch.Pool}); v.err != nil {
		return v
	}
	v.count, v.usable, v.names = int64(len(claims.Items)), map[int]bool{}, make(map[string]bool, len(claims.Items))
	for _, claim := range claims.Items {
		v.names[claim.Name] = true
	}
	taken := func(slot int) bool { return v.names[limit.SlotName(launch.Pool, launch.PoolUID, slot)] }
	for _, slot := range limit.Usable(slots, v.count, taken, maxLaunches) {
		v.usable[slot] = true
	}
	v.surge = map[int]bool{}
	for _, slot := range limit.Usable(translate.SurgeSlots(v.pool, v.count), v.count, taken, maxLaunches) {
		v.surge[slot] = true
	}
	return v
}

// objection says why the launch may not be made in its slot, or without one; "" when it may. A slot that is taken is for
// the create to find out about: it may be this very launch.
func (v *view) objection(launch plan.Launch) string {
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
	case !usable[launch.Slot] && !v.names[claimName(launch, 0, 0)]:
		return fmt.Sprintf("slot %d is out of use: %d NodeClaims exist, the NodePool may have %d", launch.Slot, v.count, v.slots)
	}
	return ""
}
