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

// dedupe is the least time between two stamps of lastPodEventTime on one claim: pods come and go in bursts.
const dedupe = 10 * time.Second

// afterDecision is how long after a node's quiet time the condition is set: by then the singleton that removes nodes has
// looked at it, and a node that goes needs no condition that would only collide with the intent.
const afterDecision = 2 * time.Second

// PodEvents remembers when a pod last came to a node or left it, as the watches tell. A pod that is deleted at once is
// never seen again, so this cannot be read off the objects. What is lost with the process is at most what was not yet
// written to the claim. It is safe for concurrent use and calls nothing while locked.
type PodEvents struct {
	mu   sync.Mutex
	pods map[types.UID]podState
	last map[string]time.Time // by node
	// first is since when an event of a node has not been written to its claim.
	first map[string]time.Time
}

// podState is what of a pod makes an event when it changes.
type podState struct {
	node   string
	ending bool // terminating or finished
}

// NewPodEvents returns an empty memory.
func NewPodEvents() *PodEvents {
	return &PodEvents{pods: map[types.UID]podState{}, last: map[string]time.Time{}, first: map[string]time.Time{}}
}

// Apply takes in the state of a pod at now, and reports whether that is an event for its node. A pod that is new here
// came when it was bound, which may be long ago: the process has just started.
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
	if !at.After(p.last[state.node]) {
		return false
	}
	p.happened(state.node, at, now)
	return true
}

// Remove takes in that a pod is gone at now, and reports whether that is an event for its node.
func (p *PodEvents) Remove(pod *corev1.Pod, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.pods[pod.UID] // on no node when it was never seen
	delete(p.pods, pod.UID)
	if _, stands := p.last[known.node]; !stands || known.ending {
		return false
	}
	p.happened(known.node, now, now)
	return true
}

// happened notes an event. The lock is held.
func (p *PodEvents) happened(node string, at, now time.Time) {
	p.last[node] = at
	if _, waits := p.first[node]; !waits {
		p.first[node] = now
	}
}

// waiting returns since when an event of the node waits to be written; now when nothing is known of one.
func (p *PodEvents) waiting(node string, now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if since, waits := p.first[node]; waits && since.Before(now) {
		return since
	}
	return now
}

// written takes in that what happened up to a time is on its way to the claim.
func (p *PodEvents) written(node string, last time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last[node].Truncate(time.Second).After(last) {
		delete(p.first, node)
	}
}

// RemoveNode forgets a node that is gone.
func (p *PodEvents) RemoveNode(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, name)
	delete(p.first, name)
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

// watchPods stamps the time of the last pod event, and keeps the condition Consolidatable (D-03).
func (c *Controller) watchPods(ctx context.Context, w *work) error {
	if !w.is(karpenterv1.ConditionTypeInitialized) || w.is(karpenterv1.ConditionTypeDisruptionReason) {
		return nil // too early, or decided
	}
	pool := &karpenterv1.NodePool{}
	name := translate.PoolOf(w.claim)
	if name == "" {
		c.stamp(w, karpenterv1.NillableDuration{})
		return nil
	}
	if err := c.config.Client.Get(ctx, types.NamespacedName{Name: name}, pool, client.UnsafeDisableDeepCopy); err != nil {
		return client.IgnoreNotFound(err)
	}
	c.stamp(w, pool.Spec.Disruption.ConsolidateAfter)
	at := translate.ConsolidatableAt(w.claim, pool.Spec.Disruption.ConsolidateAfter)
	if at == cluster.Never {
		condition.Clear(&w.claim.Status.Conditions, karpenterv1.ConditionTypeConsolidatable)
		return nil
	}
	begins, now := time.Unix(at, 0), c.config.Now()
	if now.Before(begins) {
		condition.Clear(&w.claim.Status.Conditions, karpenterv1.ConditionTypeConsolidatable)
	}
	if left := begins.Add(afterDecision).Sub(now); left <= 0 || w.fresh && !now.Before(begins) { // one write for both conditions
		c.set(w, condition.True(karpenterv1.ConditionTypeConsolidatable, "Consolidatable", ""))
	} else if !w.is(karpenterv1.ConditionTypeConsolidatable) {
		w.askAgain(left)
	} // else it was true before this event too: without a quiet time, bursts of pods would only switch it off and on
	return nil
}

// stampEvery returns the least time between two stamps in a pool. A quiet time shorter than dedupe must not run out while
// an event waits to be written.
func stampEvery(consolidateAfter karpenterv1.NillableDuration) time.Duration {
	if quiet := consolidateAfter.Duration; quiet != nil && *quiet > 0 && *quiet <= dedupe {
		return 0
	}
	return dedupe
}

// ahead is how long before a quiet time runs out an event is written that would have it begin anew.
const ahead = 2 * time.Second

// gathers returns how long the first event of a burst waits for further ones, so that one write does for all: as long as nobody acts
// on it. A node without a quiet time may go in any case, one whose quiet time runs may not, and both wait for dedupe at most.
func (c *Controller) gathers(w *work, consolidateAfter karpenterv1.NillableDuration) time.Duration {
	quiet := consolidateAfter.Duration
	switch {
	case quiet == nil || *quiet <= 0:
		return dedupe
	case *quiet <= dedupe:
		return 0
	}
	ends := time.Unix(translate.ConsolidatableAt(w.claim, consolidateAfter), 0)
	return min(dedupe, ends.Add(-ahead).Sub(c.config.Now()))
}

// stamp writes the time of the last pod event, at most every so often; an event that comes too soon after the last
// stamp is written later, never lost.
func (c *Controller) stamp(w *work, consolidateAfter karpenterv1.NillableDuration) {
	node := w.claim.Status.NodeName
	last, stamped := c.config.PodEvents.Last(node).Truncate(time.Second), w.claim.Status.LastPodEventTime.Time
	if !last.After(stamped) {
		return
	}
	now := c.config.Now()
	due, first := stamped.Add(stampEvery(consolidateAfter)), c.config.PodEvents.waiting(node, now)
	if !first.Before(due) {
		due = first.Add(c.gathers(w, consolidateAfter))
	}
	if wait := due.Sub(now); wait > 0 {
		w.askAgain(wait)
		return
	}
	w.claim.Status.LastPodEventTime = metav1.NewTime(last)
	w.saved = append(w.saved, func() { c.config.PodEvents.written(node, last) })
}
