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
	// left are the pods that have to be gone before the instance may be ended, whatever is done about them now.
	left []*corev1.Pod
	// evict are those of left whose turn it is.
	evict []*corev1.Pod
	// remove are those of left that are deleted directly, since the node's deadline leaves no more than their own grace
	// period: the PDB and do-not-disrupt end here (P-41).
	remove []removal
	// held are pods that ask not to be disrupted, as text.
	held []string
	// reason is why the node goes, as pods_drained_total has it, and why what happens to the node, in words.
	reason, why string
	// next is when the next pod has to be deleted directly; zero when there is no deadline.
	next time.Time
}

// removal is a pod to delete with the grace period that is left, in seconds.
type removal struct {
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

// criticalPriority is the priority from which on Kubernetes counts a pod as critical to the system.
const criticalPriority = 2_000_000_000

// stuckAfter is how long after its grace period a pod that is still there counts as stuck: its kubelet does not answer,
// and waiting would not help.
const stuckAfter = time.Minute

// planDrain decides about the pods of a node at now. due is the node's deadline when limited.
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
			plan.held = append(plan.held, fmt.Sprintf("pod %s/%s asks not to be disrupted%s", pod.Namespace, pod.Name, until))
			continue
		}
		plan.evict = append(plan.evict, pod)
	}
	return plan
}

// deadline reports whether the pod is dealt with by the node's deadline instead of by an eviction.
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
		return true // is on its way, in time
	}
	p.remove = append(p.remove, removal{pod: pod, graceSeconds: seconds})
	return true
}

// againAfter returns when to look at the node again: after usual, or when the next pod's deadline comes.
func (p *drainPlan) againAfter(now time.Time, usual time.Duration) time.Duration {
	if p.next.IsZero() {
		return usual
	}
	return min(usual, max(time.Millisecond, p.next.Sub(now)))
}

// mustLeave reports whether the drain has to wait for the pod. Finished pods, static pods, pods that tolerate the taint
// and so would come back, and pods that a dead kubelet will never end are not waited for.
func mustLeave(pod *corev1.Pod, now time.Time) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	if _, static := pod.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return false
	}
	if pod.DeletionTimestamp != nil && now.Sub(pod.DeletionTimestamp.Time) > stuckAfter {
		return false
	}
	return !toleratesDisruption(pod)
}

func toleratesDisruption(pod *corev1.Pod) bool {
	for _, t := range pod.Spec.Tolerations {
		if t.Effect != "" && t.Effect != corev1.TaintEffectNoSchedule {
			continue
		}
		exists := t.Operator == corev1.TolerationOpExists
		if exists && t.Key == "" {
			return true
		}
		equal := (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == ""
		if t.Key == karpenterv1.DisruptedTaintKey && (exists || equal) {
			return true
		}
	}
	return false
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

// heldUntil reports whether do-not-disrupt holds the pod at now; the text says until when, if that is known (V-15, D-02).
func heldUntil(pod *corev1.Pod, now time.Time) (string, bool) {
	until, err := translate.ProtectedUntil(pod)
	if err != nil || until <= now.Unix() {
		return "", false // a value that means nothing holds nothing; an event on the pod says so
	}
	if until == cluster.Never {
		return "", true
	}
	return " until " + time.Unix(until, 0).UTC().Format(time.RFC3339), true
}

// deadline returns when the node has to be gone, and whether there is such a time: the claim's terminationGracePeriod from
// the claim's deletion (P-41), as its controller writes it down. A node that was deleted first waits until its claim is, too:
// its pods get the whole time.
func deadline(claim *karpenterv1.NodeClaim) (time.Time, bool) {
	if claim == nil {
		return time.Time{}, false
	}
	if due, err := time.Parse(time.RFC3339, claim.Annotations[karpenterv1.NodeClaimTerminationTimestampAnnotationKey]); err == nil {
		return due, true
	}
	if claim.Spec.TerminationGracePeriod == nil || claim.DeletionTimestamp == nil {
		return time.Time{}, false
	}
	return claim.DeletionTimestamp.Add(claim.Spec.TerminationGracePeriod.Duration), true
}
