package joiner

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// atOnce serves a number of requests at the same time; the others wait as long as their client does. A request
// takes a place once its body has arrived, so a slow sender holds none. All requests together hold at most most bytes;
// beyond that, requests are turned away. Of each body it reads at most one byte more than largest: the handler refuses
// that.
func atOnce(places int, largest, most int64, handler http.Handler) http.Handler {
	slots := make(chan struct{}, places)
	var arrived atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arriving := &counted{from: io.LimitReader(r.Body, largest+1), all: &arrived, most: most}
		defer arriving.forget()
		body, err := io.ReadAll(arriving)
		if errors.Is(err, errTooMuch) {
			http.Error(w, fmt.Sprintf("requests of more than %d bytes are waiting: try again", most),
				http.StatusServiceUnavailable)
			return
		}
		if err != nil {
			http.Error(w, fmt.Sprintf("reading the request: %v", err), http.StatusBadRequest)
			return
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			whole := r.WithContext(r.Context())
			whole.Body = io.NopCloser(bytes.NewReader(body))
			handler.ServeHTTP(w, whole)
		case <-r.Context().Done():
		}
	})
}

// errTooMuch says that requests hold too many bytes.
var errTooMuch = errors.New("too many bytes")

// counted is a reader that adds what it reads to a count shared with others.
type counted struct {
	from io.Reader
	all  *atomic.Int64
	own  int64
	most int64
}

// Read implements io.Reader. It fails with errTooMuch.
func (c *counted) Read(into []byte) (int, error) {
	n, err := c.from.Read(into)
	c.own += int64(n)
	if c.all.Add(int64(n)) > c.most {
		return n, errTooMuch
	}
	return n, err
}

func (c *counted) forget() { c.all.Add(-c.own) }
