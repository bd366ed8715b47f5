package sim

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/app/joiner"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/sim/cloud"
)

// Names of the checks, as in docs/invariants.md.
const (
	checkHardLimit  = "hard-limit"
	checkInstances  = "hard-limit-instances"
	checkOneMachine = "one-machine-per-claim"
	checkEviction   = "eviction"
	checkDeadline   = "deadline"
	checkBudget     = "budget"
	checkIntent     = "intent"
	checkTrim       = "trim"
	checkMachine    = "machine-of-a-claim"
	checkDrain      = "drain"
	checkFinalizer  = "finalizer"
	checkForeign    = "foreign"
	checkEmpty      = "removed-empty"
	checkFloor      = "floor"
	checkReplaced   = "replaced-first"
	checkFirst      = "one-goes-first"
	checkRest       = "rest"
	checkQuestion   = "unchanged"
	checkConverges  = "converges"
	checkQuiet      = "quiet"
	checkStory      = "story"
	checkPaused     = "paused"
	checkHeld       = "held"
)

// checks is the state of all checks.
type checks struct {
	world    *World
	launches int
	machines map[string]*cloud.Machine   // by claim UID
	launched map[string]*replica         // the launcher, by claim UID; nil if it was dead when the launch landed
	made     map[types.UID]*replica      // makers of claims, kept if a check of K-55 needs them
	changed  time.Duration               // the last time that a claim or machine came or went
	graceful map[types.UID]int           // claims deleted by the disruption controller, with the replica's number
	nodeless map[types.UID]bool          // of these, those without a node then
	spared   map[types.UID]time.Duration // when intents to remove claims were taken back
	sparings []time.Duration             // every time an intent was taken back
	foreign  map[string][]time.Duration  // by pool name: when claims were deleted for other causes than a limit
	moved    map[string]time.Duration    // by pool UID: when a place was last taken out of the pool's list
	places   map[string][]int            // by pool UID: the last places in the table
	// keys: "hard ", "static " or "gentle " and the pool's UID; "name " and its name; clusterKey
	limits   map[string][]limitSpan
	ended    []*karpenterv1.NodeClaim // deleted claims in their last state
	causes   causes
	counted  counted
	brought  map[string]int                // by launch: how many machines it ever brought
	intended map[string]map[types.UID]bool // by launch: claims that ever named it
	forced   map[string]bool               // by name: nodes that users deleted without our finalizer
	stripped map[types.UID]bool            // claims from which users took our finalizer, until it is back
	switched time.Duration                 // when users paused disruption; below 0 while it is not paused
}

func newChecks(w *World) checks {
	return checks{world: w, causes: causes{bought: map[string]*purchase{}},
		machines: map[string]*cloud.Machine{}, launched: map[string]*replica{}, made: map[types.UID]*replica{},
		graceful: map[types.UID]int{}, nodeless: map[types.UID]bool{}, spared: map[types.UID]time.Duration{},
		foreign: map[string][]time.Duration{}, limits: map[string][]limitSpan{}, moved: map[string]time.Duration{},
		counted: newCounted(), brought: map[string]int{}, intended: map[string]map[types.UID]bool{},
		forced: map[string]bool{}, stripped: map[types.UID]bool{}, switched: -1}
}

// hardLimit returns a pool's hard limit on nodes.
func hardLimit(pool *karpenterv1.NodePool) int64 {
	if quantity, limited := pool.Spec.HardLimits["nodes"]; limited {
		return quantity.Value()
	}
	return math.MaxInt64
}

// check looks at a change on the server at the moment it happens.
func (w *World) check(e apiserver.Event) {
	w.watchCause(e)
	w.checkForeign(e)
	switch object := e.Object.(type) {
	case *karpenterv1.NodeClaim:
		switch e.Type {
		case apiserver.Added:
			w.checks.changed = w.now
			w.noteCreate(object)
			w.checkHardLimit(object)
			w.checkClusterLimit(object)
			w.checkStaticCap(object)
		case apiserver.Deleted:
			w.checks.changed = w.now
			w.checkFinalizer(object)
			if e.Old.GetDeletionTimestamp() == nil { // it had no finalizers
				w.leavesByOthers(object)
			}
			w.checks.ended = append(w.checks.ended, object)
		case apiserver.Modified:
			if controllerutil.ContainsFinalizer(object, karpenterv1.TerminationFinalizer) {
				delete(w.checks.stripped, object.UID)
			}
			w.checkNamed(e, object)
			w.noteLaunch(object)
			if old := e.Old.(*karpenterv1.NodeClaim); chosen(old) && !chosen(object) {
				w.checks.spared[object.UID] = w.now
				w.checks.sparings = append(w.checks.sparings, w.now)
			}
			if e.Old.GetDeletionTimestamp() == nil && object.DeletionTimestamp != nil {
				w.checkRemoval(object)
			}
		}
	case *karpenterv1.NodePool:
		if e.Type != apiserver.Deleted {
			w.checks.notice(object, w.now)
			w.checkEnforced(object)
		}
	case *corev1.ConfigMap:
		w.noteTable(e, object)
	case *corev1.Node:
		// a user took our finalizer off the node and then deleted it: nobody can drain it
		if e.Type == apiserver.Deleted && w.actor == nil && e.Old.GetDeletionTimestamp() == nil {
			w.checks.forced[object.Name] = true
		}
	case *corev1.Pod:
		old, _ := e.Old.(*corev1.Pod)
		if w.actor != nil && old != nil && old.DeletionTimestamp == nil && object.DeletionTimestamp != nil {
			w.checkEviction(object)
		}
	}
}

// limitSpan is a limit on the nodes of a pool, and since when it holds.
type limitSpan struct {
	since time.Duration
	limit int64
}

// nodeLimit returns the limit on a pool's nodes: the hard one wins (L-03). For a static pool its replicas are a limit
// too.
func nodeLimit(pool *karpenterv1.NodePool) int64 {
	limit := int64(math.MaxInt64)
	if len(pool.Spec.HardLimits) > 0 {
		limit = hardLimit(pool)
	} else if quantity, limited := pool.Spec.Limits["nodes"]; limited {
		limit = quantity.Value()
	}
	if pool.Spec.Replicas != nil {
		limit = min(limit, *pool.Spec.Replicas)
	}
	return limit
}

// notice records changed limits.
func (c *checks) notice(pool *karpenterv1.NodePool, now time.Duration) {
	for key, limit := range map[string]int64{
		"hard " + string(pool.UID): hardLimit(pool), "static " + string(pool.UID): staticCap(pool),
		"gentle " + string(pool.UID): gentle(pool), "name " + pool.Name: nodeLimit(pool),
	} {
		if spans := c.limits[key]; len(spans) == 0 || spans[len(spans)-1].limit != limit {
			c.limits[key] = append(spans, limitSpan{now, limit})
		}
	}
}

// since returns the lowest and the highest limit that held at any time since then.
func (c *checks) since(key string, then time.Duration) (least, most int64) {
	least, most = math.MaxInt64, -1
	spans := c.limits[key]
	for i := len(spans) - 1; i >= 0; i-- {
		least, most = min(least, spans[i].limit), max(most, spans[i].limit)
		if spans[i].since <= then {
			break
		}
	}
	return least, most
}

// poolOf returns the pool of a claim, or nil.
func (w *World) poolOf(claim *karpenterv1.NodeClaim) *karpenterv1.NodePool {
	pool, _ := w.server.Peek(&karpenterv1.NodePool{}, client.ObjectKey{Name: poolName(claim)}).(*karpenterv1.NodePool)
	return pool
}

// checkTrim is L-42: no more nodes above a limit go than there are too many. What others have begun to remove since
// the step began counts as staying, even if it is gone by now: the API server cannot make one delete depend on
// another, see docs/limits.md.
func (w *World) checkTrim(claim *karpenterv1.NodeClaim) {
	pool := w.poolOf(claim)
	if pool == nil {
		return
	}
	least, _ := w.checks.since("name "+pool.Name, w.actor.since) // by name: the pool may have been recreated
	stay := int64(0)
	w.server.All(claim, func(o client.Object) {
		if poolName(o) == pool.Name && o.GetDeletionTimestamp() == nil && !isOther(o) {
			stay++
		}
	})
	for _, at := range w.checks.foreign[pool.Name] {
		if at >= w.actor.since {
			stay++
		}
	}
	if stay < least {
		w.fail(checkTrim, "claim %s is trimmed: NodePool %s keeps %d nodes, its limit is %d", claim.Name, pool.Name,
			stay, least)
	}
}

// leavesByOthers notes that a claim begins to go for another reason than a limit.
func (w *World) leavesByOthers(claim *karpenterv1.NodeClaim) {
	if isOther(claim) {
		return
	}
	pool := poolName(claim)
	w.checks.foreign[pool] = append(w.checks.foreign[pool], w.now)
}

// checkLaunch is P-32: a claim never has two machines.
func (w *World) checkLaunch(m *cloud.Machine) {
	w.checks.launches++
	w.checks.changed = w.now
	if w.account != nil {
		w.checkMachineOf(m)
		if m.ClaimUID == "" {
			return
		}
	}
	w.boughtFor(m)
	if other := w.checks.machines[m.ClaimUID]; other != nil && w.account == nil {
		w.fail(checkOneMachine, "claim %s (UID %s) gets machine %s and has had %s", m.ClaimName, m.ClaimUID,
			m.ProviderID, other.ProviderID)
	}
	w.checks.machines[m.ClaimUID] = m
	if w.actor != nil {
		w.checks.launched[m.ClaimUID] = w.actor.line.replica
	}
	w.checkInstances(m)
}

// checkEnd is P-32 and P-40: nobody ends the machine of a living claim, or of one whose pods have not left before the
// drain's deadline.
func (w *World) checkEnd(m *cloud.Machine) {
	w.checks.changed = w.now
	if w.actor == nil {
		return
	}
	node := w.server.Peek(&corev1.Node{}, client.ObjectKey{Name: m.Node.Name})
	asked := node != nil && node.GetDeletionTimestamp() != nil // a user may delete the node; claim and machine follow
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		claim := o.(*karpenterv1.NodeClaim)
		if string(o.GetUID()) == m.ClaimUID && o.GetDeletionTimestamp() == nil && !asked &&
			(w.account == nil || namedBy(claim, m)) {
			w.fail(checkMachine, "machine %s is ended although its claim %s lives", m.ProviderID, o.GetName())
		}
	})
	if w.account != nil && !asked {
		w.checkSpared(m)
	}
	w.server.All(&corev1.Pod{}, func(o client.Object) {
		pod := o.(*corev1.Pod)
		at, seen := w.actor.line.replica.known.bound[pod.UID]
		if pod.Spec.NodeName != m.Node.Name || w.checks.forced[m.Node.Name] || pod.DeletionTimestamp != nil || !seen ||
			at >= w.actor.since || pod.Status.Phase != corev1.PodRunning ||
			toleratesAll(pod) {
			return
		}
		if due, limited := w.deadlineOf(pod); !limited ||
			w.clock().Before(due.Add(-w.actor.line.replica.skewMost-2*time.Second)) {
			w.fail(checkDrain, "machine %s is ended although pod %s runs on it", m.ProviderID, pod.Name)
		}
	})
}

// checkFinalizer is P-40: a claim goes only when its machine is gone. In a pool without a hard limit no record says
// who may launch. Of two leaders, one may be refused and let the claim go while the other's launch lands. That machine
// is collected, as the check converges verifies. So is that of a claim that is deleted before anybody has seen that a
// user took our finalizer off.
func (w *World) checkFinalizer(claim *karpenterv1.NodeClaim) {
	if w.actor == nil || w.checks.stripped[claim.UID] {
		return
	}
	m := w.checks.machines[string(claim.UID)]
	if m != nil && w.cloud.Exists(m) && !w.launchedByAnother(claim) && (w.account == nil || namedBy(claim, m)) {
		w.fail(checkFinalizer, "claim %s goes although its machine %s is there", claim.Name, m.ProviderID)
	}
}

// launchedByAnother reports whether another living process launched the machine of a claim, in a pool without a hard
// limit.
func (w *World) launchedByAnother(claim *karpenterv1.NodeClaim) bool {
	other, pool := w.checks.launched[string(claim.UID)], w.poolOf(claim)
	return other != nil && !other.dead && other != w.actor.line.replica &&
		(pool == nil || len(pool.Spec.HardLimits) == 0)
}

// checkEviction is X-02: a pod protected by a PodDisruptionBudget or do-not-disrupt is deleted only at its node's
// deadline. (The API server makes evictions keep to budgets.)
func (w *World) checkEviction(pod *corev1.Pod) {
	verb := w.actor.line.Name
	if verb != joiner.Nodes {
		w.fail(checkEviction, "%s deletes pod %s: only the drain may", verb, pod.Name)
		return
	}
	due, limited := w.deadlineOf(pod)
	grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	slack := w.actor.line.replica.skewMost + 2*time.Second
	late := limited && !w.clock().Before(due.Add(-grace-slack))
	at, seen := w.actor.line.replica.known.guarded[pod.UID] // it may have been guarded a moment ago
	if pod.Annotations[karpenterv1.DoNotDisruptAnnotationKey] == "true" && seen && at < w.actor.since && !late {
		w.fail(checkEviction, "pod %s asks not to be disrupted and is deleted before its node's deadline", pod.Name)
	}
	if w.landing != "evict" && !late {
		w.fail(checkDeadline, "pod %s is deleted past the eviction API before its node's deadline", pod.Name)
	}
}

// deadlineOf returns the drain deadline of a pod's node, even if claim and node are gone by now.
func (w *World) deadlineOf(pod *corev1.Pod) (due time.Time, limited bool) {
	look := func(claim *karpenterv1.NodeClaim) {
		if m := w.checks.machines[string(claim.UID)]; m == nil || m.Node.Name != pod.Spec.NodeName {
			return
		}
		if at, err := time.Parse(time.RFC3339,
			claim.Annotations[karpenterv1.NodeClaimTerminationTimestampAnnotationKey]); err == nil {
			due, limited = at, true
		} else if claim.Spec.TerminationGracePeriod != nil && claim.DeletionTimestamp != nil {
			due, limited = claim.DeletionTimestamp.Add(claim.Spec.TerminationGracePeriod.Duration), true
		}
	}
	for _, claim := range w.checks.ended {
		look(claim)
	}
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) { look(o.(*karpenterv1.NodeClaim)) })
	return due, limited
}

// checkRemoval looks at a claim whose deletion begins.
func (w *World) checkRemoval(claim *karpenterv1.NodeClaim) {
	if w.actor == nil || w.actor.line.Name != joiner.Disruption {
		w.leavesByOthers(claim)
		return
	}
	reason, found := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
	switch {
	case !found || reason.Status != "True":
		w.fail(checkIntent, "claim %s is removed without a stated intent", claim.Name)
	case plan.DisruptionReason(reason.Reason) == plan.NodeLimitExceeded,
		plan.DisruptionReason(reason.Reason) == plan.ReplicasExceeded:
		w.checkTrim(claim)
		if plan.DisruptionReason(reason.Reason) == plan.NodeLimitExceeded {
			w.checkGentle(claim)
		}
		return
	case plan.DisruptionReason(reason.Reason) == plan.Empty:
		w.checkEmpty(claim)
		w.checkComing(claim)
		w.checkFloor(claim)
	case plan.DisruptionReason(reason.Reason) == plan.Drifted, plan.DisruptionReason(reason.Reason) == plan.Expired,
		plan.DisruptionReason(reason.Reason) == plan.Underutilized:
		w.checkReplaced(claim)
		w.checkFirst(claim, reason.Message)
	}
	if plan.DisruptionReason(reason.Reason) == plan.Underutilized {
		w.checkDisks(claim)
		w.checkFloor(claim)
	}
	w.checkHeld(claim, plan.DisruptionReason(reason.Reason))
	w.leavesByOthers(claim)
	w.checkSwitch(claim)
	w.checkBudget(claim)
}
