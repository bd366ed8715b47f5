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

// This file looks after claims that were launched to replace others. Once those are gone, they are claims like any other.
// When those stay after all, because another replacement failed or the pods found no place, what was launched for them goes
// again unless something needs it by now (D-10).

// release looks at each replacement that no intent waits for, and reports whether it wrote anything.
func (c *Controller) release(ctx context.Context, r round) (bool, error) {
	leaving := map[string]bool{} // claims
	for _, node := range r.snapshot.Nodes {
		leaving[node.Claim] = node.Deleting || node.Disrupting
	}
	wrote := false
	var failures []error
	for _, node := range r.snapshot.Nodes {
		if len(node.Replaces) == 0 || node.Deleting || node.Disrupting ||
			slices.ContainsFunc(node.Replaces, func(claim string) bool { return leaving[claim] }) {
			continue
		}
		wrote = true
		if err := c.releaseOne(ctx, r, node); err != nil {
			failures = append(failures, fmt.Errorf("releasing node %s: %w", node.ID(), err))
		}
	}
	return wrote, errors.Join(failures...)
}

func (c *Controller) releaseOne(ctx context.Context, r round, node *cluster.Node) error {
	remove := plan.Remove{Claim: node.Claim, ClaimUID: node.ClaimUID, Node: node.Name, Pool: node.Pool, Price: node.Price, Reason: plan.ReplacementAbandoned}
	stays := 0
	for _, name := range node.Replaces {
		var claim karpenterv1.NodeClaim
		key := types.NamespacedName{Name: name}
		// What replaces a claim is younger than it: where the cache shows the one and not the other, the other is gone. An intent
		// that was written just before the replacement was launched it may not show yet.
		err := c.config.Client.Get(ctx, key, &claim)
		if err == nil && !leaves(&claim) {
			claim = karpenterv1.NodeClaim{}
			err = c.config.Live.Get(ctx, key, &claim)
		}
		switch {
		case client.IgnoreNotFound(err) != nil:
			return err
		case err != nil:
		case leaves(&claim):
			return nil
		default:
			stays++
		}
	}
	if stays < len(node.Replaces) || inUse(r, node) || engine.Forbidden(node) != "" {
		return c.config.Applier.Release(ctx, remove)
	}
	_, err := c.config.Applier.Mark(ctx, remove)
	return err
}

// leaves reports whether a claim is on its way out, or marked for it.
func leaves(claim *karpenterv1.NodeClaim) bool {
	return claim.DeletionTimestamp != nil || condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
}

// objectionToAbandon says why a replacement that is not needed any more stays all the same, "" when it goes.
func objectionToAbandon(r round, node *cluster.Node) string {
	switch {
	case inUse(r, node):
		return "pods run on it, or are to"
	case engine.Forbidden(node) != "":
		return engine.Forbidden(node)
	}
	return ""
}

// inUse reports whether a pod runs on the node that would have to move, or was promised a place there.
func inUse(r round, node *cluster.Node) bool {
	return slices.ContainsFunc(node.Pods, func(p *cluster.Pod) bool { return !p.Fixed }) ||
		slices.ContainsFunc(r.snapshot.Pending, promisedTo(node))
}

func promisedTo(node *cluster.Node) func(*cluster.Pod) bool {
	return func(pod *cluster.Pod) bool {
		return pod.Promised != "" && (pod.Promised == node.Name || pod.Promised == node.Claim)
	}
}
