package repair

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// This file has what replaces an unhealthy node come before it goes (K-49): it marks the node and launches. From then on the
// controller of disruption goes on with it, as with any node that is replaced, and asks Recovered whether it still has to go.

// replaceFirst begins the replacement of a node. why says why nothing comes before it, so that it goes at once; "" when something
// does, or when the claim is not any more what was seen.
func (c *Controller) replaceFirst(ctx context.Context, s situation, x treated) (why string, err error) {
	terms := engine.Terms{Now: s.now.Unix(), Budgets: s.budgets}
	p, why := engine.ReplaceFirst(c.config.Picture.Snapshot(), terms, x.claim.Name)
	if why != "" {
		return why, nil
	}
	for i := range p.Removes {
		p.Removes[i].Why = says(x)
	}
	outcome, err := c.config.Applier.Apply(ctx, p)
	if !slices.Contains(outcome.Marked, x.claim.Name) || err != nil { // what is marked, and not replaced, goes in the next step
		return "", err
	}
	c.count(x, metrics.Replace)
	var launches []string
	for _, l := range p.Launches {
		launches = append(launches, l.Pool+"/"+l.Cheapest.Type)
	}
	c.tell(x, event.DisruptionLaunching, "The node is to go: %s, %s since %s, once %s is there", plan.Unhealthy, says(x), sinceOf(x),
		strings.Join(launches, ", "))
	c.log(x, strings.Join(launches, ", "), "")
	return "", nil
}

// count counts a node that is removed, or replaced.
func (c *Controller) count(x treated, decision string) {
	c.config.Metrics.Unhealthy.WithLabelValues(metrics.Snake(x.finding.Policy.Condition), x.pool,
		x.claim.Labels[karpenterv1.CapacityTypeLabelKey], x.claim.Status.ImageID, metrics.TerminationMode(x.claim)).Inc()
	labels := []string{decision, metrics.Reason(string(plan.Unhealthy)), ""}
	c.config.Decisions.Decisions.WithLabelValues(labels...).Inc()
	c.config.Decisions.PoolDecisions.WithLabelValues(append([]string{x.pool}, labels...)...).Inc()
}

// log notes a node that is repaired: what replaces it before it goes, or why nothing does.
func (c *Controller) log(x treated, replacedBy, why string) {
	c.config.Log.Info("repairing", "claim", x.claim.Name, "node", x.node.Name, "pool", x.pool, "reason", string(plan.Unhealthy),
		"condition", says(x), "since", sinceOf(x), "replacedBy", replacedBy, "nothingBefore", why)
}

// tell tells of a node, and of its claim.
func (c *Controller) tell(x treated, reason, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.config.Events.Event(x.claim, event.Normal, reason, text)
	c.config.Events.Event(nodeRef(x.member), event.Normal, reason, text)
}

// Recovered says why a node that is marked as unhealthy is not to be repaired any more: it has recovered, or somebody has come to
// keep it; "" when it still is. Of a node or a claim that is gone nobody says so.
func (c *Controller) Recovered(ctx context.Context, name string) (string, error) {
	var claim karpenterv1.NodeClaim
	if err := c.config.Client.Get(ctx, types.NamespacedName{Name: name}, &claim); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	var node corev1.Node
	if err := c.config.Client.Get(ctx, types.NamespacedName{Name: claim.Status.NodeName}, &node); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if !c.config.Fleet.OwnsClaim(&claim) || node.Spec.ProviderID != claim.Status.ProviderID ||
		!c.config.Fleet.OwnsNode(&node, &claim, nil) {
		return "", nil
	}
	policies, all := c.policies()
	now := c.config.Now()
	p := c.memberOf(&node, &claim, policies, all).patient(now, !c.config.OnlyOwnVeto)
	return engine.Recovered(&p, now.Unix()), nil
}
