package readers

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// writeWithin is how long one write to a reader may take: a reader that stands still has the network's buffers before
// that.
const writeWithin = 30 * time.Second

// reader is one stream. What is to be sent waits in a list, so that nobody waits for the network.
type reader struct {
	packed bool
	cut    func() // ends a write that is under way

	mutex   sync.Mutex
	queue   []*frame
	first   int // how many of the queue do not count: a snapshot may be larger than any backlog
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

// send puts a frame in the list. A reader with too much in it is dropped, and the list with it.
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

// next takes the first frame of the list.
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

// written says that a frame that counts is gone.
func (r *reader) written(size int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.backlog -= size
}

// gzipHead begins a packed stream, which never ends in order: frames follow until the reader goes.
const gzipHead = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

// run sends frames until the request ends, the readers end, or the reader was dropped.
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
		_ = controller.SetWriteDeadline(time.Now().Add(writeWithin)) // a writer without deadlines has its own bounds
		if _, err := w.Write(data); err != nil {
			return
		}
		if counts {
			r.written(len(data))
		}
	}
}
