package sim

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// unkept finds a node that could go, by what the engine says of the picture of a process at rest: it would go now, or
// others go first. But nothing has gone for an hour (D-04, U-04).
func (w *World) unkept() string {
	for _, r := range w.replicas {
		if r.dead || !r.started {
			continue
		}
		s, now := r.store.Snapshot(), w.clock()
		terms := engine.Terms{Now: now.Unix(), Budgets: map[string][]engine.Budget{},
			MinSavingPercent: engine.DefaultMinSavingPercent}
		w.server.All(&karpenterv1.NodePool{}, func(o client.Object) {
			pool := o.(*karpenterv1.NodePool)
			terms.Budgets[pool.Name], _ = translate.ActiveBudgets(pool, now, engine.Sizes(s)[pool.Name])
		})
		for _, node := range s.Nodes {
			found := engine.Why(s, terms, node)
			if found.Goes != "" || found.Cause == cause.OthersFirst {
				return fmt.Sprintf("node %s has stayed for an hour, and nothing keeps it: %s", node.Name, found.Text)
			}
		}
	}
	return ""
}
