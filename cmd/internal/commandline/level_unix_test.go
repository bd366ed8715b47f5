//go:build unix

package commandline_test

import (
	"bytes"
	"log/slog"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline"
)

// lines is where a log goes, which is read while it is written.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(line)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.all.Bytes(), []byte(text))
}

// U-14: SIGUSR1 switches a program that runs to debug, and back. The test has the process's signals to itself: it does
// not run beside others.
func TestU14_TheLevelChangesWhileItRuns(t *testing.T) {
	var out lines
	log, stop := commandline.NewLogger(&out, slog.LevelInfo)
	defer stop()
	log.Info("told")
	log.V(4).Info("quiet")
	if !out.has(`"told"`) || out.has(`"quiet"`) {
		t.Fatalf("at info: %s", out.all.String())
	}
	for _, want := range []bool{true, false} { // whether debug is told
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		end := time.Now().Add(time.Minute)
		for log.GetSink().Enabled(4) != want { // signals come when they come
			if time.Now().After(end) {
				t.Fatalf("after SIGUSR1 debug is told: %t, want %t", !want, want)
			}
		}
	}
}
