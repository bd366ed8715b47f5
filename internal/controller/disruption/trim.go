package disruption

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file removes nodes above a limit (L-40 to L-44) and above the replicas of a static pool (D-12). It goes the way of
// every removal: the intent is written, and judged again before it is carried out. Because no node more than the excess
// may go (L-42), also with two controllers at once, that second judgement is made on the API server's own list, and a claim
// is deleted only as it stands there, and only while not more claims are leaving than have to: see docs/limits.md.

// trimmed reports whether a reason is one of this file.
func trimmed(reason plan.DisruptionReason) bool {
	return reason == plan.NodeLimitExceeded || reason == plan.ReplicasExceeded
}

// trim chooses nodes that are too many, and tells about it (L-44). It reports whether any intent was written.
func (c *Controller) trim(ctx context.Context, r round) (bool, error) {
	if wrote, err := c.markExcess(ctx, r); wrote || err != nil || r.graced {
		return wrote, err
	}
	p := engine.Trim(r.snapshot, r.budgets)
	c.planned("trim", r, engine.Terms{Now: r.now.Unix(), Budgets: r.budgets}, p)
	outcome, err := c.config.Applier.Apply(ctx, p)
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
		c.config.Events.Event(claimRef(remove), event.Normal, string(remove.Reason), "The node is removed, its NodePool has too many: "+remove.Why)
	}
	for _, remove := range p.Removes {
		if n := chosen[remove.Pool]; n > 0 && r.pools[remove.Pool] != nil {
			c.config.Events.Event(r.pools[remove.Pool], event.Normal, string(remove.Reason), fmt.Sprintf("%s: removing %d", remove.Why, n))
			delete(chosen, remove.Pool)
		}
	}
}

// trimming is what the API server says about one pool in this round.
type trimming struct {
	claims map[string]*karpenterv1.NodeClaim
	gentle bool              // budgets bound what goes, see excess.go
	stays  map[string]string // claims whose intent is to be taken back, and why
	wait   bool              // more are leaving than have to: nothing is deleted before the surplus is taken back
}

// settleTrim decides about one intent of this file.
func (c *Controller) settleTrim(ctx context.Context, r round, node *cluster.Node, remove plan.Remove, used map[string]int) error {
	t := r.trimmings[node.Pool]
	if t == nil {
		var err error
		if t, err = c.judgeTrim(ctx, r, node.Pool); err != nil {
			return err
		}
		r.trimmings[node.Pool] = t
	}
	claim := t.claims[node.Claim]
	if claim == nil || claim.DeletionTimestamp != nil {
		return nil // the watch will show it
	}
	why := t.stays[node.Claim]
	if intent, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason); intent.Status != "True" {
		why = "the intent was taken back, which the watch has not shown yet"
	}
	if why == "" && t.gentle {
		why = objectionToGentle(r, node, used)
	}
	if why != "" {
		return c.undo(ctx, remove, why)
	}
	if t.wait {
		return nil
	}
	if tainted, err := c.tainted(ctx, node.Name); !tainted {
		if err == nil {
			_, err = c.config.Applier.Mark(ctx, remove)
		}
		return err
	}
	deleted, err := c.config.Applier.DeleteUnchanged(ctx, remove, claim.ResourceVersion)
	if !deleted {
		return err
	}
	c.reportRemoval(r, node, remove)
	return nil
}

// objectionToGentle says why a node stays that goes within budgets only, "" when it may go. used counts it already.
func objectionToGentle(r round, node *cluster.Node, used map[string]int) string {
	switch {
	case r.paused != "":
		return r.paused
	case engine.Forbidden(node) != "":
		return engine.Forbidden(node)
	case used[node.Pool] > engine.Allowed(r.budgets[node.Pool], engine.TrimBudget(node)):
		return "the disruption budget of its NodePool does not allow it any more"
	}
	return ""
}

// judgeTrim looks at a pool as the API server has it: how many of its nodes are too many by now, how many leave, and which
// intents are a surplus, because the limit was raised or another node left meanwhile.
func (c *Controller) judgeTrim(ctx context.Context, r round, name string) (*trimming, error) {
	t := &trimming{claims: map[string]*karpenterv1.NodeClaim{}, stays: map[string]string{}}
	var object karpenterv1.NodePool
	found := true
	if err := c.config.Live.Get(ctx, types.NamespacedName{Name: name}, &object); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading NodePool %s: %w", name, err)
		}
		found = false
	}
	var claims karpenterv1.NodeClaimList
	if err := c.config.Live.List(ctx, &claims); err != nil { // all: a label may have been changed by hand
		return nil, fmt.Errorf("listing the NodeClaims of NodePool %s: %w", name, err)
	}
	found = found && c.config.Fleet.OwnsPool(&object)
	// What another program has under our label can never be too many here: as the plan counted.
	own := slices.DeleteFunc(claims.Items, func(claim karpenterv1.NodeClaim) bool {
		return translate.PoolOf(&claim) != name || !c.config.Fleet.OwnsClaim(&claim)
	})
	marked, leaving := t.read(own)
	pool, invalid := translate.Pool(resources.NewSpace(), &object)
	t.gentle = pool.Gentle
	surplus, why := int64(len(marked)), "its NodePool is gone, or another program's"
	switch {
	case dormant(r, name):
		why = "the feature gate StaticCapacity is off"
	case found && pool.Held:
		why = "its NodePool is paused: " + translate.PoolPauseOf(&object).By()
	case found && invalid != nil:
		why = "the limits of its NodePool cannot be understood"
	case found:
		surplus = -pool.Limits.Excess(pool.Kept(), int64(len(own)), leaving)
		why = "its NodePool does not have too many any more"
	}
	t.wait = surplus > 0
	slices.SortFunc(marked, byTrimOrder(r.snapshot))
	for _, claim := range marked[max(0, len(marked)-int(max(0, surplus))):] {
		t.stays[claim.Name] = why
	}
	return t, nil
}

// dormant reports whether nobody acts on the replicas of the pool.
func dormant(r round, name string) bool {
	pool := r.snapshot.Pool(name)
	return pool != nil && pool.Dormant
}

// read notes the claims, and returns those that carry an intent of this file, and the number of all that leave.
func (t *trimming) read(claims []karpenterv1.NodeClaim) (marked []*karpenterv1.NodeClaim, leaving int64) {
	replaced := map[string]bool{}
	for i := range claims {
		claim := &claims[i]
		t.claims[claim.Name] = claim
		if claim.DeletionTimestamp == nil {
			for _, name := range translate.Replaces(claim) {
				replaced[name] = true
			}
		}
	}
	for i := range claims {
		claim := &claims[i]
		intent, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
		chosen := intent.Status == "True"
		if chosen || replaced[claim.Name] || claim.DeletionTimestamp != nil {
			leaving++
		}
		if chosen && trimmed(plan.DisruptionReason(intent.Reason)) && claim.DeletionTimestamp == nil {
			marked = append(marked, claim)
		}
	}
	return marked, leaving
}

// byTrimOrder orders claims as they are chosen to go; those that the snapshot does not have come last.
func byTrimOrder(s *cluster.Snapshot) func(a, b *karpenterv1.NodeClaim) int {
	nodes := map[string]*cluster.Node{}
	for _, node := range s.Nodes {
		if node.Claim != "" {
			nodes[node.Claim] = node
		}
	}
	return func(a, b *karpenterv1.NodeClaim) int {
		x, y := nodes[a.Name], nodes[b.Name]
		switch {
		case x != nil && y != nil:
			return engine.CompareTrim(x, y)
		case x != nil:
			return -1
		case y != nil:
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	}
}
