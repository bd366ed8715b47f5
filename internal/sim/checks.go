package sim

import (
	"math"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/app"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/sim/cloud"
)

// The checks, as docs/invariants.md names them.
const (
	checkHardLimit  = "hard-limit"
	checkOneMachine = "one-machine-per-claim"
	checkEviction   = "eviction"
	checkDeadline   = "deadline"
	checkBudget     = "budget"
	checkFinalizer  = "finalizer"
	checkForeign    = "foreign"
	checkEmpty      = "removed-empty"
	checkConverges  = "converges"
	checkQuiet      = "quiet"
)

// checks are what the checkers remember.
type checks struct {
	world    *World
	launches int
	machines map[string]*cloud.Machine // by claim UID
	changed  time.Duration             // when a claim or machine last came or went
	graceful map[types.UID]int         // claims that the disruption controller deleted, with the replica's number
}

func newChecks(w *World) checks {
	return checks{world: w, machines: map[string]*cloud.Machine{}, graceful: map[types.UID]int{}}
}

// hardLimit returns a pool's hard limit on nodes.
func hardLimit(pool *karpenterv1.NodePool) int64 {
	if quantity, limited := pool.Spec.HardLimits["nodes"]; limited {
		return quantity.Value()
	}
	return math.MaxInt64
}

// check looks at a change on the server at the instant at which it happens.
func (w *World) check(e apiserver.Event) {
	if w.actor != nil && strings.HasPrefix(e.Object.GetName(), foreignPrefix) {
		if _, pod := e.Object.(*corev1.Pod); !pod {
			w.fail(checkForeign, "%s changes %s %s, which is none of ours", w.actor.line.Name, e.Kind(), e.Object.GetName())
		}
	}
	switch object := e.Object.(type) {
	case *karpenterv1.NodeClaim:
		switch e.Type {
		case apiserver.Added:
			w.checks.changed = w.now
			w.checkHardLimit(object)
		case apiserver.Deleted:
			w.checks.changed = w.now
			w.checkFinalizer(object)
		case apiserver.Modified:
			if e.Old.GetDeletionTimestamp() == nil && object.DeletionTimestamp != nil {
				w.checkRemoval(object)
			}
		}
	case *corev1.Pod:
		old, _ := e.Old.(*corev1.Pod)
		if w.actor != nil && old != nil && old.DeletionTimestamp == nil && object.DeletionTimestamp != nil {
			w.checkEviction(object)
		}
	}
}

// checkHardLimit is L-14: a replica never makes a claim that brings the pool's own claims above the hard limit, as
// high as it was at any time since the replica's step began to look: a limit that was lowered is known to nobody before
// the watch has shown it.
func (w *World) checkHardLimit(created *karpenterv1.NodeClaim) {
	name := created.Labels[karpenterv1.NodePoolLabelKey]
	if w.actor == nil || name == "" {
		return
	}
	found := w.server.Peek(&karpenterv1.NodePool{}, client.ObjectKey{Name: name})
	if found == nil {
		return
	}
	pool := found.(*karpenterv1.NodePool)
	limit := max(hardLimit(pool), w.actor.line.replica.mostSince(w.actor.begun, string(pool.UID)))
	own := int64(0)
	w.server.All(created, func(o client.Object) {
		if o.GetLabels()[karpenterv1.NodePoolLabelKey] == name && o.GetLabels()[handLabel] == "" {
			own++
		}
	})
	if own > limit {
		w.fail(checkHardLimit, "NodePool %s has %d NodeClaims of its own with %s, its hard limit is %d", name, own, created.Name, limit)
	}
}

// mostSince returns the highest hard limit of a pool that the replica knew since it had seen so many changes.
func (r *replica) mostSince(begun int, pool string) int64 {
	most := int64(-1)
	for i := len(r.limits) - 1; i >= 0; i-- {
		if seen := r.limits[i]; seen.pool == pool {
			most = max(most, seen.limit)
			if i < begun {
				break
			}
		}
	}
	return most
}

// checkLaunch is P-32: a claim never has two machines.
func (w *World) checkLaunch(m *cloud.Machine) {
	w.checks.launches++
	w.checks.changed = w.now
	if other := w.checks.machines[m.ClaimUID]; other != nil {
		w.fail(checkOneMachine, "claim %s (UID %s) gets machine %s and has had %s", m.ClaimName, m.ClaimUID, m.ProviderID, other.ProviderID)
	}
	w.checks.machines[m.ClaimUID] = m
}

// checkFinalizer is P-40: a claim goes when its machine is gone, not before.
func (w *World) checkFinalizer(claim *karpenterv1.NodeClaim) {
	if w.actor == nil {
		return
	}
	if m := w.checks.machines[string(claim.UID)]; m != nil && w.cloud.Exists(m) {
		w.fail(checkFinalizer, "claim %s goes although its machine %s is there", claim.Name, m.ProviderID)
	}
}

// checkEviction is X-02: a pod that a PodDisruptionBudget or do-not-disrupt protects is deleted by its node's deadline
// only. (That an eviction keeps to the budget is the API server's doing.)
func (w *World) checkEviction(pod *corev1.Pod) {
	verb := w.actor.line.Name
	if verb != app.Nodes {
		w.fail(checkEviction, "%s deletes pod %s: only the drain may", verb, pod.Name)
		return
	}
	due, limited := w.deadlineOf(pod)
	grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	slack := w.actor.line.replica.skewMost + 2*time.Second
	late := limited && !w.clock().Before(due.Add(-grace-slack))
	if pod.Annotations[karpenterv1.DoNotDisruptAnnotationKey] == "true" && !late {
		w.fail(checkEviction, "pod %s asks not to be disrupted and is deleted before its node's deadline", pod.Name)
	}
	if w.landing != "evict" && !late {
		w.fail(checkDeadline, "pod %s is deleted past the eviction API before its node's deadline", pod.Name)
	}
}

// deadlineOf returns the deadline of the drain of a pod's node.
func (w *World) deadlineOf(pod *corev1.Pod) (time.Time, bool) {
	due, limited := time.Time{}, false
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		claim := o.(*karpenterv1.NodeClaim)
		if claim.Status.NodeName != pod.Spec.NodeName {
			return
		}
		if at, err := time.Parse(time.RFC3339, claim.Annotations[karpenterv1.NodeClaimTerminationTimestampAnnotationKey]); err == nil {
			due, limited = at, true
		} else if claim.Spec.TerminationGracePeriod != nil && claim.DeletionTimestamp != nil {
			due, limited = claim.DeletionTimestamp.Add(claim.Spec.TerminationGracePeriod.Duration), true
		}
	})
	return due, limited
}

// checkRemoval looks at a claim whose deletion begins.
func (w *World) checkRemoval(claim *karpenterv1.NodeClaim) {
	if w.actor == nil || w.actor.line.Name != app.Disruption {
		return
	}
	reason, found := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
	if !found || reason.Status != "True" {
		w.fail(checkBudget, "claim %s is removed without a stated intent", claim.Name)
		return
	}
	w.checkBudget(claim)
	if plan.DisruptionReason(reason.Reason) == plan.Empty {
		w.checkEmpty(claim)
	}
}
