package node

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// drainPlan is what to do with the pods of a node now.
type drainPlan struct {
	// left are the pods that must be gone before the instance may be ended, whatever happens to them now.
	left []*corev1.Pod
	// evict are those of left whose turn it is.
	evict []*corev1.Pod
	// remove are those of left that are deleted directly. The node's deadline leaves only their own grace period, so
	// the PDB and do-not-disrupt no longer apply (P-41).
	remove []departure
	// held are pods that ask not to be disrupted, as text.
	held []string
	// reason is why the node goes, for pods_drained_total. why is what happens to the node, as text.
	reason, why string
	// next is when the next pod must be deleted directly or gets its turn; zero if there is none.
	next time.Time
}

// departure is a pod to delete, with the remaining grace period in seconds.
type departure struct {
	pod          *corev1.Pod
	graceSeconds int64
}

// The tiers in which pods leave, so that what other pods rely on goes last (P-40).
const (
	tierPods = iota
	tierDaemons
	tierCriticalPods
	tierCriticalDaemons
)

// criticalPriority is the lowest priority that Kubernetes counts as critical to the system.
const criticalPriority = 2_000_000_000

// planDrain decides what happens to the pods of a node at now. due is the node's deadline if limited is true.
func planDrain(pods []corev1.Pod, now, due time.Time, limited bool) drainPlan {
	var plan drainPlan
	for i := range pods {
		if mustLeave(&pods[i], now) {
			plan.left = append(plan.left, &pods[i])
		}
	}
	inOrder(plan.left)
	for _, pod := range plan.left {
		if limited && plan.deadline(pod, now, due) {
			continue
		}
		if pod.DeletionTimestamp != nil || tier(pod) != tier(plan.left[0]) {
			continue
		}
		if until, held := heldUntil(pod, now); held {
			plan.held = append(plan.held, fmt.Sprintf("pod %s/%s asks not to be disrupted%s", pod.Namespace, pod.Name,
				until))
			continue
		}
		plan.evict = append(plan.evict, pod)
	}
	return plan
}

// deadline reports whether the node's deadline handles the pod instead of an eviction.
func (p *drainPlan) deadline(pod *corev1.Pod, now, due time.Time) bool {
	grace := 30 * time.Second // the API server's default
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		grace = time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	}
	start := due.Add(-grace)
	if now.Before(start) {
		if p.next.IsZero() || start.Before(p.next) {
			p.next = start
		}
		return false
	}
	seconds := max(1, int64(due.Sub(now).Round(time.Second)/time.Second))
	if pod.DeletionTimestamp != nil && !pod.DeletionTimestamp.After(now.Add(time.Duration(seconds+1)*time.Second)) {
		return true // it will end in time
	}
	p.remove = append(p.remove, departure{pod: pod, graceSeconds: seconds})
	return true
}

// againAfter returns when to check the node again: after usual, or at next if that is earlier.
func (p *drainPlan) againAfter(now time.Time, usual time.Duration) time.Duration {
	if p.next.IsZero() {
		return usual
	}
	return min(usual, max(time.Millisecond, p.next.Sub(now)))
}

// mustLeave reports whether the drain waits for the pod: it evicts it, and no dead kubelet keeps it from ending.
func mustLeave(pod *corev1.Pod, now time.Time) bool {
	stuck := pod.DeletionTimestamp != nil && now.Sub(pod.DeletionTimestamp.Time) > translate.StuckAfter
	return !stuck && translate.Evicted(pod)
}

func tier(pod *corev1.Pod) int {
	critical := pod.Spec.Priority != nil && *pod.Spec.Priority >= criticalPriority ||
		pod.Spec.PriorityClassName == "system-cluster-critical" || pod.Spec.PriorityClassName == "system-node-critical"
	daemon := slices.ContainsFunc(pod.OwnerReferences, ownedByDaemonSet)
	switch {
	case critical && daemon:
		return tierCriticalDaemons
	case critical:
		return tierCriticalPods
	case daemon:
		return tierDaemons
	}
	return tierPods
}

// heldUntil reports whether do-not-disrupt holds the pod at now; the text says until when, if that is known (V-15,
// D-02).
func heldUntil(pod *corev1.Pod, now time.Time) (string, bool) {
	until, err := translate.ProtectedUntil(pod)
	if err != nil || until <= now.Unix() {
		return "", false // an invalid value holds nothing; an event on the pod says so
	}
	if until == cluster.Never {
		return "", true
	}
	return " until " + time.Unix(until, 0).UTC().Format(time.RFC3339), true
}

// deadline returns when the node must be gone, and whether there is such a time. It is the claim's deletion plus its
// terminationGracePeriod (P-41), as recorded by the claim's controller. If the node was deleted first, it starts with
// the claim's deletion: its pods get the whole time.
func deadline(claim *karpenterv1.NodeClaim) (time.Time, bool) {
	if claim == nil {
		return time.Time{}, false
	}
	if due, err := time.Parse(time.RFC3339,
		claim.Annotations[karpenterv1.NodeClaimTerminationTimestampAnnotationKey]); err == nil {
		return due, true
	}
	if claim.Spec.TerminationGracePeriod == nil || claim.DeletionTimestamp == nil {
		return time.Time{}, false
	}
	return claim.DeletionTimestamp.Add(claim.Spec.TerminationGracePeriod.Duration), true
}
