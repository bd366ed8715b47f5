package provisioning

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// Window says when to plan for pods that are new (P-25): when no further one has come for the idle time, or when the
// first has waited for the longest time. It is told of pods by whoever hears the watches, and is all that the
// controller remembers; losing it costs one idle time. It is safe for concurrent use and calls nothing while locked.
type Window struct {
	idle, longest time.Duration

	mu          sync.Mutex
	known       map[types.UID]bool // pods that need a node and have opened or extended a window
	first, last time.Time          // of the pods of the open window; first is zero while none is open
	urgent      bool
	failed      int       // how many plans in a row could not be carried out
	rest        time.Time // nothing is planned before, after one of these
	planned     uint64    // version of the snapshot that was planned last
	again       bool      // that plan put launches off
	turn        turn
}

// NewWindow returns a window that closes after idle without a new pod, and in any case after longest.
func NewWindow(idle, longest time.Duration) *Window {
	return &Window{idle: idle, longest: longest, known: map[types.UID]bool{}}
}

// Apply takes in the state of a pod at now.
func (w *Window) Apply(pod *corev1.Pod, now time.Time) {
	needsNode := translate.Provisionable(pod)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !needsNode {
		if w.known[pod.UID] && pod.Spec.NodeName != "" {
			w.turn.moved = now
		}
		delete(w.known, pod.UID)
		return
	}
	if w.known[pod.UID] {
		return // the scheduler's next try with the same pod is no news
	}
	w.known[pod.UID] = true
	if w.first.IsZero() {
		w.first = now
	}
	w.last = now
}

// Remove takes in that a pod is gone.
func (w *Window) Remove(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.known, pod.UID)
}

// Urge makes the next look plan without waiting: capacity that was promised to pods will not come (P-31).
func (w *Window) Urge() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.urgent = true
}

const (
	// restFirst is how long nothing is planned after a plan that could not be carried out, doubled for each further one in
	// a row up to restMost. Pods and nodes come and go all the while, and each of them asks for a plan.
	restFirst = 100 * time.Millisecond
	restMost  = 10 * time.Second
)

// CarriedOut takes in whether a plan could be carried out.
func (w *Window) CarriedOut(err error, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.failed, w.rest = 0, time.Time{}
		return
	}
	w.urgent = true
	w.rest = now.Add(min(restMost, restFirst<<min(w.failed, 10)))
	w.failed++
}

// Wait returns how long the open window still has to stay open, or to rest after a failure; 0 when it is time to plan, or
// none is open.
func (w *Window) Wait(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if rest := w.rest.Sub(now); rest > 0 && rest <= restMost { // clocks jump
		return rest
	}
	if w.first.IsZero() || w.urgent {
		return 0
	}
	due := w.last.Add(w.idle)
	if latest := w.first.Add(w.longest); latest.Before(due) {
		due = latest
	}
	return max(0, due.Sub(now))
}

// Close begins a new window and reports whether there is anything new to plan in the picture of that version.
func (w *Window) Close(version uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	fresh := w.urgent || w.again || !w.first.IsZero() || w.planned != version
	w.first, w.last, w.urgent, w.again, w.planned = time.Time{}, time.Time{}, false, false, version
	return fresh
}
