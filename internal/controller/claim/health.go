package claim

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file says on pools whether their nodes join (V-13), by Karpenter's rule: of the last four claims at most one
// took too long to launch or to register. It is information only, so no step fails for it.

const (
	lastResults   = 4 // how many claims of a pool count
	unhealthyFrom = 2 // how many of them may not fail
	// healthAgain is when a report that could not be written is tried again.
	healthAgain = 5 * time.Second
)

// health remembers the last results of each pool, by its UID. If the process ends, the next one begins with what the
// condition says. It is safe for concurrent use.
type health struct {
	mu    sync.Mutex
	pools map[types.UID]*results
}

// results are those of one pool.
type results struct {
	last    []result               // the newest is the last one
	shown   metav1.ConditionStatus // the condition as this process has last seen or written it
	pending *condition.Value       // to be written; nil for nothing
	writing bool                   // somebody writes it right now
}

// result is how one claim ended or joined.
type result struct {
	claim  types.UID // "" for one that is known by the condition only
	joined bool
}

func newHealth() *health { return &health{pools: map[types.UID]*results{}} }

// of returns a pool's results. At first they are those for which the condition would be as it is. The lock is held.
func (h *health) of(pool types.UID, status metav1.ConditionStatus) *results {
	known := h.pools[pool]
	if known == nil {
		known = &results{shown: status}
		switch status {
		case metav1.ConditionTrue:
			known.last = []result{{joined: true}}
		case metav1.ConditionFalse:
			known.last = make([]result, unhealthyFrom)
		}
		h.pools[pool] = known
	}
	return known
}

// add adds a claim's result, once, and the report that it asks for.
func (r *results) add(claim types.UID, value condition.Value) {
	next := result{claim, value.Status == metav1.ConditionTrue}
	if slices.Contains(r.last, next) {
		return
	}
	if r.last = append(r.last, next); len(r.last) > lastResults {
		r.last = r.last[len(r.last)-lastResults:]
	}
	failed := 0
	for _, each := range r.last {
		if !each.joined {
			failed++
		}
	}
	if next.joined != (failed < unhealthyFrom) { // the results before it decide, and they were reported
		return
	}
	if r.pending = nil; value.Status != r.shown {
		r.pending = &value
	}
}

// take returns what is to be written about a pool, for one caller at a time.
func (h *health) take(pool types.UID) *condition.Value {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.pools[pool]
	if known == nil || known.pending == nil || known.writing {
		return nil
	}
	known.writing = true
	return known.pending
}

// done ends what take began.
func (h *health) done(pool types.UID, value *condition.Value, written bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.pools[pool]
	if known == nil {
		return
	}
	known.writing = false
	if !written {
		return
	}
	known.shown = value.Status
	if known.pending == value || known.pending != nil && known.pending.Status == value.Status {
		known.pending = nil
	}
}

// reportHealth adds the claim's result to those of the pool that owns it, and writes the condition if it changes.
func (c *Controller) reportHealth(ctx context.Context, w *work, value condition.Value) {
	pool := c.reportsTo(ctx, w)
	if pool == nil {
		return
	}
	now, _ := condition.Get(pool.Status.Conditions, value.Type)
	c.health.mu.Lock()
	known := c.health.of(pool.UID, now.Status)
	if c.config.Unseen.Behind(pool) <= 0 && !known.writing {
		known.shown = now.Status
	}
	known.add(w.claim.UID, value)
	c.health.mu.Unlock()
	c.writeHealth(ctx, w)
}

// writeHealth writes what is to be written about the claim's pool. What fails is tried again by the next step of any
// of the pool's claims, and by one of this claim soon.
func (c *Controller) writeHealth(ctx context.Context, w *work) {
	_, uid, _ := translate.OwningPool(w.claim)
	value := c.health.take(types.UID(uid))
	if value == nil {
		return
	}
	written := false
	if known := c.reportsTo(ctx, w); known != nil && c.config.Unseen.Behind(known) <= 0 {
		now, _ := condition.Get(known.Status.Conditions, value.Type)
		if written = now.Status == value.Status; !written {
			pool, before := known.DeepCopy(), known.DeepCopy()
			condition.Set(&pool.Status.Conditions, pool.Generation, *value, c.config.Now())
			err := c.config.Client.Status().Patch(ctx, pool, patch.Status(before, &before.Status, &pool.Status))
			if written = client.IgnoreNotFound(err) == nil; !written {
				c.config.Log.V(1).Info("could not report the health of registration", "pool", pool.Name, "reason",
					err.Error())
			}
		}
	}
	if c.health.done(types.UID(uid), value, written); !written {
		w.askAgain(healthAgain)
	}
}

// reportsTo returns the pool that owns the claim, as the cache has it; nil if there is none, or it must not be
// written.
func (c *Controller) reportsTo(ctx context.Context, w *work) *karpenterv1.NodePool {
	_, uid, owned := translate.OwningPool(w.claim)
	pool, err := c.poolOf(ctx, c.config.Client, w.claim)
	if !owned || err != nil {
		return nil
	}
	if pool == nil || string(pool.UID) != uid || patch.LosesOriginal(pool) {
		c.health.mu.Lock()
		delete(c.health.pools, types.UID(uid))
		c.health.mu.Unlock()
		return nil
	}
	return pool
}
