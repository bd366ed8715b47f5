//go:build !unix

package commandline

import "log/slog"

// switchLevel does nothing: this platform has no signal for it.
func switchLevel(*slog.LevelVar, slog.Level) func() { return func() {} }
