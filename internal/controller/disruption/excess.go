package disruption

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file distinguishes two kinds of nodes above a soft limit (L-40). If a user lowers the limit or adds nodes by
// hand while Joiner runs, surplus nodes go at once. If a pool was above its limit before Joiner came, nobody asked for
// that: Karpenter does not remove nodes above a limit. Such a pool gets an event, and is reduced within its budgets.
//
// The mark on the NodePool decides (karpenterv1.AboveLimitAnnotationKey), and is written before any node goes. Without
// a mark for the current limit, budgets apply. Only the process itself remembers what it has seen of a pool. If that
// is lost, the new process has seen no excess arise, and budgets apply again.

// witness is what this process last saw of a pool.
type witness struct {
	limit   int64 // the soft limit; 0 if settled, because it does not matter then
	settled bool  // the pool was not above it, or the excess arose later
}

// markExcess updates the marks of all pools, and reports whether it wrote one. In that case the next snapshot decides
// what goes.
func (c *Controller) markExcess(ctx context.Context, r round) (bool, error) {
	wrote := false
	var failures []error
	seen := map[types.UID]witness{}
	for _, pool := range r.snapshot.Pools {
		object := r.pools[pool.Name]
		if object == nil || string(object.UID) != pool.UID || pool.Invalid || pool.Dormant {
			continue
		}
		known := c.memory.witnesses[object.UID]
		written := object.Annotations[karpenterv1.AboveLimitAnnotationKey]
		mark, now := judgeExcess(r.snapshot, pool, written, known)
		seen[object.UID] = now
		changed, err := c.markPool(ctx, object, mark)
		if err != nil {
			failures = append(failures, err)
			seen[object.UID] = known // as if not checked
			continue
		}
		if wrote = wrote || changed; changed && mark == karpenterv1.AboveLimitInherited {
			c.reportInherited(r.snapshot, pool, object)
		}
	}
	c.memory.witnesses = seen
	return wrote, errors.Join(failures...)
}

// judgeExcess returns the mark that a pool must have, and what to remember of it. known is what was seen before; zero
// if nothing was.
func judgeExcess(s *cluster.Snapshot, pool *cluster.Pool, mark string, known witness) (string, witness) {
	most, bound := translate.SoftBound(pool)
	if !bound {
		return "", witness{settled: true}
	}
	staying, leaving := engine.Leaving(s, pool.Name)
	count := int64(len(staying) + len(leaving))
	atOnce := translate.AtOnce(most)
	switch {
	case count <= most:
		return "", witness{settled: true}
	case pool.Limits.Excess(pool.Kept(), count, int64(len(leaving))) <= 0 && mark == "":
		// The surplus nodes are leaving already. A process that starts now cannot know why.
		return "", witness{limit: most, settled: known.settled}
	case mark == atOnce:
		return mark, witness{settled: true}
	case known.settled || most < known.limit:
		return atOnce, witness{settled: true}
	}
	return karpenterv1.AboveLimitInherited, witness{limit: most}
}

// markPool writes the mark, "" for none, and reports whether it had to. If somebody else has written one meanwhile,
// the write is refused, and the next round tries again.
func (c *Controller) markPool(ctx context.Context, pool *karpenterv1.NodePool, mark string) (bool, error) {
	const key = karpenterv1.AboveLimitAnnotationKey
	if pool.Annotations[key] == mark {
		return false, nil
	}
	own := pool.DeepCopy()
	if own.Annotations == nil {
		own.Annotations = map[string]string{}
	}
	if own.Annotations[key] = mark; mark == "" {
		delete(own.Annotations, key)
	}
	change := client.MergeFromWithOptions(pool, client.MergeFromWithOptimisticLock{})
	if err := c.config.Client.Patch(ctx, own, change); err != nil {
		return false, fmt.Errorf("noting on NodePool %s how it is brought down to its limit: %w", pool.Name, err)
	}
	c.config.Log.Info("marked a NodePool above its soft node limit", "pool", pool.Name, "mark", mark)
	return true, nil
}

// reportInherited reports a pool that was above its limit before.
func (c *Controller) reportInherited(s *cluster.Snapshot, pool *cluster.Pool, object *karpenterv1.NodePool) {
	staying, leaving := engine.Leaving(s, pool.Name)
	count := int64(len(staying) + len(leaving))
	_, why := engine.Excessive(pool, count)
	most, _ := translate.SoftBound(pool)
	c.config.Events.Event(object, event.Warning, event.NodeLimitExceeded, fmt.Sprintf(
		"%s: the pool was above the limit when Joiner first saw it, so %d nodes are removed as the disruption budgets "+
			"allow, not at once", why, count-most))
}
