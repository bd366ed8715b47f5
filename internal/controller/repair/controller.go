// Package repair repairs nodes that stay unhealthy (D-13, K-49). Such a node has a condition of the provider's repair
// policies for longer than they tolerate. It is off unless the feature gate NodeRepair is on.
//
// A wrong repair is worse than a broken node, so the engine requires much evidence ([engine.Repair]). An event
// NodeRepairBlocked says what prevents a repair. To replace a node, this package deletes its NodeClaim; to reboot it,
// it sets a condition on the NodeClaim. The controllers of nodes and claims do the rest.
//
// decide.go prepares the engine's input and is pure; reboot.go records reboots. Start with [Controller.Reconcile].
package repair

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/kube/removal"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

const (
	// blockedAgainAfter is when an unhealthy node that stays is checked again: budgets may open with time.
	blockedAgainAfter = 30 * time.Second
	// roundAfter is when the next node of a pool is repaired: by then the snapshot shows the result of the last
	// repair.
	roundAfter = 10 * time.Second
	// notReadyAfter is how soon to ask again while the cache is incomplete.
	notReadyAfter = time.Second
)

// Picture provides snapshots.
type Picture interface {
	Snapshot() *cluster.Snapshot
}

// Applier marks nodes and launches replacements.
type Applier interface {
	Apply(ctx context.Context, p plan.Plan) (apply.Outcome, error)
}

// Config configures the controller; all fields are required.
type Config struct {
	Client  client.Client // reads from a cache
	Live    client.Reader // reads from the API server; used only before a repair
	Picture Picture
	Applier Applier
	Fleet   *fleet.Fleet
	// Paused returns why disruption under budgets is paused, "" if it is not (D-14).
	Paused func(ctx context.Context) (string, error)
	// OnlyOwnVeto repairs nodes in spite of karpenter.sh/do-not-disrupt: only karpenter.sh/do-not-repair prevents
	// repair (K-49).
	OnlyOwnVeto bool
	Events      event.Recorder
	Removed     removal.Told // for the history (U-32)
	Metrics     metrics.Claims
	Decisions   metrics.Disruption // counts repairs
	Ready       func() bool        // the cache holds everything that exists
	Now         func() time.Time
	Log         logr.Logger
}

// Controller is the singleton that repairs unhealthy nodes.
type Controller struct {
	config Config
}

// New returns the controller.
func New(config Config) *Controller { return &Controller{config: config} }

// Reconcile checks all nodes. It ignores the request.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !c.config.Ready() {
		return reconcile.Result{RequeueAfter: notReadyAfter}, nil
	}
	s, err := c.gather(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	v := decide(s)
	if len(v.remove)+len(v.reboot) > 0 {
		if s.paused, err = c.config.Paused(ctx); err != nil {
			return reconcile.Result{}, err
		}
		v = decide(s)
	}
	var failures []error
	for _, do := range []struct {
		list []treated
		step func(context.Context, treated) error
	}{{v.remove, func(ctx context.Context, x treated) error { return c.repair(ctx, s, x) }}, {v.reboot, c.reboot},
		{v.withdraw, c.withdraw}, {v.bound, c.bound}} {
		for _, x := range do.list {
			failures = append(failures, do.step(ctx, x))
		}
	}
	for _, b := range v.blocked {
		c.tellBlocked(s, b)
	}
	return reconcile.Result{RequeueAfter: v.again(s.now)}, errors.Join(failures...)
}

// again returns when to check the nodes again if no event comes; 0 for never.
func (v verdict) again(now time.Time) (again time.Duration) {
	if !v.next.IsZero() {
		again = max(time.Second, v.next.Sub(now))
	}
	if len(v.blocked) > 0 && (again == 0 || again > blockedAgainAfter) {
		again = blockedAgainAfter
	}
	if v.later && (again == 0 || again > roundAfter) {
		again = roundAfter
	}
	return again
}

// gather collects the situation without the pause switch, which is read only if something would be done.
func (c *Controller) gather(ctx context.Context) (situation, error) {
	s := situation{now: c.config.Now(), budgets: map[string][]engine.Budget{}, uids: map[string]types.UID{},
		onlyOwnVeto: c.config.OnlyOwnVeto}
	var nodes corev1.NodeList
	var claims karpenterv1.NodeClaimList
	var pools karpenterv1.NodePoolList
	if err := errors.Join(
		c.config.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy),
		c.config.Client.List(ctx, &claims, client.UnsafeDisableDeepCopy),
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
	policies, all := c.policies()
	counts := map[string]int{} // initialized nodes by pool, of which budgets are shares
	for i := range nodes.Items {
		node := &nodes.Items[i]
		claim := byMachine[node.Spec.ProviderID]
		if claim != nil && !c.config.Fleet.OwnsNode(node, claim, nil) {
			claim = nil
		}
		m := c.memberOf(node, claim, policies, all)
		if claim != nil && condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeInitialized) {
			counts[m.pool]++
		}
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
		s.budgets[pool.Name], s.uids[pool.Name] = budgets, pool.UID
	}
	return s, nil
}

// policies returns each provider's policies by its node class, and all policies together. The latter serve for nodes
// without a claim, which are only counted.
func (c *Controller) policies() (of map[schema.GroupKind][]engine.RepairPolicy, all []engine.RepairPolicy) {
	of = map[schema.GroupKind][]engine.RepairPolicy{}
	for p := range c.config.Fleet.All() {
		of[p.NodeClass()] = policiesOf(p.RepairPolicies())
		all = append(all, of[p.NodeClass()]...)
	}
	return of, all
}

// memberOf returns a node with its claim; claim is nil for another program's node. policies has each provider's
// policies, all has all of them.
func (c *Controller) memberOf(node *corev1.Node, claim *karpenterv1.NodeClaim,
	policies map[schema.GroupKind][]engine.RepairPolicy, all []engine.RepairPolicy) member {
	if claim == nil {
		return member{node: node, policies: all}
	}
	cloud := c.config.Fleet.For(claim.Spec.NodeClassRef)
	return member{node: node, claim: claim, pool: translate.PoolOf(claim), policies: policies[cloud.NodeClass()],
		reboots: provider.CanReboot(cloud)}
}

// still reports whether the repair is also due by the API server's current state. The node may have just recovered,
// and its claim may be marked or deleted by now.
func (c *Controller) still(ctx context.Context, x treated) (bool, error) {
	var node corev1.Node
	if err := c.config.Live.Get(ctx, client.ObjectKeyFromObject(x.node), &node); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	var claim karpenterv1.NodeClaim
	if err := c.config.Live.Get(ctx, client.ObjectKeyFromObject(x.claim), &claim); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if node.UID != x.node.UID || claim.UID != x.claim.UID {
		return false, nil
	}
	live := x.member
	live.node, live.claim = &node, &claim
	now := c.config.Now()
	p := live.patient(now, !c.config.OnlyOwnVeto)
	found := engine.Diagnose(&p, now.Unix())
	return found != nil && found.Reboot == x.finding.Reboot && !p.Node.Deleting && !p.Node.Disrupting, nil
}

// repair removes one node, unless the API server's state says otherwise. If possible, its replacement comes first
// (K-49).
func (c *Controller) repair(ctx context.Context, s situation, x treated) error {
	if still, err := c.still(ctx, x); err != nil || !still {
		return err
	}
	why, err := c.replaceFirst(ctx, s, x)
	if why == "" || err != nil {
		return err
	}
	if err := removal.Delete(ctx, c.config.Client, x.claim); err != nil {
		return fmt.Errorf("repairing node %s: %w", x.node.Name, err)
	}
	c.count(x, metrics.Delete)
	c.config.Metrics.Disrupt(x.claim, string(plan.Unhealthy), "")
	c.tell(x, event.DisruptionTerminating, "The node is removed: %s, %s since %s; nothing replaces it before: %s",
		plan.Unhealthy, says(x), sinceOf(x), why)
	c.config.Removed.Tell(x.claim, string(plan.Unhealthy), says(x))
	c.log(x, "", why)
	return c.bound(ctx, x)
}

// says returns the condition of an unhealthy node, with its reason if the policy asks for one.
func says(x treated) string {
	if x.finding.Policy.Reason == nil {
		return x.finding.String()
	}
	return x.finding.String() + " (" + x.finding.Reason + ")"
}

// sinceOf returns since when the node is unhealthy.
func sinceOf(x treated) string { return time.Unix(x.finding.Since, 0).UTC().Format(time.RFC3339) }

// bound limits the drain of an unhealthy node as the provider's policies say.
func (c *Controller) bound(ctx context.Context, x treated) error {
	if !x.finding.Bounded {
		return nil
	}
	now := c.config.Now()
	return removal.Bound(ctx, c.config.Client, x.claim, now.Add(time.Duration(x.finding.Drain)*time.Second), now)
}

// tellBlocked reports why an unhealthy node stays, on the node, its claim and its pool.
func (c *Controller) tellBlocked(s situation, x treated) {
	text := fmt.Sprintf("The unhealthy node %s stays (%s): %s", x.node.Name, says(x), x.why)
	about := []client.Object{nodeRef(x.member), x.claim}
	if x.pool != "" {
		about = append(about, &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: x.pool, UID: s.uids[x.pool]}})
	}
	for _, object := range about {
		c.config.Events.Event(object, event.Warning, event.NodeRepairBlocked, text)
	}
}

// nodeRef returns as much of a node as an event needs.
func nodeRef(m member) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.node.Name, UID: m.node.UID}}
}
