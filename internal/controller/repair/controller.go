// Package repair replaces nodes that stay unhealthy (D-13): those with a condition that the provider's repair policies
// name, for longer than they tolerate. It is off unless the feature gate NodeRepair is on.
//
// A wrong guess is worse than a broken node, so much has to agree: the budgets of the pool (reason Unhealthy) and the pause
// switch; at most 20 % of the pool's nodes are unhealthy, for claims without a pool of the cluster's; a healthy node of the
// same zone stays; no do-not-disrupt on the node or its claim. What speaks against a repair is an event NodeRepairBlocked.
//
// decide.go decides, and is pure. Start with [Controller.Reconcile].
package repair

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/kube/removal"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

const (
	// blockedAgainAfter is when an unhealthy node that stays is looked at again: budgets open by the clock, too.
	blockedAgainAfter = 30 * time.Second
	// notReadyAfter is how soon to ask again while the picture of the cluster is not complete yet.
	notReadyAfter = time.Second
)

// Config is what the controller works with; all fields are required.
type Config struct {
	Client client.Client // reads from a cache
	Live   client.Reader // reads from the API server; used only before a node is removed
	Fleet  *fleet.Fleet
	// Paused says why nothing may be disrupted that budgets bound, "" when it may (D-14).
	Paused func(ctx context.Context) (string, error)
	// OnlyOwnVeto repairs nodes with karpenter.sh/do-not-disrupt: karpenter.sh/do-not-repair alone keeps repair away (K-49).
	OnlyOwnVeto bool
	Events      event.Recorder
	Removed     removal.Told // for the history (U-32)
	Metrics     metrics.Claims
	Ready       func() bool // the cache holds everything that exists
	Now         func() time.Time
	Log         logr.Logger
}

// Controller is the singleton that replaces unhealthy nodes.
type Controller struct {
	config Config
}

// New returns the controller.
func New(config Config) *Controller { return &Controller{config: config} }

// Reconcile looks at all nodes. The request means nothing: there is one for everything.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !c.config.Ready() {
		return reconcile.Result{RequeueAfter: notReadyAfter}, nil
	}
	s, err := c.gather(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	v := decide(s)
	if len(v.remove) > 0 {
		if s.paused, err = c.config.Paused(ctx); err != nil {
			return reconcile.Result{}, err
		}
		v = decide(s)
	}
	var failures []error
	for _, m := range v.remove {
		failures = append(failures, c.repair(ctx, m))
	}
	for _, m := range v.bound {
		failures = append(failures, c.bound(ctx, m))
	}
	for _, b := range v.blocked {
		c.tellBlocked(b)
	}
	var again time.Duration
	if !v.next.IsZero() {
		again = max(time.Second, v.next.Sub(s.now))
	}
	if len(v.blocked) > 0 && (again == 0 || again > blockedAgainAfter) {
		again = blockedAgainAfter
	}
	return reconcile.Result{RequeueAfter: again}, errors.Join(failures...)
}

// gather takes the picture, but for the pause switch: that is read only where something would be done.
func (c *Controller) gather(ctx context.Context) (situation, error) {
	s := situation{now: c.config.Now(), budgets: map[string][]engine.Budget{}, onlyOwnVeto: c.config.OnlyOwnVeto}
	var nodes corev1.NodeList
	var claims karpenterv1.NodeClaimList
	var pools karpenterv1.NodePoolList
	if err := errors.Join(
		c.config.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy),
		c.config.Client.List(ctx, &claims), // copies: patches write what they are answered into them
		c.config.Client.List(ctx, &pools, client.UnsafeDisableDeepCopy),
	); err != nil {
		return s, fmt.Errorf("listing nodes, NodeClaims and NodePools: %w", err)
	}
	byMachine := map[string]*karpenterv1.NodeClaim{}
	for i := range claims.Items {
		if claim := &claims.Items[i]; c.config.Fleet.OwnsClaim(claim) {
			byMachine[claim.Status.ProviderID] = claim
		}
	}
	counts := map[string]int{} // initialized nodes by pool, of which budgets are shares
	for i := range nodes.Items {
		m := member{node: &nodes.Items[i]}
		if claim := byMachine[m.node.Spec.ProviderID]; claim != nil && c.config.Fleet.OwnsNode(m.node, claim, nil) {
			m.claim = claim
			m.pool = translate.PoolOf(m.claim)
			if condition.IsTrue(m.claim.Status.Conditions, karpenterv1.ConditionTypeInitialized) {
				counts[m.pool]++
			}
		}
		m.sick = sicknessOf(m.node, c.policies(m.claim))
		s.members = append(s.members, m)
	}
	for i := range pools.Items {
		pool := &pools.Items[i]
		if !c.config.Fleet.OwnsPool(pool) {
			s.leaveOut(pool.Name)
			continue
		}
		budgets, err := translate.ActiveBudgets(pool, s.now, counts[pool.Name])
		if err != nil { // counts as a budget of 0; the disruption controller says so
			c.config.Log.V(1).Info("a disruption budget cannot be read", "pool", pool.Name, "reason", err.Error())
		}
		s.budgets[pool.Name] = budgets
	}
	return s, nil
}

// policies are those of the claim's provider; of a node without a claim all that there are: it is only counted.
func (c *Controller) policies(claim *karpenterv1.NodeClaim) []provider.RepairPolicy {
	if claim != nil {
		return c.config.Fleet.For(claim.Spec.NodeClassRef).RepairPolicies()
	}
	var all []provider.RepairPolicy
	for p := range c.config.Fleet.All() {
		all = append(all, p.RepairPolicies()...)
	}
	return all
}

// repair removes one node, unless the API server knows better: it may have recovered a moment ago.
func (c *Controller) repair(ctx context.Context, m member) error {
	var node corev1.Node
	if err := c.config.Live.Get(ctx, client.ObjectKeyFromObject(m.node), &node); err != nil {
		return client.IgnoreNotFound(err)
	}
	sick := sicknessOf(&node, c.policies(m.claim))
	if node.UID != m.node.UID || sick == nil || c.config.Now().Before(sick.due()) {
		return nil
	}
	if err := removal.Delete(ctx, c.config.Client, m.claim); err != nil {
		return fmt.Errorf("repairing node %s: %w", node.Name, err)
	}
	capacityType := m.claim.Labels[karpenterv1.CapacityTypeLabelKey]
	c.config.Metrics.Unhealthy.WithLabelValues(metrics.Snake(string(sick.policy.ConditionType)), m.pool, capacityType,
		m.claim.Status.ImageID, metrics.TerminationMode(m.claim)).Inc()
	c.config.Metrics.Disrupt(m.claim, string(plan.Unhealthy), "")
	text := fmt.Sprintf("The node is removed: %s, %s since %s", plan.Unhealthy, sick, sick.since.UTC().Format(time.RFC3339))
	c.config.Events.Event(m.claim, event.Normal, event.DisruptionTerminating, text)
	c.config.Events.Event(nodeRef(m), event.Normal, event.DisruptionTerminating, text)
	c.config.Removed.Tell(m.claim, string(plan.Unhealthy), sick.String())
	c.config.Log.Info("repairing", "claim", m.claim.Name, "node", node.Name, "pool", m.pool,
		"reason", string(plan.Unhealthy), "condition", sick.String(), "since", sick.since)
	return c.bound(ctx, m)
}

// bound makes the drain of an unhealthy node end as the provider's policy says.
func (c *Controller) bound(ctx context.Context, m member) error {
	grace := m.sick.policy.TerminationGracePeriod
	if grace == nil {
		return nil
	}
	return removal.Bound(ctx, c.config.Client, m.claim, c.config.Now().Add(*grace), c.config.Now())
}

// tellBlocked says why an unhealthy node stays, to whoever looks at the node, its claim or its pool.
func (c *Controller) tellBlocked(b blocked) {
	text := fmt.Sprintf("The unhealthy node %s stays (%s): %s", b.member.node.Name, b.member.sick, b.why)
	about := []client.Object{nodeRef(b.member), b.member.claim}
	if b.member.pool != "" {
		about = append(about, &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: b.member.pool}})
	}
	for _, object := range about {
		c.config.Events.Event(object, event.Warning, event.NodeRepairBlocked, text)
	}
}

// nodeRef is as much of a node as an event needs.
func nodeRef(m member) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.node.Name, UID: m.node.UID}}
}
