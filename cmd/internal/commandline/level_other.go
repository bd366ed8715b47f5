//go:build !unix

package commandline

import "log/slog"

// switchLevel does nothing: there is no signal that a person could send.
func switchLevel(*slog.LevelVar, slog.Level) func() { return func() {} }
