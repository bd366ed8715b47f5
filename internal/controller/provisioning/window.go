package provisioning

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// Window says when to plan for pods that are new (P-25): when no further one has come for the idle time, or when the first has
// waited for the longest time. A pod has come when it was made, however long kube-scheduler takes to pass over it. The window is
// told of pods by whoever hears the watches, and is all that the controller remembers; losing it costs one idle time. It is safe
// for concurrent use and calls nothing while locked.
type Window struct {
	idle, longest time.Duration
	untried       Untried

	mu          sync.Mutex
	known       map[types.UID]struct{}  // pods that need a node and have opened or extended a window, or were planned for
	heard       map[types.UID]time.Time // when pods were first heard of that kube-scheduler has not tried
	lags        map[string]lag          // of each scheduler, by its name
	first, last time.Time               // of the pods of the open window; first is zero while none is open
	urgent      bool
	failed      int       // how many plans in a row could not be carried out
	rest        time.Time // nothing is planned before, after one of these
	planned     uint64    // version of the snapshot that was planned last
	again       bool      // that plan put launches off
	turn        turn
}

// Untried says of a pod that kube-scheduler has not tried yet whether it is planned for already, and whether one that is alike was
// passed over.
type Untried func(*corev1.Pod) (planned, alike bool)

// NewWindow returns a window that closes after idle without a new pod, and in any case after longest. untried may be nil: then only
// pods that kube-scheduler has passed over are planned for.
func NewWindow(idle, longest time.Duration, untried Untried) *Window {
	return &Window{
		idle: idle, longest: longest, untried: untried,
		known: map[types.UID]struct{}{}, heard: map[types.UID]time.Time{}, lags: map[string]lag{},
		turn: turn{left: map[string]left{}},
	}
}

// lag is when a scheduler has last tried a pod, and for how long that had been there.
type lag struct {
	at     time.Time
	waited time.Duration
}

// behind reports whether a scheduler is busy with pods that have been there for longer than the idle time (ADR 0034). One that has
// not tried any for so long may be down, or have nothing to do.
func (w *Window) behind(scheduler string, now time.Time) bool {
	last := w.lags[scheduler]
	return last.waited > w.idle && now.Sub(last.at) <= w.idle
}

// Apply takes in the state of a pod at now. A pod that was passed over opens the window, or has come when it was first heard of.
// One that was not tried yet does the same as far as it is known what will be said of it, and while its scheduler is behind: then
// it is not bound soon in any case. Else it opens the window without keeping it open, since it may be bound in a moment.
func (w *Window) Apply(pod *corev1.Pod, now time.Time) {
	passed, untried := translate.Provisionable(pod), translate.Untried(pod)
	var planned, alike bool
	if untried && w.untried != nil {
		planned, alike = w.untried(pod)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, known := w.known[pod.UID]
	heard, waits := w.heard[pod.UID]
	switch {
	case !passed && !untried:
		if known && pod.Spec.NodeName != "" {
			w.turn.moved = now
			w.turn.bound++
		}
		w.forget(pod.UID)
	case known: // that the scheduler passes over a pod which was planned for is no news, nor is its next try
	case passed, alike:
		w.known[pod.UID] = struct{}{}
		if waits && !w.first.IsZero() {
			w.come(heard)
		} else {
			w.come(now)
		}
	case planned && (w.first.IsZero() || w.behind(pod.Spec.SchedulerName, now)):
		w.come(now)
	}
	switch {
	case untried && !waits:
		w.heard[pod.UID] = now
	case waits && (passed || pod.Spec.NodeName != ""):
		w.lags[pod.Spec.SchedulerName] = lag{now, now.Sub(heard)}
		delete(w.heard, pod.UID)
	}
}

// come takes in when a pod has come.
func (w *Window) come(at time.Time) {
	if w.first.IsZero() {
		w.first = at
	}
	if at.After(w.last) {
		w.last = at
	}
}

func (w *Window) forget(uid types.UID) {
	delete(w.known, uid)
	delete(w.heard, uid)
}

// Planned takes in for which pods a plan was made. Those that were passed over are known, and those that nothing is known of are gone.
func (w *Window) Planned(pods []*cluster.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pod := range pods {
		if uid := types.UID(pod.UID); !w.heard[uid].IsZero() {
			w.known[uid] = struct{}{}
		}
	}
}

// Remove takes in that a pod is gone.
func (w *Window) Remove(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(pod.UID)
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
