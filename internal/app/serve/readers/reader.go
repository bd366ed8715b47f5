package readers

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// writeWithin bounds one write to a reader. A stalled reader has the network's buffers before that.
const writeWithin = 30 * time.Second

// reader is one stream. Frames wait in a queue, so that nobody waits for the network.
type reader struct {
	packed bool
	cut    func() // interrupts a write

	mutex   sync.Mutex
	queue   []*frame
	first   int // how many frames of the queue do not count: a snapshot may be larger than any backlog
	backlog int
	dropped bool
	wake    chan struct{}
}

func newReader(packed bool, cut func()) *reader {
	return &reader{packed: packed, cut: cut, wake: make(chan struct{}, 1)}
}

func (r *reader) bytes(f *frame) []byte {
	if r.packed {
		return f.packed
	}
	return f.plain
}

// send queues a frame. A reader with too large a backlog is dropped together with its queue.
func (r *reader) send(f *frame, first bool) {
	r.mutex.Lock()
	switch {
	case r.dropped:
	case first:
		r.queue, r.first = append(r.queue, f), r.first+1
	case r.backlog+len(r.bytes(f)) > mostBacklog:
		r.dropped, r.queue = true, nil
	default:
		r.queue, r.backlog = append(r.queue, f), r.backlog+len(r.bytes(f))
	}
	dropped := r.dropped
	r.mutex.Unlock()
	if dropped {
		r.cut()
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// next takes the first frame of the queue. counts says that its size is part of the backlog.
func (r *reader) next() (data []byte, counts, dropped bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.dropped || len(r.queue) == 0 {
		return nil, false, r.dropped
	}
	f := r.queue[0]
	r.queue = r.queue[1:]
	if r.first > 0 {
		r.first--
		return r.bytes(f), false, false
	}
	return r.bytes(f), true, false
}

// written removes a frame that was sent from the backlog.
func (r *reader) written(size int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.backlog -= size
}

// gzipHead begins a packed stream. The stream never ends properly: frames follow until the reader goes.
const gzipHead = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

// run sends frames until the request ends, the Readers end, or the reader is dropped.
func (r *reader) run(ctx context.Context, ended <-chan struct{}, w http.ResponseWriter) {
	controller := http.NewResponseController(w)
	if r.packed {
		if _, err := io.WriteString(w, gzipHead); err != nil {
			return
		}
	}
	for {
		data, counts, dropped := r.next()
		switch {
		case dropped:
			return
		case data == nil:
			if controller.Flush() != nil {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-ended:
				return
			case <-r.wake:
			}
			continue
		}
		_ = controller.SetWriteDeadline(time.Now().Add(writeWithin)) // a writer without deadlines has other bounds
		if _, err := w.Write(data); err != nil {
			return
		}
		if counts {
			r.written(len(data))
		}
	}
}
