package provisioning

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// Window says when to plan for new pods (P-25): when none has come for the idle time, or when the first has waited for
// the longest time. A pod has come when it was created, however late kube-scheduler passes over it. The watches'
// handlers report pods to the window. It is the controller's only memory of pods; losing it costs one idle time. It is
// safe for concurrent use and calls nothing while locked.
type Window struct {
	idle, longest time.Duration
	untried       Untried

	mu sync.Mutex
	// pods that need a node and have opened or extended a window, or have been planned for
	known       map[types.UID]struct{}
	heard       map[types.UID]time.Time // when untried pods were first seen
	lags        map[string]lag          // by name of the scheduler
	first, last time.Time               // arrival of the open window's pods; first is zero if none is open
	urgent      bool
	failed      int       // plans in a row that could not be carried out
	rest        time.Time // after such a failure, no plan before this time
	planned     uint64    // version of the last planned snapshot
	again       bool      // that plan postponed launches
	turn        turn
}

// Untried reports whether a pod that kube-scheduler has not tried yet is planned for already, and whether an equal pod
// was passed over.
type Untried func(*corev1.Pod) (planned, alike bool)

// NewWindow returns a window that closes after idle without a new pod, and after longest at the latest. If untried is
// nil, only pods that kube-scheduler has passed over are planned for.
func NewWindow(idle, longest time.Duration, untried Untried) *Window {
	return &Window{
		idle: idle, longest: longest, untried: untried,
		known: map[types.UID]struct{}{}, heard: map[types.UID]time.Time{}, lags: map[string]lag{},
		turn: turn{left: map[string]left{}},
	}
}

// lag is when a scheduler last tried a pod, and how long that pod had waited.
type lag struct {
	at     time.Time
	waited time.Duration
}

// behind reports whether a scheduler is busy with pods that have waited for longer than the idle time (ADR 0034). A
// scheduler that has tried no pod for that time may be down or idle.
func (w *Window) behind(scheduler string, now time.Time) bool {
	last := w.lags[scheduler]
	return last.waited > w.idle && now.Sub(last.at) <= w.idle
}

// Apply records the state of a pod at now. A pod that was passed over opens the window, or counts from when it was
// first seen. An untried pod does the same if an equal pod was passed over. Otherwise, if it is planned for, it opens
// the window but does not extend it, since it may be bound in a moment. If its scheduler is behind, it also extends
// it.
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
	case known: // a pod that was planned for brings no news when it is passed over or tried again
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

// come records when a pod has come.
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

// Planned records for which pods a plan was made. Pods not heard of are skipped: they are known already, or gone.
func (w *Window) Planned(pods []*cluster.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pod := range pods {
		if uid := types.UID(pod.UID); !w.heard[uid].IsZero() {
			w.known[uid] = struct{}{}
		}
	}
}

// Remove records that a pod is gone.
func (w *Window) Remove(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(pod.UID)
}

// Urge makes the controller plan next time without waiting: capacity promised to pods will not come (P-31).
func (w *Window) Urge() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.urgent = true
}

const (
	// restFirst is the pause after a plan that could not be carried out. Each further failure in a row doubles it, up
	// to restMost. Meanwhile pods and nodes come and go, and each asks for a plan.
	restFirst = 100 * time.Millisecond
	restMost  = 10 * time.Second
)

// CarriedOut records whether a plan could be carried out.
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

// Wait returns how long the open window must stay open, or the pause after a failure still lasts. It is 0 when it is
// time to plan or no window is open.
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

// Close starts a new window, and reports whether the snapshot of that version has anything new to plan.
func (w *Window) Close(version uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	fresh := w.urgent || w.again || !w.first.IsZero() || w.planned != version
	w.first, w.last, w.urgent, w.again, w.planned = time.Time{}, time.Time{}, false, false, version
	return fresh
}
