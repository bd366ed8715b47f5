package sim

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/app/joiner"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	engine "github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// Checks judge a replica by what it could know: those of graceful disruption count what its caches showed when the
// step began, and what it has done itself.

// known is what a replica has learnt, and when.
type known struct {
	bound    map[types.UID]time.Duration // pods on nodes
	claims   map[types.UID]time.Duration
	deleting map[types.UID]time.Duration // claims
	guarded  map[types.UID]time.Duration // pods with do-not-disrupt
	guarding guarding
}

func newKnown() known {
	return known{bound: map[types.UID]time.Duration{}, claims: map[types.UID]time.Duration{},
		deleting: map[types.UID]time.Duration{}, guarded: map[types.UID]time.Duration{}, guarding: newGuarding()}
}

// learn notes what the replica learns about pods and claims.
func (k *known) learn(e client.Object, now time.Duration) {
	k.guarding.learn(e, now)
	switch object := e.(type) {
	case *corev1.Pod:
		if _, seen := k.bound[object.UID]; !seen && object.Spec.NodeName != "" {
			k.bound[object.UID] = now
		}
		if object.Annotations[karpenterv1.DoNotDisruptAnnotationKey] != "true" {
			delete(k.guarded, object.UID)
		} else if _, seen := k.guarded[object.UID]; !seen {
			k.guarded[object.UID] = now
		}
	case *karpenterv1.NodeClaim:
		if _, seen := k.claims[object.UID]; !seen {
			k.claims[object.UID] = now
		}
		if _, seen := k.deleting[object.UID]; !seen && object.DeletionTimestamp != nil {
			k.deleting[object.UID] = now
		}
	}
}

// poolSizes counts the initialized nodes of each pool in a replica's caches, as its budgets do. Claims and nodes come
// through different watches, so the larger number counts.
func (r *replica) poolSizes() map[string]int {
	claims, nodes := map[string]int{}, map[string]int{}
	r.cache.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		claim := o.(*karpenterv1.NodeClaim)
		if condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeInitialized) && !isOther(claim) {
			claims[poolName(claim)]++
		}
	})
	r.cache.All(&corev1.Node{}, func(o client.Object) {
		if o.GetLabels()[karpenterv1.NodeInitializedLabelKey] == "true" && !isOther(o) {
			nodes[o.GetLabels()[karpenterv1.NodePoolLabelKey]]++
		}
	})
	for pool, n := range claims {
		nodes[pool] = max(nodes[pool], n)
	}
	return nodes
}

// checkBudget is D-05: graceful disruption keeps to the pool's budgets.
func (w *World) checkBudget(claim *karpenterv1.NodeClaim) {
	p := w.actor
	r := p.line.replica
	name := poolName(claim)
	pool := p.pools[name] // a slow call may land after the pool was recreated
	w.checks.graceful[claim.UID] = r.number
	// a claim without a node uses no budget, and others may go: its node may join all the same, a moment later
	if was, _ := r.cache.Peek(claim, client.ObjectKeyFromObject(claim)).(*karpenterv1.NodeClaim); was != nil &&
		was.Status.NodeName == "" {
		w.checks.nodeless[claim.UID] = true
	}
	if pool == nil {
		return
	}
	allowed := int(^uint(0) >> 1)
	for _, budget := range pool.Spec.Disruption.Budgets {
		allowed = min(allowed, budgetOf(budget.Nodes.String(), p.sizes[name]))
	}
	under := 0
	w.server.All(claim, func(o client.Object) {
		by, graceful := w.checks.graceful[o.GetUID()]
		if !graceful || poolName(o) != name || w.checks.nodeless[o.GetUID()] ||
			!w.hasNode(o.(*karpenterv1.NodeClaim)) {
			return
		}
		if at, seen := r.known.deleting[o.GetUID()]; by == r.number || seen && at <= p.since {
			under++
		}
	})
	if under > allowed {
		w.fail(checkBudget, "%d nodes of NodePool %s are disrupted with %s, its budget allows %d of %d", under, name,
			claim.Name, allowed, p.sizes[name])
	}
}

// hasNode reports whether the node of a claim exists: a claim without one uses no budget.
func (w *World) hasNode(claim *karpenterv1.NodeClaim) bool {
	return claim.Status.NodeName != "" &&
		w.server.Peek(&corev1.Node{}, client.ObjectKey{Name: claim.Status.NodeName}) != nil
}

// budgetOf returns how many of n nodes a budget allows; percentages are rounded up.
func budgetOf(text string, n int) int {
	if share, is := strings.CutSuffix(text, "%"); is {
		percent, _ := strconv.Atoi(share)
		return (n*percent + 99) / 100
	}
	number, _ := strconv.Atoi(text)
	return number
}

// checkEmpty is D-03: a node that is removed as empty has no pod that the replica knew of.
func (w *World) checkEmpty(claim *karpenterv1.NodeClaim) {
	p := w.actor
	w.server.All(&corev1.Pod{}, func(o client.Object) {
		pod := o.(*corev1.Pod)
		at, seen := p.line.replica.known.bound[pod.UID]
		if pod.Spec.NodeName != claim.Status.NodeName || pod.DeletionTimestamp != nil || claim.Status.NodeName == "" ||
			isDaemon(pod) || translate.Finished(pod) {
			return
		}
		if seen && at < p.since {
			w.fail(checkEmpty, "claim %s is removed as empty although pod %s runs on its node %s", claim.Name,
				pod.Name, pod.Spec.NodeName)
		}
	})
}

// chosen reports whether a claim is marked for removal.
func chosen(claim *karpenterv1.NodeClaim) bool {
	return condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
}

// checkReplaced is X-02: a node goes only when all its known replacements are initialized.
func (w *World) checkReplaced(claim *karpenterv1.NodeClaim) {
	w.server.All(claim, func(o client.Object) {
		other := o.(*karpenterv1.NodeClaim)
		at, known := w.actor.line.replica.known.claims[other.UID]
		spared, was := w.checks.spared[other.UID]
		// a claim that goes itself replaces nothing
		if chosen(other) || was && spared >= w.actor.since || w.seemsLost(other) {
			return
		}
		if known && at < w.actor.since && slices.Contains(translate.Replaces(other), claim.Name) &&
			other.DeletionTimestamp == nil && !w.initialized(other) {
			w.fail(checkReplaced, "claim %s is removed although claim %s, which replaces it, is not initialized",
				claim.Name, other.Name)
		}
	})
}

// checkRest is D-15: a node that has replaced others is not replaced to save money for a while. It checks a claim that
// is made to replace others, and takes these from the replica's caches.
func (w *World) checkRest(made *karpenterv1.NodeClaim) {
	r := w.actor.line.replica
	for _, name := range translate.Replaces(made) {
		claim, _ := r.cache.Peek(made, client.ObjectKey{Name: name}).(*karpenterv1.NodeClaim)
		if claim == nil || claim.Annotations[karpenterv1.ReplacesAnnotationKey]+
			claim.Annotations[karpenterv1.ReplacedAnnotationKey] == "" {
			continue
		}
		reason, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
		age := w.clock().Sub(claim.CreationTimestamp.Time)
		if plan.DisruptionReason(reason.Reason) == plan.Underutilized &&
			age < engine.ReplacementRest*time.Second-2*r.skewMost {
			w.fail(checkRest, "claim %s is to be replaced by %s to save money %s after it was made to replace others",
				name, made.Name, age)
		}
	}
}

// seemsLost reports whether the replica has to assume that the claim's node is gone: its caches show the deletion of
// the node, or do not show a node that was registered. Somebody has deleted it, and its claim follows.
func (w *World) seemsLost(claim *karpenterv1.NodeClaim) bool {
	m := w.checks.machines[string(claim.UID)]
	if m == nil {
		return false
	}
	if node := w.actor.line.replica.cache.Peek(&corev1.Node{}, client.ObjectKey{Name: m.Node.Name}); node != nil {
		return node.GetDeletionTimestamp() != nil
	}
	return condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeRegistered)
}

// initialized reports whether the claim's node is initialized; the claim itself says so a moment later.
func (w *World) initialized(claim *karpenterv1.NodeClaim) bool {
	m := w.checks.machines[string(claim.UID)]
	if m == nil {
		return false
	}
	node := w.server.Peek(&corev1.Node{}, client.ObjectKey{Name: m.Node.Name})
	return node != nil && node.GetLabels()[karpenterv1.NodeInitializedLabelKey] == "true" ||
		condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeInitialized)
}

// beforeStep records what checks need to know about a starting step.
func (w *World) beforeStep(p *process) {
	p.since = w.now
	if p.line.Name == joiner.Provisioning && w.script.hasShares() {
		p.stands = p.line.replica.stands()
		p.pools = map[string]*karpenterv1.NodePool{}
		p.line.replica.cache.All(&karpenterv1.NodePool{},
			func(o client.Object) { p.pools[o.GetName()] = o.(*karpenterv1.NodePool) })
	}
	if p.line.Name == joiner.Disruption {
		p.sizes, p.useful = p.line.replica.poolSizes(), p.line.replica.usefulNodes()
		p.pools = map[string]*karpenterv1.NodePool{}
		p.line.replica.cache.All(&karpenterv1.NodePool{},
			func(o client.Object) { p.pools[o.GetName()] = o.(*karpenterv1.NodePool) })
	}
}

// checkFirst is K-48: a node goes before its replacement comes only in a pool that asks for it, and one at a time.
func (w *World) checkFirst(claim *karpenterv1.NodeClaim, why string) {
	if !strings.Contains(why, karpenterv1.TerminateFirstAnnotationKey) {
		return
	}
	p, name := w.actor, poolName(claim)
	r := p.line.replica
	if pool := p.pools[name]; pool != nil && pool.Annotations[karpenterv1.TerminateFirstAnnotationKey] != "true" {
		w.fail(checkFirst, "claim %s goes before its replacement comes, and NodePool %s does not ask for that",
			claim.Name, name)
	}
	w.server.All(claim, func(o client.Object) {
		other := o.(*karpenterv1.NodeClaim)
		if poolName(other) != name || other.UID == claim.UID || isOther(other) {
			return
		}
		by, graceful := w.checks.graceful[other.UID]
		at, seen := r.known.deleting[other.UID]
		if graceful && by == r.number || seen && at <= p.since {
			w.fail(checkFirst, "claim %s goes before its replacement comes, while %s of NodePool %s is going",
				claim.Name, other.Name, name)
		}
	})
}
