package sim

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-autoscaler/joiner/internal/kube"
)

// Delays after a failed step, as in package serve.
const (
	retryFirst = 100 * time.Millisecond
	retryMost  = 10 * time.Second
)

// waiting is a request in a queue.
type waiting struct {
	request reconcile.Request
	at      time.Duration // not before
}

// line is one controller in a replica with its queue. Equal requests are merged into the earliest, a request in
// progress waits, and at most Workers requests are processed at the same time.
type line struct {
	kube.Controller
	replica  *replica
	queue    []waiting // in the order of arrival
	busy     map[reconcile.Request]bool
	failures map[reconcile.Request]int
}

func newLine(r *replica, c kube.Controller) *line {
	return &line{Controller: c, replica: r, busy: map[reconcile.Request]bool{}, failures: map[reconcile.Request]int{}}
}

// add queues a request after a delay.
func (l *line) add(request reconcile.Request, after time.Duration) {
	at := l.replica.world.now + max(0, after)
	for i := range l.queue {
		if l.queue[i].request == request {
			if at >= l.queue[i].at {
				return
			}
			l.queue[i].at = at
			l.replica.world.after(after, l.pump)
			return
		}
	}
	l.queue = append(l.queue, waiting{request, at})
	l.replica.world.after(after, l.pump)
}

// pump starts due requests, as far as workers are free.
func (l *line) pump() {
	r := l.replica
	if r.dead || !r.started || r.held(l.pump) {
		return
	}
	for len(l.busy) < l.Workers {
		best := -1
		for i, each := range l.queue {
			if each.at <= r.world.now && !l.busy[each.request] && (best < 0 || each.at < l.queue[best].at) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		request := l.queue[best].request
		l.queue = append(l.queue[:best], l.queue[best+1:]...)
		l.busy[request] = true
		r.world.begin(l, request)
		if r.dead {
			return
		}
	}
}

// done handles the outcome of a step.
func (l *line) done(request reconcile.Request, result reconcile.Result, err error) {
	delete(l.busy, request)
	switch {
	case err != nil:
		n := min(l.failures[request], 20)
		l.failures[request]++
		l.add(request, min(retryFirst<<n, retryMost))
	case result.RequeueAfter > 0:
		delete(l.failures, request)
		l.add(request, result.RequeueAfter)
	default:
		delete(l.failures, request)
	}
	l.replica.world.after(0, l.pump)
}
