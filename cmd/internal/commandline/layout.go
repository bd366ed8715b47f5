package commandline

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Layouts of --log-format (K-17).
const (
	// KarpenterFormat has Karpenter's keys in Karpenter's order: level, time, logger, message, commit, controller,
	// then the objects under their kinds, and the rest. It writes the first hundred lines of a message per second, and
	// then every hundredth.
	KarpenterFormat = "karpenter"
	// JoinerFormat has time, level, msg, logger, and the objects by short names. It writes every line.
	JoinerFormat = "joiner"
)

// Formats is the usage text of --log-format.
const Formats = KarpenterFormat + " has the keys of Karpenter's log in their order; " +
	JoinerFormat + " has shorter ones, and leaves no line out"

// burst is how many lines of one message are written per second; of further lines every each-th one is.
const burst, each = 100, 100

// layout is a slog.Handler that writes lines like Karpenter. attrs are the attributes of all lines, in order.
type layout struct {
	core  zapcore.Core
	level slog.Leveler
	attrs []slog.Attr
}

// newLayout returns a layout that writes to a sink.
func newLayout(sink zapcore.WriteSyncer, level slog.Leveler) slog.Handler {
	encoder := zapcore.NewJSONEncoder(zapcore.EncoderConfig{
		LevelKey: "level", TimeKey: "time", NameKey: "logger", CallerKey: "caller", MessageKey: "message",
		EncodeLevel: zapcore.CapitalLevelEncoder, EncodeTime: utc, EncodeDuration: zapcore.StringDurationEncoder,
		EncodeCaller: zapcore.ShortCallerEncoder,
	})
	core := zapcore.NewSamplerWithOptions(zapcore.NewCore(encoder, sink, zapcore.DebugLevel), time.Second, burst, each)
	return &layout{core: core.With([]zapcore.Field{zap.String("commit", commit())}), level: level}
}

// utc formats a time in UTC with milliseconds.
func utc(at time.Time, into zapcore.PrimitiveArrayEncoder) {
	into.AppendString(at.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// commit returns the commit from which the program was built, abbreviated as in git; "unknown" if the build does not
// say.
func commit() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		if revision := revisionOf(info); len(revision) >= 7 {
			return revision[:7]
		}
	}
	return "unknown"
}

// Enabled implements slog.Handler.
func (l *layout) Enabled(_ context.Context, level slog.Level) bool { return level >= l.level.Level() }

// WithAttrs implements slog.Handler.
func (l *layout) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *l
	with.attrs = append(slices.Clone(l.attrs), attrs...)
	return &with
}

// WithGroup implements slog.Handler. Groups are not used, so it changes nothing.
func (l *layout) WithGroup(string) slog.Handler { return l }

// Handle implements slog.Handler.
func (l *layout) Handle(_ context.Context, record slog.Record) error {
	entry := zapcore.Entry{Level: levelOf(record.Level), Time: record.Time, Message: record.Message}
	if entry.Level == zapcore.DebugLevel && record.PC != 0 {
		frame, _ := runtime.CallersFrames([]uintptr{record.PC}).Next()
		entry.Caller = zapcore.NewEntryCaller(frame.PC, frame.File, frame.Line, frame.File != "")
	}
	attrs := slices.Clone(l.attrs)
	record.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a)
		return true
	})
	var first, objects, rest []zapcore.Field
	for _, a := range attrs {
		switch field, kind := fieldOf(a); kind {
		case ofLogger:
			entry.LoggerName = "controller"
			first = append(first, field)
		case ofObject:
			objects = append(objects, field)
		case ofRest:
			rest = append(rest, field)
		}
	}
	if checked := l.core.Check(entry, nil); checked != nil {
		checked.Write(slices.Concat(first, objects, rest)...)
	}
	return nil
}

func levelOf(level slog.Level) zapcore.Level {
	switch {
	case level >= slog.LevelError:
		return zapcore.ErrorLevel
	case level >= slog.LevelWarn:
		return zapcore.WarnLevel
	case level >= slog.LevelInfo:
		return zapcore.InfoLevel
	}
	return zapcore.DebugLevel
}

// place is the position of a field in a line.
type place int

const (
	ofLogger place = iota // the controller
	ofObject              // what the line is about
	ofRest
)

// kinds maps the short keys of objects in our lines to their kinds.
var kinds = map[string]string{"claim": "NodeClaim", "node": "Node", "pool": "NodePool", "pod": "Pod"}

// fieldOf translates an attribute. Names of objects go under their kind, with a namespace if there is one.
func fieldOf(a slog.Attr) (zapcore.Field, place) {
	value := a.Value.Resolve()
	if kind, known := kinds[a.Key]; known && value.Kind() == slog.KindString {
		namespace, name, found := strings.Cut(value.String(), "/")
		if !found {
			return zap.Dict(kind, zap.String("name", namespace)), ofObject
		}
		return zap.Dict(kind, zap.String("name", name), zap.String("namespace", namespace)), ofObject
	}
	switch {
	case a.Key == "logger":
		return zap.String("controller", value.String()), ofLogger
	case a.Key == "err":
		return zap.String("error", fmt.Sprint(value.Any())), ofRest
	}
	if m, ok := value.Any().(logr.Marshaler); ok {
		return zap.Any(a.Key, m.MarshalLog()), ofRest
	}
	return zap.Any(a.Key, value.Any()), ofRest
}
