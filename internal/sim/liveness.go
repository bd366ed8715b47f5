package sim

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

const (
	// quietFor is how long no claim and no machine may come or go before the system counts as quiet.
	quietFor = time.Hour
	// quietWithin bounds the time from the healing until the system is quiet. A machine that never joins is given up
	// after a quarter of an hour, and its replacement may have been launched before the healing.
	quietWithin = 3 * time.Hour
)

// quiet reports whether the run can end: nothing has changed for an hour, or the system never becomes quiet.
func (w *World) quiet() bool {
	if !w.healed {
		return false
	}
	since := max(w.checks.changed, w.script.Heal)
	return w.now >= since+quietFor || w.now > w.script.Heal+quietWithin
}

// checkLiveness checks the end state of a run. The healed system had all the time that it needs to reach it.
func (w *World) checkLiveness() {
	if w.now < max(w.checks.changed, w.script.Heal)+quietFor {
		w.fail(checkQuiet, "claims and machines still come and go %s after all faults were healed",
			w.now-w.script.Heal)
		return
	}
	if n := w.sparedSince(w.now - quietFor); n > restless {
		w.fail(checkQuiet, "intents to remove claims were taken back %d times in the last %s", n, quietFor)
		return
	}
	for _, check := range []func() string{
		w.tooMany, w.unplaced, w.strays, w.claimsAlone, w.nodesAlone, w.idle, w.drifted, w.mislabelled, w.roomMissing,
		w.below, w.headroomMissing, w.reservedIdle, w.soldOtherwise, w.overlooked, w.dearSpot, w.unkept,
	} {
		if problem := check(); problem != "" {
			w.fail(checkConverges, "%s", problem)
			return
		}
	}
}

// unplaced finds a pod that waits although a pool has room for it: every pod of a workload fits on a machine.
func (w *World) unplaced() string {
	problem := ""
	w.server.All(&corev1.Pod{}, func(o client.Object) {
		pod := o.(*corev1.Pod)
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || isDaemon(pod) || problem != "" ||
			diskName(pod) != "" && w.script.attaches() && w.cluster.most == 0 {
			return
		}
		w.server.All(&karpenterv1.NodePool{}, func(o client.Object) {
			pool := o.(*karpenterv1.NodePool)
			if count, limit := w.count(pool.Name), nodeLimit(pool); w.room(pool) > 0 && pool.Spec.Replicas == nil &&
				!isOther(pool) {
				problem = fmt.Sprintf("pod %s waits although NodePool %s has %d nodes of %d", pod.Name, pool.Name,
					count, limit)
			}
		})
	})
	return problem
}

// tooMany finds a pool above its limit (L-40), and a static pool whose number of nodes differs from its replicas
// (D-12).
func (w *World) tooMany() string {
	problem := ""
	w.server.All(&karpenterv1.NodePool{}, func(o client.Object) {
		pool := o.(*karpenterv1.NodePool)
		if isOther(pool) {
			return
		}
		count, limit := w.count(pool.Name)-w.others(pool.Name), nodeLimit(pool)
		if count > limit || pool.Spec.Replicas != nil && count < limit && w.clusterRoom() > 0 {
			problem = fmt.Sprintf("NodePool %s has %d nodes, its limit is %d", pool.Name, count, limit)
		}
	})
	return problem
}

func (w *World) count(pool string) int64 {
	n := int64(0)
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		if poolName(o) == pool {
			n++
		}
	})
	return n
}

// others counts the claims of another program with the label of a pool.
func (w *World) others(pool string) int64 {
	n := int64(0)
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		if poolName(o) == pool && isOther(o) {
			n++
		}
	})
	return n
}

// strays finds a machine whose claim is gone.
func (w *World) strays() string {
	uids := map[string]bool{}
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) { uids[string(o.GetUID())] = true })
	for _, m := range w.cloud.Machines() {
		if !uids[m.ClaimUID] {
			return fmt.Sprintf("machine %s runs although its claim %s is gone", m.ProviderID, m.ClaimName)
		}
	}
	return ""
}

// claimsAlone finds a claim without a machine, a claim that has not become a node, and a claim whose end is stuck.
func (w *World) claimsAlone() string {
	problem := ""
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		claim := o.(*karpenterv1.NodeClaim)
		m := w.checks.machines[string(claim.UID)]
		switch {
		case problem != "" || isOther(claim):
		case m == nil || !w.cloud.Exists(m):
			problem = fmt.Sprintf("claim %s has no machine", claim.Name)
		case claim.DeletionTimestamp != nil:
			problem = fmt.Sprintf("claim %s is being deleted since %s and nothing holds it", claim.Name,
				claim.DeletionTimestamp.Time.Format(time.TimeOnly))
		case claim.DeletionTimestamp == nil && claim.Status.NodeName == "":
			problem = fmt.Sprintf("claim %s has not become a node", claim.Name)
		}
	})
	return problem
}

// nodesAlone finds a node of ours whose machine is gone.
func (w *World) nodesAlone() string {
	problem := ""
	w.server.All(&corev1.Node{}, func(o client.Object) {
		node := o.(*corev1.Node)
		if problem == "" && !w.alive(node.Name) {
			problem = fmt.Sprintf("node %s is there although its machine is gone", node.Name)
		}
		for _, taint := range node.Spec.Taints {
			if taint.Key == karpenterv1.RebootingTaintKey && problem == "" && node.DeletionTimestamp == nil {
				problem = fmt.Sprintf("node %s is fenced off for a reboot and stays so", node.Name)
			}
			if taint.Key == karpenterv1.DisruptedTaintKey && problem == "" && !isOther(node) &&
				node.DeletionTimestamp == nil {
				problem = fmt.Sprintf("node %s is tainted for removal and stays", node.Name)
			}
		}
	})
	return problem
}

// drifted finds a node of an older template that could have been replaced (D-06).
func (w *World) drifted() string {
	problem := ""
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		claim := o.(*karpenterv1.NodeClaim)
		pool := w.poolOf(claim)
		if pool == nil || isOther(claim) || isOther(pool) ||
			!condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeDrifted) ||
			pool.Spec.Replicas == nil && w.count(pool.Name) >= hardLimit(pool) || w.clusterRoom() == 0 ||
			w.heldByTies(claim, pool) || w.heldByRoom(claim, pool) ||
			problem != "" {
			return
		}
		problem = fmt.Sprintf("claim %s has been drifted for an hour and stays, with %d nodes in NodePool %s",
			claim.Name, w.count(pool.Name), pool.Name)
	})
	return problem
}

// idle finds a node without pods that emptiness should have removed (D-03).
func (w *World) idle() string {
	used := map[string]bool{}
	w.server.All(&corev1.Pod{}, func(o client.Object) {
		pod := o.(*corev1.Pod)
		stuck := pod.DeletionTimestamp != nil && w.cluster.clings(pod)
		if !isDaemon(pod) && !translate.Finished(pod) && !stuck {
			used[pod.Spec.NodeName] = true
		}
	})
	problem, room := "", w.roomAsked()+w.headroomAsked() // each pod of a buffer may keep a node
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		claim := o.(*karpenterv1.NodeClaim)
		key := client.ObjectKey{Name: poolName(claim)}
		pool, _ := w.server.Peek(&karpenterv1.NodePool{}, key).(*karpenterv1.NodePool)
		if pool == nil || isOther(claim) || isOther(pool) || pool.Spec.Replicas != nil ||
			claim.DeletionTimestamp != nil || claim.Status.NodeName == "" || used[claim.Status.NodeName] ||
			problem != "" {
			return
		}
		for _, budget := range pool.Spec.Disruption.Budgets {
			if budgetOf(budget.Nodes.String(), int(w.count(pool.Name))) == 0 {
				return
			}
		}
		if w.count(pool.Name)-w.others(pool.Name) <= floorOf(pool) {
			return
		}
		if room > 0 {
			room--
			return
		}
		problem = fmt.Sprintf("node %s of claim %s has been empty for an hour and stays", claim.Status.NodeName,
			claim.Name)
	})
	return problem
}

// restless is how many intents may be taken back in a quiet hour. Each one taints a node for a moment.
const restless = 30

// sparedSince counts the intents taken back since then.
func (w *World) sparedSince(then time.Duration) int {
	n := 0
	for _, at := range w.checks.sparings {
		if at >= then {
			n++
		}
	}
	return n
}
