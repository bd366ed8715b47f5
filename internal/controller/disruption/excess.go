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

// This file tells two kinds of nodes above a soft limit apart (L-40). When a user lowers the limit, or adds nodes by
// hand, while Joiner runs, they go at once. When a pool was above its limit before Joiner came, nobody asked for its
// nodes to go: Karpenter does not remove nodes above a limit. Such a pool is told so, and is brought down within its
// budgets.
//
// The mark on the NodePool decides (karpenterv1.AboveLimitAnnotationKey), and it is written before any node goes.
// Without a mark for the limit of now, budgets hold. What a process has seen of a pool is kept here only. When that
// is lost, the process has seen no excess come about, and budgets hold again.

// witness is what a process has last seen of a pool.
type witness struct {
	limit   int64 // the soft one; 0 when settled, for then it does not matter
	settled bool  // the pool was not above it, or what is above came about later
}

// markExcess brings the marks of all pools up to date, and reports whether it wrote one: what goes is decided on the
// next picture then.
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
			seen[object.UID] = known // as if it had not been looked at
			continue
		}
		if wrote = wrote || changed; changed && mark == karpenterv1.AboveLimitInherited {
			c.reportInherited(r.snapshot, pool, object)
		}
	}
	c.memory.witnesses = seen
	return wrote, errors.Join(failures...)
}

// judgeExcess returns the mark that a pool has to have, and what is to be remembered of it. known is what was seen
// before, the zero value when nothing was.
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
		// What is above leaves already. Whoever comes now cannot know why it does.
		return "", witness{limit: most, settled: known.settled}
	case mark == atOnce:
		return mark, witness{settled: true}
	case known.settled || most < known.limit:
		return atOnce, witness{settled: true}
	}
	return karpenterv1.AboveLimitInherited, witness{limit: most}
}

// markPool writes the mark, "" for none, and reports whether it had to. Somebody else may have written another one
// meanwhile: then the write is refused, and the next round looks again.
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

// reportInherited tells about a pool that was above its limit before.
func (c *Controller) reportInherited(s *cluster.Snapshot, pool *cluster.Pool, object *karpenterv1.NodePool) {
	staying, leaving := engine.Leaving(s, pool.Name)
	count := int64(len(staying) + len(leaving))
	_, why := engine.Excessive(pool, count)
	most, _ := translate.SoftBound(pool)
	c.config.Events.Event(object, event.Warning, event.NodeLimitExceeded, fmt.Sprintf(
		"%s: the pool was above the limit when Joiner first saw it, so %d nodes are removed as the disruption budgets "+
			"allow, not at once", why, count-most))
}
