package pool

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file determines when a hard limit is enforced for machines (L-14, docs/limits.md). A limit that is set or
// lowered cannot stop launches that rest on the earlier state. Eventually all of them have landed or can no longer
// land. If the pool then has no more claims than the limit, and no machine without a claim, it never exceeds the limit
// again.

// settleFor returns how long launches from before a change may still land: the time that a launch may take by the
// clocks of its sender and of the cloud, and then to be listed. held is how long a cloud that knows no such time may
// delay a launch that was sent in time.
func settleFor(held time.Duration) time.Duration {
	return provider.LaunchFor + held + 2*provider.ClockSkew + provider.ListLag
}

// enforceAgain is how often to check what no watch reports.
const enforceAgain = 20 * time.Second

// generation is a version of a pool's specification.
type generation struct {
	uid     types.UID
	number  int64
	limit   int64
	since   time.Time // when this process first saw it
	inForce bool
}

// settled remembers since when pools are unchanged. It supplements the condition: if the process ends, a wait starts
// again. It is safe for concurrent use.
type settled struct {
	mu    sync.Mutex
	pools map[string]generation
}

func newSettled() *settled { return &settled{pools: map[string]generation{}} }

func (s *settled) forget(pool string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pools, pool)
}

func (s *settled) put(pool string, g generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pools[pool] = g
}

// see returns the pool's generation. It starts as enforced if the previous generation was, and this one change of the
// specification did not lower the limit.
func (s *settled) see(pool *karpenterv1.NodePool, most int64, now time.Time) generation {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.pools[pool.Name]
	said, _ := condition.Get(pool.Status.Conditions, karpenterv1.ConditionTypeHardLimitEnforced)
	inForce := said.Status == "True" && said.ObservedGeneration == pool.Generation
	if known.uid == pool.UID && known.number == pool.Generation {
		known.inForce = known.inForce || inForce
	} else {
		kept := known.uid == pool.UID && known.inForce && known.number+1 == pool.Generation && known.limit <= most
		known = generation{uid: pool.UID, number: pool.Generation, limit: most, since: now, inForce: kept || inForce}
	}
	s.pools[pool.Name] = known
	return known
}

// enforce sets the condition HardLimitEnforced of a pool with a hard limit, and returns when to check again.
func (c *Controller) enforce(ctx context.Context, pool *karpenterv1.NodePool,
	cached []karpenterv1.NodeClaim) (time.Duration, error) {
	const kind = karpenterv1.ConditionTypeHardLimitEnforced
	most, err := translate.HardNodes(pool)
	if err == nil && most == limit.None {
		c.settled.forget(pool.Name)
		condition.Clear(&pool.Status.Conditions, kind)
		return 0, nil
	}
	say := func(value condition.Value) {
		condition.Set(&pool.Status.Conditions, pool.Generation, value, c.config.Now())
	}
	if err != nil {
		say(condition.Unknown(kind, "InvalidLimits", err.Error()))
		return 0, nil
	}
	known := c.settled.see(pool, most, c.config.Now())
	if known.inForce {
		say(inForce(most))
		return 0, nil
	}
	if n := int64(len(cached)); n > most { // the watch reports when there are fewer
		say(tooMany(n, most))
		return 0, nil
	}
	if left := known.since.Add(settleFor(c.config.Held)).Sub(c.config.Now()); left > 0 {
		until := known.since.Add(settleFor(c.config.Held)).UTC().Format(time.RFC3339)
		say(condition.Unknown(kind, "Settling", fmt.Sprintf("launches from before the limit was %d may land until %s",
			most, until)))
		return left, nil
	}
	value, again, err := c.prove(ctx, pool, most)
	if err != nil || value.Type == "" {
		return again, err
	}
	if known.inForce = value.Status == "True"; known.inForce {
		c.settled.put(pool.Name, known)
	}
	say(value)
	return again, nil
}

func inForce(most int64) condition.Value {
	message := fmt.Sprintf("there are never more than %d instances", most)
	return condition.True(karpenterv1.ConditionTypeHardLimitEnforced, "Enforced", message)
}

func tooMany(count, most int64) condition.Value {
	message := fmt.Sprintf("%d NodeClaims, limit %d (hard limit)", count, most)
	return condition.False(karpenterv1.ConditionTypeHardLimitEnforced, "TooMany", message)
}

// prove checks on the API server and at the provider whether the limit is enforced, for the pool as cached. No value
// means that the cache is behind.
func (c *Controller) prove(ctx context.Context, pool *karpenterv1.NodePool,
	most int64) (condition.Value, time.Duration, error) {
	var live karpenterv1.NodePool
	if err := c.config.Live.Get(ctx, client.ObjectKeyFromObject(pool), &live); err != nil {
		return condition.Value{}, 0, client.IgnoreNotFound(err)
	}
	if live.UID != pool.UID || live.Generation != pool.Generation {
		return condition.Value{}, enforceAgain, nil
	}
	var claims karpenterv1.NodeClaimList
	if err := c.config.Live.List(ctx, &claims); err != nil {
		return condition.Value{}, 0, fmt.Errorf("listing NodeClaims: %w", err)
	}
	counts := func(claim *karpenterv1.NodeClaim) bool { return translate.Belongs(claim, pool.Name, string(pool.UID)) }
	n := int64(0)
	for i := range claims.Items {
		if counts(&claims.Items[i]) {
			n++
		}
	}
	if n > most {
		return tooMany(n, most), enforceAgain, nil
	}
	strays := 0
	for cloud := range c.config.Fleet.All() {
		instances, err := cloud.List(ctx)
		if err != nil {
			return condition.Value{}, 0, fmt.Errorf("listing instances of %s: %w", cloud.Name(), err)
		}
		strays += provider.Strays(pool.Name, instances, claims.Items, counts)
	}
	if strays > 0 {
		text := fmt.Sprintf("instances of the pool that none of its NodeClaims has: %d", strays)
		return condition.False(karpenterv1.ConditionTypeHardLimitEnforced, "StrayInstances", text), enforceAgain, nil
	}
	return inForce(most), 0, nil
}
