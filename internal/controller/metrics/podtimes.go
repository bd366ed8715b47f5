package metrics

import (
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// PodTimes measures how long pods take, from watch events and plans. It knows the pods that are not ready yet. It
// observes only while its process leads: all replicas see all pods, and each pod counts once. It is safe for
// concurrent use.
type PodTimes struct {
	metrics Pods

	mu    sync.Mutex
	leads bool
	pods  map[types.UID]*PodTime
}

// PodTime is what is known of a pod that is not ready yet. Times that have not come yet are zero.
type PodTime struct {
	Namespace, Name string
	Created         time.Time
	Seen            time.Time // as a pod that needs a node of ours
	Decided         time.Time // the first plan that had it
	Placed          time.Time // the first plan that had a place for it
	Bound           bool
	// Dynamic is true for a pod that requests devices by ResourceClaims.
	Dynamic bool
}

func newPodTimes(metrics Pods) *PodTimes {
	return &PodTimes{metrics: metrics, pods: map[types.UID]*PodTime{}}
}

// Lead sets whether this process leads.
func (t *PodTimes) Lead(leads bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leads = leads
}

// Apply records the state of a pod at now. A pod first seen after its phase Pending is not measured.
func (t *PodTimes) Apply(pod *corev1.Pod, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.pods[pod.UID]
	if translate.Finished(pod) {
		delete(t.pods, pod.UID)
		return
	}
	if known == nil {
		if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" {
			return
		}
		known = &PodTime{Namespace: pod.Namespace, Name: pod.Name, Created: pod.CreationTimestamp.Time,
			Dynamic: len(pod.Spec.ResourceClaims) > 0}
		t.pods[pod.UID] = known
	}
	if known.Seen.IsZero() && translate.Provisionable(pod) {
		known.Seen = now
	}
	if at, bound := since(pod, corev1.PodScheduled); bound && !known.Bound {
		known.Bound = true
		t.bound(known, at)
	}
	if at, ready := since(pod, corev1.PodReady); ready {
		t.started(known, at)
		delete(t.pods, pod.UID)
	}
}

// Remove records that a pod is gone.
func (t *PodTimes) Remove(pod *corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pods, pod.UID)
}

// Decided records that a plan at now included a pod, and whether it had a place for it.
func (t *PodTimes) Decided(uid string, placed bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.pods[types.UID(uid)]
	if known == nil {
		return
	}
	if known.Decided.IsZero() {
		known.Decided = now
		if known.Seen.IsZero() { // planned for before kube-scheduler has passed over it (P-01)
			known.Seen = now
		}
		if t.leads {
			t.metrics.Decisions.WithLabelValues().Observe(max(0, now.Sub(known.Seen).Seconds()))
		}
	}
	if placed && known.Placed.IsZero() {
		known.Placed = now
	}
}

// Waiting returns the pods that are not ready yet, in any order.
func (t *PodTimes) Waiting() []PodTime {
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting := make([]PodTime, 0, len(t.pods))
	for _, known := range t.pods {
		waiting = append(waiting, *known)
	}
	return waiting
}

func (t *PodTimes) bound(pod *PodTime, at time.Time) {
	if !t.leads {
		return
	}
	dynamic := strconv.FormatBool(pod.Dynamic)
	t.metrics.Bound.WithLabelValues(dynamic).Observe(max(0, at.Sub(pod.Created).Seconds()))
	if !pod.Placed.IsZero() {
		t.metrics.ProvisioningBound.WithLabelValues(dynamic).Observe(max(0, at.Sub(pod.Placed).Seconds()))
	}
}

func (t *PodTimes) started(pod *PodTime, at time.Time) {
	if !t.leads {
		return
	}
	t.metrics.Startup.WithLabelValues().Observe(max(0, at.Sub(pod.Created).Seconds()))
	if !pod.Placed.IsZero() {
		t.metrics.ProvisioningStartup.WithLabelValues().Observe(max(0, at.Sub(pod.Placed).Seconds()))
	}
}

// since returns when a condition of a pod became true, and whether it is.
func since(pod *corev1.Pod, kind corev1.PodConditionType) (time.Time, bool) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == kind {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
		}
	}
	return time.Time{}, false
}
