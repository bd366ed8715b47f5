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

// This file replaces an unhealthy node before it is removed (K-49). It marks the node and launches its replacement.
// Then the disruption controller continues, as with any replaced node, and asks Recovered whether the node still has
// to go.

// replaceFirst begins the replacement of a node. why says why no replacement can come first, so the node goes at once.
// It is "" if one can, or if the claim has changed.
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
	// a node that is marked but not replaced goes in the next step
	if !slices.Contains(outcome.Marked, x.claim.Name) || err != nil {
		return "", err
	}
	c.count(x, metrics.Replace)
	var launches []string
	for _, l := range p.Launches {
		launches = append(launches, l.Pool+"/"+l.Cheapest.Type)
	}
	c.tell(x, event.DisruptionLaunching, "The node is to go: %s, %s since %s, once %s is there", plan.Unhealthy,
		says(x), sinceOf(x), strings.Join(launches, ", "))
	c.log(x, strings.Join(launches, ", "), "")
	return "", nil
}

// count counts a node that is removed or replaced.
func (c *Controller) count(x treated, decision string) {
	c.config.Metrics.Unhealthy.WithLabelValues(metrics.Snake(x.finding.Policy.Condition), x.pool,
		x.claim.Labels[karpenterv1.CapacityTypeLabelKey], x.claim.Status.ImageID,
		metrics.TerminationMode(x.claim)).Inc()
	labels := []string{decision, metrics.Reason(string(plan.Unhealthy)), ""}
	c.config.Decisions.Decisions.WithLabelValues(labels...).Inc()
	c.config.Decisions.PoolDecisions.WithLabelValues(append([]string{x.pool}, labels...)...).Inc()
}

// log logs the repair of a node: what replaces it first, or why nothing does.
func (c *Controller) log(x treated, replacedBy, why string) {
	c.config.Log.Info("repairing", "claim", x.claim.Name, "node", x.node.Name, "pool", x.pool, "reason",
		string(plan.Unhealthy),
		"condition", says(x), "since", sinceOf(x), "replacedBy", replacedBy, "nothingBefore", why)
}

// tell reports an event on a node and its claim.
func (c *Controller) tell(x treated, reason, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.config.Events.Event(x.claim, event.Normal, reason, text)
	c.config.Events.Event(nodeRef(x.member), event.Normal, reason, text)
}

// Recovered returns why a node marked as unhealthy need not be repaired any more: it has recovered, or somebody keeps
// it. It returns "" if repair is still due, or if the node or claim is gone.
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
