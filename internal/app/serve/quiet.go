package serve

import (
	"context"

	"github.com/go-logr/logr"
)

// Quiet returns a logger for libraries. They log every start and stop at the level of our decisions, so their messages
// only appear when debugging. Errors are logged as such until ctx has ended: later failures come from stopping.
func Quiet(ctx context.Context, log logr.Logger) logr.Logger {
	return logr.New(quietSink{LogSink: log.V(1).GetSink(), ended: func() bool { return ctx.Err() != nil }}).V(1)
}

type quietSink struct {
	logr.LogSink
	ended func() bool
}

// Error implements logr.LogSink.
func (s quietSink) Error(err error, message string, keysAndValues ...any) {
	if s.ended() {
		if s.Enabled(1) {
			s.Info(1, message, append([]any{"reason", err}, keysAndValues...)...)
		}
		return
	}
	s.LogSink.Error(err, message, keysAndValues...)
}

// WithValues implements logr.LogSink.
func (s quietSink) WithValues(keysAndValues ...any) logr.LogSink {
	return quietSink{LogSink: s.LogSink.WithValues(keysAndValues...), ended: s.ended}
}

// WithName implements logr.LogSink.
func (s quietSink) WithName(name string) logr.LogSink {
	return quietSink{LogSink: s.LogSink.WithName(name), ended: s.ended}
}
