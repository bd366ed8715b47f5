package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file has what users forbid for good: PodDisruptionBudgets that never let a pod go, and admission policies that
// refuse the NodeClaims of a pool.

// guardVerbs returns the script lines of this file.
func guardVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{"forbid": (*World).forbid}
}

// forbid makes an admission policy refuse each new NodeClaim that we make of a pool: forbid NAME. The name none ends
// that.
func (w *World) forbid(a arguments) error {
	name := a.first()
	if name == none {
		w.server.Forbid(nil)
		return nil
	}
	w.server.Forbid(func(o client.Object) string {
		if _, claim := o.(*karpenterv1.NodeClaim); claim && poolName(o) == name && w.actor != nil {
			return "no more nodes of " + name + " this month"
		}
		return ""
	})
	return nil
}

// neverLets reports whether a budget never lets a ready pod go: it was counted, and asks for as many pods as there
// are, or nobody can say how many there should be.
func neverLets(budget *policyv1.PodDisruptionBudget) bool {
	status := budget.Status
	if slices.ContainsFunc(status.Conditions, func(c metav1.Condition) bool {
		return c.Reason == policyv1.SyncFailedReason
	}) {
		return true
	}
	return status.ObservedGeneration == budget.Generation && status.DisruptionsAllowed == 0 &&
		(status.DesiredHealthy >= status.ExpectedPods && status.ExpectedPods > 0 ||
			status.ExpectedPods == 0 && status.CurrentHealthy > 0)
}

// guarding is what a replica knows of pods and of what keeps them where they are.
type guarding struct {
	ready map[types.UID]time.Duration // since when pods run and are ready
	never map[types.UID]time.Duration // since when budgets never let a pod go
	named map[types.UID]naming        // pods for which kube-scheduler has chosen a node
}

// naming is a node that was chosen for a pod, and since when that is known.
type naming struct {
	node string
	at   time.Duration
}

func newGuarding() guarding {
	return guarding{ready: map[types.UID]time.Duration{}, never: map[types.UID]time.Duration{},
		named: map[types.UID]naming{}}
}

// learn notes what the replica learns.
func (h guarding) learn(e client.Object, now time.Duration) {
	note := func(known map[types.UID]time.Duration, holds bool) {
		if _, seen := known[e.GetUID()]; !holds {
			delete(known, e.GetUID())
		} else if !seen {
			known[e.GetUID()] = now
		}
	}
	switch object := e.(type) {
	case *corev1.Pod:
		if node := translate.Chosen(object); node == "" || object.DeletionTimestamp != nil {
			delete(h.named, object.UID)
		} else if h.named[object.UID].node != node {
			h.named[object.UID] = naming{node, now}
		}
		note(h.ready, object.Status.Phase == corev1.PodRunning && apiserver.PodReady(object))
	case *policyv1.PodDisruptionBudget:
		note(h.never, neverLets(object) && object.DeletionTimestamp == nil)
	}
}

// checkHeld is D-02: a node does not begin a drain that one of its pods can never end, by what the replica knew when
// its step began. A claim with a terminationGracePeriod may go for drift all the same (D-06).
func (w *World) checkHeld(claim *karpenterv1.NodeClaim, reason plan.DisruptionReason) {
	p := w.actor
	r := p.line.replica
	switch reason {
	case plan.Drifted:
		if claim.Spec.TerminationGracePeriod != nil {
			return
		}
	case plan.Empty, plan.Underutilized:
	default:
		return
	}
	before := func(known map[types.UID]time.Duration, uid types.UID) bool {
		at, seen := known[uid]
		return seen && at < p.since
	}
	w.server.All(&corev1.Pod{}, func(o client.Object) {
		pod := o.(*corev1.Pod)
		if pod.Spec.NodeName != claim.Status.NodeName || claim.Status.NodeName == "" || pod.DeletionTimestamp != nil ||
			toleratesAll(pod) || translate.Finished(pod) || !before(r.known.bound, pod.UID) ||
			!before(r.known.guarding.ready, pod.UID) {
			return
		}
		r.cache.All(&policyv1.PodDisruptionBudget{}, func(o client.Object) {
			budget := o.(*policyv1.PodDisruptionBudget)
			selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
			if err == nil && selector.Matches(labels.Set(pod.Labels)) && before(r.known.guarding.never, budget.UID) {
				w.fail(checkHeld, "claim %s is removed (%s) although PodDisruptionBudget %s never lets pod %s go",
					claim.Name, reason, budget.Name, pod.Name)
			}
		})
	})
}

// checkComing is D-02: a node does not go as empty while kube-scheduler is about to bind a pod to it, by what the
// replica knew. A node that is not ready may: the binding would be in vain. So may one with a pod that should make
// room and is stuck.
func (w *World) checkComing(claim *karpenterv1.NodeClaim) {
	p := w.actor
	node, _ := w.server.Peek(&corev1.Node{}, client.ObjectKey{Name: claim.Status.NodeName}).(*corev1.Node)
	if node == nil || !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}) {
		return
	}
	var names *corev1.Pod
	victims := false
	w.server.All(&corev1.Pod{}, func(o client.Object) {
		pod := o.(*corev1.Pod)
		victims = victims || pod.Spec.NodeName == node.Name && !isDaemon(pod)
		known := p.line.replica.known.guarding.named[pod.UID]
		if translate.Chosen(pod) == node.Name && known.node == node.Name && known.at < p.since &&
			pod.DeletionTimestamp == nil {
			names = pod
		}
	})
	if names != nil && !victims {
		w.fail(checkEmpty, "claim %s is removed as empty although kube-scheduler has chosen its node %s for pod %s",
			claim.Name, node.Name, names.Name)
	}
}

// guards lets some DaemonSets and workloads have budgets that may never let a pod go, and some pools be forbidden for
// a while. It has its own dice, so that scripts of other seeds do not change.
func (g *generator) guards() {
	d := newDice(g.script.Seed, "guards")
	at := func() time.Duration { return d.between(20*time.Second, g.script.Heal-time.Second) }
	if d.chance(0.15) {
		args := []string{"watchman", of(&d, "cpu=50m", "mem=64Mi"), of(&d, "pdb=1", "pdb=2", "unavailable=1")}
		g.add(of(&d, 0, at()), "daemons", args...)
	}
	for i, action := range g.script.Actions {
		if action.Verb != "workload" || strings.Contains(fmt.Sprint(action.Args), "pdb=") ||
			strings.Contains(fmt.Sprint(action.Args), "unavailable=") ||
			strings.Contains(fmt.Sprint(action.Args), "disk=") {
			continue
		}
		if own := newDice(g.script.Seed, "bare", action.Args[0]); own.chance(0.08) {
			g.script.Actions[i].Args = append(slices.Clone(action.Args), "bare", of(&own, "pdb=1", "unavailable=1"))
		}
	}
	if d.chance(0.12) {
		from := at()
		g.add(from, "forbid", of(&d, g.names...))
		if d.chance(0.5) {
			g.add(from+d.between(10*time.Second, 3*time.Minute), "forbid", none)
		}
	}
}
