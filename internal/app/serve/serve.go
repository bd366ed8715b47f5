// Package serve holds what all programs need around their controllers: ports that are opened before anything else,
// metrics and probes, certificates, queues and their watches, a manager that ends in time, and the first contact with
// an API server.
package serve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

const (
	// closeWithin bounds how long a stopping server waits for answers under way.
	closeWithin = 2 * time.Second
	// readWithin bounds how long a client may take to send a request.
	readWithin = 30 * time.Second
	// idleWithin is how long a connection may wait for its next request. It is longer than the 90 s of API servers, so
	// that no connection is closed while a request is on its way.
	idleWithin = 3 * time.Minute
	// AnswerWithin bounds a webhook's work on one request, from its first byte. API servers wait at most 30 s.
	AnswerWithin = 40 * time.Second
)

// Server serves one port until its context ends. It is a manager.Runnable that needs no leadership.
type Server struct {
	Listener net.Listener
	Handler  http.Handler
	// AnswerWithin bounds a request with its answer. 0 is no bound: a profile takes as long as was asked for.
	AnswerWithin time.Duration
}

// web returns the HTTP server with its timeouts.
func (s Server) web() *http.Server {
	return &http.Server{Handler: s.Handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: readWithin,
		WriteTimeout: s.AnswerWithin, IdleTimeout: idleWithin, MaxHeaderBytes: 1 << 16}
}

// Start implements manager.Runnable.
func (s Server) Start(ctx context.Context) error {
	web := s.web()
	done := make(chan error, 1)
	go func() { done <- web.Serve(s.Listener) }()
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

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica serves probes and metrics.
func (s Server) NeedLeaderElection() bool { return false }

// MetricsHandler serves metrics, and profiles if profiling is on.
func MetricsHandler(metrics http.Handler, profiling bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	if profiling {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// HealthHandler answers the probes: /healthz always succeeds, /readyz when ready returns true.
func HealthHandler(ready func() bool) http.Handler {
	return HealthHandlerOf(func() string {
		if !ready() {
			return "caches are being filled, or clients would not trust the certificate"
		}
		return ""
	})
}

// HealthHandlerOf answers the probes. why returns why the process is not ready, "" when it is.
func HealthHandlerOf(why func() string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if text := why(); text != "" {
			http.Error(w, "not ready: "+text, http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
	return mux
}
