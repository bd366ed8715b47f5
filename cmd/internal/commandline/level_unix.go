//go:build unix

package commandline

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// switchLevel toggles between debug and the level of the flag at each SIGUSR1, until the returned function is called.
func switchLevel(current *slog.LevelVar, usual slog.Level) func() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for range signals {
			if current.Level() == slog.LevelDebug {
				current.Set(usual)
			} else {
				current.Set(slog.LevelDebug)
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}
