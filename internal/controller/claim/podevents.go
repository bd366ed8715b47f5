package claim

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// Pods come and go in bursts, and each write of lastPodEventTime is a request. dedupe is the minimum time between two
// writes for one claim, dedupeIdle that where no quiet time runs.
const (
	dedupe     = 10 * time.Second
	dedupeIdle = time.Minute
)

// afterDecision is how long after a node's quiet time the condition is set. By then the disruption singleton has
// looked at the node. A node that is removed needs no condition, which would only collide with the intent.
const afterDecision = 2 * time.Second

// PodEvents remembers from the watches when a pod last came to a node or left it. Objects cannot tell, because a
// deleted pod is never seen again. A process that ends loses at most what is not yet on the claim. It is safe for
// concurrent use and calls nothing while locked.
type PodEvents struct {
	mu   sync.Mutex
	pods map[types.UID]podState
	last map[string]time.Time // by node
}

// podState is the part of a pod whose change is an event.
type podState struct {
	node   string
	ending bool // terminating or finished
}

// NewPodEvents returns an empty memory.
func NewPodEvents() *PodEvents {
	return &PodEvents{pods: map[types.UID]podState{}, last: map[string]time.Time{}}
}

// Apply records the state of a pod at now, and reports whether that is an event for its node. A pod that is new here
// came when it was bound. That may be long ago if the process has just started.
func (p *PodEvents) Apply(pod *corev1.Pod, now time.Time) bool {
	if pod.Spec.NodeName == "" || slices.ContainsFunc(pod.OwnerReferences, ownedByDaemonSet) {
		return false
	}
	state := podState{node: pod.Spec.NodeName, ending: pod.DeletionTimestamp != nil || translate.Finished(pod)}
	at := now
	p.mu.Lock()
	defer p.mu.Unlock()
	known, seen := p.pods[pod.UID]
	if known == state {
		return false
	}
	if !seen {
		at = boundAt(pod, now)
	}
	p.pods[pod.UID] = state
	last, stands := p.last[state.node]
	// Kubernetes fails and deletes orphans after their Node is gone: what ends there brings no node back
	if !stands && state.ending || !at.After(last) {
		return false
	}
	p.last[state.node] = at
	return true
}

// Remove records that a pod is gone at now, and reports whether that is an event for its node.
func (p *PodEvents) Remove(pod *corev1.Pod, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.pods[pod.UID] // without a node if it was never seen
	delete(p.pods, pod.UID)
	if _, stands := p.last[known.node]; !stands || known.ending {
		return false
	}
	p.last[known.node] = now
	return true
}

// RemoveNode forgets a node that is gone.
func (p *PodEvents) RemoveNode(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, name)
}

// Last returns when a pod last came to the node or left it; zero when that is not known.
func (p *PodEvents) Last(node string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last[node]
}

func boundAt(pod *corev1.Pod, now time.Time) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && c.LastTransitionTime.Time.Before(now) {
			return c.LastTransitionTime.Time
		}
	}
	return now
}

func ownedByDaemonSet(owner metav1.OwnerReference) bool { return owner.Kind == "DaemonSet" }

// watchPods writes the time of the last pod event, and updates the condition Consolidatable (D-03).
func (c *Controller) watchPods(ctx context.Context, w *work) error {
	if !w.is(karpenterv1.ConditionTypeInitialized) || w.is(karpenterv1.ConditionTypeDisruptionReason) {
		return nil // too early, or decided
	}
	pool := &karpenterv1.NodePool{}
	name := translate.PoolOf(w.claim)
	if name == "" {
		c.stamp(w, dedupeIdle)
		return nil
	}
	if err := c.config.Client.Get(ctx, types.NamespacedName{Name: name}, pool,
		client.UnsafeDisableDeepCopy); err != nil {
		return client.IgnoreNotFound(err)
	}
	c.stamp(w, stampEvery(pool.Spec.Disruption.ConsolidateAfter))
	at := translate.ConsolidatableAt(w.claim, pool.Spec.Disruption.ConsolidateAfter)
	if at == cluster.Never {
		condition.Clear(&w.claim.Status.Conditions, karpenterv1.ConditionTypeConsolidatable)
		return nil
	}
	begins, now := time.Unix(at, 0), c.config.Now()
	if now.Before(begins) {
		condition.Clear(&w.claim.Status.Conditions, karpenterv1.ConditionTypeConsolidatable)
	}
	// one write for both conditions
	if left := begins.Add(afterDecision).Sub(now); left <= 0 || w.fresh && !now.Before(begins) {
		c.set(w, condition.True(karpenterv1.ConditionTypeConsolidatable, "Consolidatable", ""))
	} else if !w.is(karpenterv1.ConditionTypeConsolidatable) {
		w.askAgain(left)
	} // else it was true before this event too: with no quiet time, bursts of pods would only toggle it
	return nil
}

// stampEvery returns the minimum time between two writes in a pool. A quiet time shorter than dedupe must not end
// while an event waits to be written.
func stampEvery(consolidateAfter karpenterv1.NillableDuration) time.Duration {
	quiet := consolidateAfter.Duration
	switch {
	case quiet == nil || *quiet == 0: // nobody uses it until the pool is changed
		return dedupeIdle
	case *quiet <= dedupe:
		return 0
	}
	return dedupe
}

// stamp writes the time of the last pod event, at most once per every. An event that comes too soon is written later,
// never lost. Too soon is after the last write or, where no quiet time runs, after the node's initialization.
func (c *Controller) stamp(w *work, every time.Duration) {
	last, stamped := c.config.PodEvents.Last(w.claim.Status.NodeName).Truncate(time.Second),
		w.claim.Status.LastPodEventTime.Time
	if !last.After(stamped) {
		return
	}
	since, _ := condition.Since(w.claim.Status.Conditions, karpenterv1.ConditionTypeInitialized)
	if every == dedupeIdle && since.After(stamped) { // pods come right after a node
		stamped = since
	}
	// a fresh node's status is written anyway
	if wait := stamped.Add(every).Sub(c.config.Now()); wait > 0 && !w.fresh {
		w.askAgain(wait)
		return
	}
	w.claim.Status.LastPodEventTime = metav1.NewTime(last)
}
