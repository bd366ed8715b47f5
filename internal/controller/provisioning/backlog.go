package provisioning

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// backlog is the pods that a scheduler has not tried yet, in the order in which they were heard of. It tells whether the scheduler
// keeps up (P-25, ADR 0034).
type backlog struct {
	order   []arrival // tried ones among them until they are at its beginning
	waiting map[types.UID]struct{}
}

type arrival struct {
	pod types.UID
	at  time.Time
}

// backlog returns that of the scheduler.
func (w *Window) backlog(scheduler string) *backlog {
	b := w.backlogs[scheduler]
	if b == nil {
		b = &backlog{waiting: map[types.UID]struct{}{}}
		w.backlogs[scheduler] = b
	}
	return b
}

// add takes in a pod that was not tried yet.
func (b *backlog) add(pod types.UID, now time.Time) {
	b.order = append(b.order, arrival{pod, now})
	b.waiting[pod] = struct{}{}
}

// tried takes in that a pod was tried, or is gone.
func (b *backlog) tried(pod types.UID) {
	delete(b.waiting, pod)
	for len(b.order) > 0 {
		if _, waits := b.waiting[b.order[0].pod]; waits {
			return
		}
		b.order = b.order[1:]
	}
	b.order = nil
}

// behind reports whether a pod was heard of longer than idle ago and not tried since.
func (b *backlog) behind(now time.Time, idle time.Duration) bool {
	return len(b.order) > 0 && now.Sub(b.order[0].at) > idle
}
