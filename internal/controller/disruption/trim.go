package disruption

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file removes nodes above a limit (L-40 to L-44) and above the replicas of a static pool (D-12). As in every
// removal, the intent is written, and judged again before it is carried out. No more nodes than the excess may go
// (L-42), even with two controllers at once. So the second judgement uses the API server's own list. A claim is
// deleted only if it is unchanged there, and only while no more claims are leaving than have to: see docs/limits.md.

// trim chooses surplus nodes, and reports them (L-44). It returns whether any intent or mark was written.
func (c *Controller) trim(ctx context.Context, r round) (bool, error) {
	if wrote, err := c.markExcess(ctx, r); wrote || err != nil || r.graced {
		return wrote, err
	}
	p := engine.Trim(r.snapshot, r.budgets)
	c.planned("trim", r, engine.Terms{Now: r.now.Unix(), Budgets: r.budgets}, p)
	outcome, err := c.begin(ctx, r, p)
	c.reportTrim(r, p, outcome)
	return len(outcome.Marked) > 0, err
}

func (c *Controller) reportTrim(r round, p plan.Plan, outcome apply.Outcome) {
	chosen := map[string]int{} // by pool
	for _, remove := range p.Removes {
		if !slices.Contains(outcome.Marked, remove.Claim) {
			continue
		}
		chosen[remove.Pool]++
		c.config.Events.Event(claimRef(remove), event.Normal, string(remove.Reason),
			"The node is removed, its NodePool has too many: "+remove.Why)
	}
	for _, remove := range p.Removes {
		if n := chosen[remove.Pool]; n > 0 && r.pools[remove.Pool] != nil {
			c.config.Events.Event(r.pools[remove.Pool], event.Normal, string(remove.Reason),
				fmt.Sprintf("%s: removing %d", remove.Why, n))
			delete(chosen, remove.Pool)
		}
	}
}

// count reads a pool and its claims from the API server. It keeps the claims, which are deleted only if unchanged.
func (c *Controller) count(ctx context.Context, r round, name string) (engine.Count, error) {
	var count engine.Count
	var object karpenterv1.NodePool
	switch err := c.config.Live.Get(ctx, types.NamespacedName{Name: name}, &object); {
	case client.IgnoreNotFound(err) != nil:
		return count, fmt.Errorf("reading NodePool %s: %w", name, err)
	case err == nil && c.config.Fleet.OwnsPool(&object):
		count.Pool, _ = translate.Pool(resources.NewSpace(), &object) // Invalid says what is wrong with it
		count.HeldBy = translate.PoolPauseOf(&object).By()
	}
	var claims karpenterv1.NodeClaimList
	if err := c.config.Live.List(ctx, &claims); err != nil { // all: a label may have been changed by hand
		return count, fmt.Errorf("listing the NodeClaims of NodePool %s: %w", name, err)
	}
	// Another program's claims with our label can never be surplus here. The plan counts the same way.
	own := slices.DeleteFunc(claims.Items, func(claim karpenterv1.NodeClaim) bool {
		return translate.PoolOf(&claim) != name || !c.config.Fleet.OwnsClaim(&claim)
	})
	for i := range own {
		r.counted[own[i].Name] = &own[i]
		count.Claims = append(count.Claims, countedClaim(&own[i]))
	}
	return count, nil
}

// countedClaim returns what the engine needs to know of a claim. An intent that is no longer true does not count.
func countedClaim(claim *karpenterv1.NodeClaim) engine.CountedClaim {
	counted := engine.CountedClaim{Name: claim.Name, Deleting: claim.DeletionTimestamp != nil,
		Replaces: translate.Replaces(claim)}
	intent, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
	if intent.Status == "True" {
		counted.Marked, counted.Intent = true, plan.DisruptionReason(intent.Reason)
	}
	return counted
}
