package disruption

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// This file handles claims that were launched to replace others. Once those are gone, the replacements are claims like
// any other. The old ones may stay after all, because another replacement failed or pods found no place. Then their
// replacement is removed, unless something needs it by now (D-10).

// release checks each replacement whose replaced claims are not leaving, and reports whether there was any.
func (c *Controller) release(ctx context.Context, r round) (bool, error) {
	leaving := map[string]bool{} // claims
	for _, node := range r.snapshot.Nodes {
		leaving[node.Claim] = node.Leaves()
	}
	var nodes []*cluster.Node
	for _, node := range r.snapshot.Nodes {
		if len(node.Replaces) == 0 || node.Leaves() ||
			slices.ContainsFunc(node.Replaces, func(claim string) bool { return leaving[claim] }) {
			continue
		}
		nodes = append(nodes, node)
	}
	failures := make([]error, len(nodes))
	c.config.Each(len(nodes), func(i int) {
		if err := c.releaseOne(ctx, r, nodes[i]); err != nil {
			failures[i] = fmt.Errorf("releasing node %s: %w", nodes[i].ID(), err)
		}
	})
	return len(nodes) > 0, errors.Join(failures...)
}

func (c *Controller) releaseOne(ctx context.Context, r round, node *cluster.Node) error {
	asked := engine.Intent{Node: node, Reason: plan.ReplacementAbandoned}
	stays, gone := 0, []string(nil)
	for _, name := range node.Replaces {
		var claim karpenterv1.NodeClaim
		key := types.NamespacedName{Name: name}
		// A replacement is younger than the claim it replaces. So if the cache shows it but not the old claim, the old
		// claim is gone. But the cache may lack an intent that was written just before the launch.
		err := c.config.Client.Get(ctx, key, &claim)
		if err == nil && !leaves(&claim) {
			claim = karpenterv1.NodeClaim{}
			err = c.config.Live.Get(ctx, key, &claim)
		}
		switch {
		case client.IgnoreNotFound(err) != nil:
			return err
		case err != nil:
			gone = append(gone, name)
		case leaves(&claim):
			return nil
		default:
			stays++
		}
	}
	verdict := engine.Judge(r.snapshot, c.judgedBy(r), engine.Docket{Intents: []engine.Intent{asked}})[0]
	if stays < len(node.Replaces) || verdict.Act == engine.Keep {
		return c.config.Applier.Release(ctx, removeBy(asked), gone)
	}
	_, err := c.config.Applier.Mark(ctx, removeBy(asked))
	return err
}

// leaves reports whether a claim is being deleted or marked for removal.
func leaves(claim *karpenterv1.NodeClaim) bool {
	return claim.DeletionTimestamp != nil ||
		condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
}
