package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// closeWithin bounds how long a server waits for answers under way.
	closeWithin = 2 * time.Second
	// readWithin bounds how long a client may take to send a request.
	readWithin = 30 * time.Second
	// idleWithin is how long a connection may wait for its next request: longer than API servers keep one, which is 90 s,
	// so that none is closed while a request is on its way.
	idleWithin = 3 * time.Minute
	// answerWithin bounds how long a webhook may take for a request, from its first byte: API servers wait at most 30 s.
	answerWithin = 40 * time.Second
)

// server serves one port until its context ends. It is a manager.Runnable that needs no leadership.
type server struct {
	listener net.Listener
	handler  http.Handler
	// answerWithin bounds a request with its answer; 0 does not: a profile takes as long as was asked for.
	answerWithin time.Duration
}

// web is the server with its bounds.
func (s server) web() *http.Server {
	return &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: readWithin,
		WriteTimeout: s.answerWithin, IdleTimeout: idleWithin, MaxHeaderBytes: 1 << 16}
}

// Start implements manager.Runnable.
func (s server) Start(ctx context.Context) error {
	web := s.web()
	done := make(chan error, 1)
	go func() { done <- web.Serve(s.listener) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	err := web.Shutdown(bounded)
	if served := <-done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: probes and metrics are for every replica.
func (s server) NeedLeaderElection() bool { return false }

func metricsHandler(gatherer prometheus.Gatherer, profiling bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	if profiling {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

func healthHandler(ready func() bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			http.Error(w, "not ready yet: caches are being filled, or clients would not trust the certificate", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
	return mux
}
