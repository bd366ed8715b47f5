package readers

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/console"
	"github.com/joiner-autoscaler/joiner/internal/readmodel"
)

// Paths of the read model.
const (
	Prefix     = "/joiner/v1/"
	PathView   = Prefix + "view"
	PathStream = Prefix + "stream"
)

// answerWithin is how long a request waits for the model.
const answerWithin = 20 * time.Second

// Guard allows only reads whose Host header is the loopback, and sets the headers of every answer. So it refuses a
// foreign page whose name was made to resolve to the loopback.
func Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", console.Policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "method "+r.Method+": GET and HEAD are answered", http.StatusMethodNotAllowed)
			return
		}
		if !Loopback(r.Host) {
			http.Error(w, fmt.Sprintf("Host is %q: 127.0.0.1, ::1 and localhost are answered", r.Host),
				http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Loopback reports whether a Host header names the loopback.
func Loopback(host string) bool {
	name := host
	if cut, _, err := net.SplitHostPort(host); err == nil {
		name = cut
	}
	name = strings.Trim(name, "[]")
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

// Mount adds the read model and the console to a mux.
func (r *Readers) Mount(mux *http.ServeMux) {
	led := func(serve http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, request *http.Request) {
			if why := r.config.Standby(request.Context()); why != "" {
				http.Error(w, why, http.StatusServiceUnavailable)
				return
			}
			serve(w, request)
		}
	}
	mux.HandleFunc("GET "+PathStream, led(r.stream))
	mux.HandleFunc("GET "+PathView, led(r.view))
	mux.HandleFunc("GET "+PathView+"/pods", led(r.pods))
	mux.HandleFunc("GET "+PathView+"/pods/{namespace}/{name}", led(r.detail(
		func(in readmodel.Input, q *http.Request) (any, bool) {
			return readmodel.PodOf(in, q.PathValue("namespace"), q.PathValue("name"))
		})))
	mux.HandleFunc("GET "+PathView+"/nodes/{name}", led(func(w http.ResponseWriter, q *http.Request) {
		from, err := number(q, "from")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.detail(func(in readmodel.Input, q *http.Request) (any, bool) {
			return readmodel.NodeOf(in, q.PathValue("name"), from)
		})(w, q)
	}))
	mux.HandleFunc("GET "+PathView+"/pools/{name}", led(r.detail(
		func(in readmodel.Input, q *http.Request) (any, bool) {
			return readmodel.PoolOf(in, q.PathValue("name"))
		})))
	mux.Handle("GET /", console.Handler())
}

// asked asks for the current model.
func (r *Readers) asked(ctx context.Context, a ask) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	a.answer = make(chan answer, 1)
	select {
	case r.asks <- a:
	case <-r.ended:
		return answer{}, errors.New("this process ends")
	case <-ctx.Done():
		return answer{}, errors.New("the read model is not made yet")
	}
	got := <-a.answer
	return got, got.err
}

func (r *Readers) stream(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no")
	w.Header().Set("Vary", "Accept-Encoding")
	if request.Method == http.MethodHead {
		return
	}
	controller := http.NewResponseController(w)
	packed := takesGzip(request)
	own := newReader(packed, func() { _ = controller.SetWriteDeadline(time.Unix(1, 0)) })
	since := request.URL.Query().Get("since")
	got, err := r.asked(request.Context(), ask{since: since, reader: own})
	defer func() {
		select {
		case r.leaves <- own:
		case <-r.ended:
		}
	}()
	switch {
	case err != nil:
		r.unavailable(w, err.Error())
		return
	case got.full:
		r.unavailable(w, fmt.Sprintf("there are %d readers, and no more are told at a time", mostReaders))
		return
	}
	if packed {
		w.Header().Set("Content-Encoding", "gzip")
	}
	_ = controller.SetReadDeadline(time.Time{}) // the request has been read; only the answer remains
	w.WriteHeader(http.StatusOK)
	own.run(request.Context(), r.ended, w)
}

func (r *Readers) unavailable(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", "10")
	http.Error(w, why, http.StatusServiceUnavailable)
}

// view answers with the whole model, or with the changes since the model that a reader has.
func (r *Readers) view(w http.ResponseWriter, request *http.Request) {
	got, err := r.asked(request.Context(), ask{since: request.URL.Query().Get("since")})
	if err != nil {
		r.unavailable(w, err.Error())
		return
	}
	if !got.resumes {
		r.write(w, request, got.snapshot)
		return
	}
	deltas := make([]json.RawMessage, 0, len(got.deltas))
	for _, data := range got.deltas {
		deltas = append(deltas, data)
	}
	r.answer(w, request, struct {
		ID     string            `json:"id"`
		Deltas []json.RawMessage `json:"deltas"`
	}{got.id, deltas})
}

func (r *Readers) pods(w http.ResponseWriter, request *http.Request) {
	from, err := number(request, "from")
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q := request.URL.Query()
	r.detail(func(in readmodel.Input, _ *http.Request) (any, bool) {
		return readmodel.WaitingPods(in, q.Get("cause"), q.Get("pool"), q.Get("ns"), q.Get("q"), from), true
	})(w, request)
}

// detail answers with something made from the model's input. It handles one request at a time, since the engine may
// have to plan for it.
func (r *Readers) detail(of func(readmodel.Input, *http.Request) (any, bool)) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		got, err := r.asked(request.Context(), ask{})
		if err != nil {
			r.unavailable(w, err.Error())
			return
		}
		select {
		case r.busy <- struct{}{}:
		case <-request.Context().Done():
			return
		}
		defer func() { <-r.busy }()
		found, there := of(got.input, request)
		if !there {
			http.Error(w, "the controller knows of nothing at "+request.URL.Path, http.StatusNotFound)
			return
		}
		r.answer(w, request, found)
	}
}

func (r *Readers) answer(w http.ResponseWriter, request *http.Request, what any) {
	data, err := json.Marshal(what)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	r.write(w, request, data)
}

func (r *Readers) write(w http.ResponseWriter, request *http.Request, data []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Vary", "Accept-Encoding")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeWithin))
	var err error
	if takesGzip(request) {
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		_, err = packed.Write(data)
		err = errors.Join(err, packed.Close())
	} else {
		_, err = w.Write(data)
	}
	if err != nil && request.Context().Err() == nil {
		r.config.Log.V(1).Info("an answer was not sent", "path", request.URL.Path, "reason", err.Error())
	}
}

func takesGzip(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
}

// number reads a query parameter as a number from 0; 0 when it is missing.
func number(r *http.Request, name string) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s is %q: it must be a number from 0", name, text)
	}
	return n, nil
}
