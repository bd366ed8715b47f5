package disruption

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// This file reports that limits on nodes, and not prices, keep nodes from being replaced to save money (L-34, K-53).

// nearLimit is for how many launches a limit must have room to be ruled out as the cause. Commands with more launches
// are rare. For nearer limits the search is repeated.
const nearLimit = 10

// near returns the pools whose node limit, hard or soft, leaves little room. whole says that the hard limit of the
// whole cluster does.
func near(r round) (pools map[string]bool, whole bool) {
	pools = map[string]bool{}
	for _, pool := range r.snapshot.Pools {
		most, _ := pool.Limits.Nodes()
		if r.pools[pool.Name] != nil && !pool.Static && most != limit.None && most-pool.Used.Nodes < nearLimit {
			pools[pool.Name] = true
		}
	}
	left := r.snapshot.Ceiling().LeftHard()
	return pools, r.snapshot.ClaimsUnknown == "" && left != limit.None && left < nearLimit
}

// unlimited returns the cluster as if these pools had no hard limit.
func unlimited(s *cluster.Snapshot, names map[string]bool) *cluster.Snapshot {
	parts := *s
	parts.Pools = slices.Clone(parts.Pools)
	for i, pool := range parts.Pools {
		if names[pool.Name] {
			free := *pool
			free.Limits.HardNodes, free.FreeSlots = limit.None, nil
			parts.Pools[i] = &free
		}
	}
	return cluster.New(parts)
}

// unbounded is unlimited, also without soft limits and, with whole, without the hard limit of the whole cluster.
func unbounded(s *cluster.Snapshot, names map[string]bool, whole bool) *cluster.Snapshot {
	free := unlimited(s, names)
	for _, pool := range free.Pools {
		if names[pool.Name] {
			pool.Limits.SoftNodes = limit.None // unlimited has copied this pool
		}
	}
	if whole {
		free.MaxClaims = 0
	}
	return free
}

// reportLimited reports pools where only a limit on nodes prevents a cheaper replacement: their own, or that of the
// whole cluster. It repeats the plan without the limits that are near.
func (c *Controller) reportLimited(r round, terms engine.Terms, p plan.Plan) {
	if len(p.Removes) > 0 {
		return
	}
	pools, whole := near(r)
	if len(pools) == 0 && !whole {
		return
	}
	free := engine.Consolidate(unbounded(r.snapshot, pools, whole), terms)
	for name, what := range limitsOf(r.snapshot, free) {
		if r.pools[name] != nil {
			c.reportLimit(r.pools[name], plan.Underutilized, what)
		}
	}
}

// limitsOf returns which limit the commands of a plan without limits would exceed, by the pool that would lose nodes.
func limitsOf(s *cluster.Snapshot, free plan.Plan) map[string]string {
	gone, home := map[string]int64{}, map[string]string{}
	for _, remove := range free.Removes {
		gone[remove.Pool]++
		home[remove.Claim] = remove.Pool
	}
	come, replaced := map[string]int64{}, map[string]map[string]bool{}
	for _, l := range free.Launches {
		come[l.Pool]++
		for _, claim := range l.Replaces {
			if replaced[home[claim]] == nil {
				replaced[home[claim]] = map[string]bool{}
			}
			replaced[home[claim]][l.Pool] = true
		}
	}
	found, left := map[string]string{}, s.Ceiling().LeftHard()
	for name, by := range replaced {
		pool := s.Pool(name)
		if pool == nil {
			continue
		}
		hard, soft, own := pool.Limits.HardNodes, pool.Limits.SoftNodes, by[name]
		switch { // another pool's limit is not reported
		case own && hard != limit.None && pool.Used.Nodes+come[name] > hard:
			found[name] = "node hard limit"
		case left != limit.None && int64(len(free.Launches)) > left:
			found[name] = "the hard limit of the whole cluster (--" + limit.FlagMaxClaimsHard + ")"
		case own && soft != limit.None && pool.Used.Nodes-gone[name]+come[name] > soft:
			found[name] = "node soft limit"
		}
	}
	return found
}
