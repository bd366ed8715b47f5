package firstuse

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// patience bounds every wait of a reader; the machine may be busy.
	patience = 5 * time.Minute
	// glance is how often a reader looks again.
	glance = 500 * time.Millisecond
	// binaryEnv names the variable with the path of joiner; the other programs are beside it.
	binaryEnv = "JOINER_BINARY"
)

// terminal is where a reader types: in the repository, with a directory of its own for temporary files.
type terminal struct {
	t          *testing.T
	bin, tmp   string
	kubeconfig string
}

func open(t *testing.T) *terminal {
	t.Helper()
	joiner := os.Getenv(binaryEnv)
	if joiner == "" {
		t.Fatalf("%s is not set: run make programs and set it to the absolute path of bin/joiner", binaryEnv)
	}
	tmp, err := os.MkdirTemp("", "firstuse-") // short: names of the test would make paths too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	term := &terminal{t: t, bin: filepath.Dir(joiner), tmp: tmp}
	// The page says that those without a kubectl can use this one.
	term.script("kubectl", fmt.Sprintf("exec %s kubectl \"$@\"\n", filepath.Join(term.bin, "controlplane")))
	return term
}

// script puts a program on the PATH and returns its path.
func (term *terminal) script(name, text string) string {
	term.t.Helper()
	folder := filepath.Join(term.tmp, "path")
	path := filepath.Join(folder, name)
	if err := errors.Join(os.MkdirAll(folder, 0o755),
		os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755)); err != nil {
		term.t.Fatal(err)
	}
	return path
}

// command is a line at the prompt. Programs in bin are those that were built for the tests.
func (term *terminal) command(ctx context.Context, line string) *exec.Cmd {
	line = strings.ReplaceAll(" "+line, " bin/", " "+term.bin+"/")
	command := exec.CommandContext(ctx, "sh", "-c", "exec"+line)
	command.Dir = root
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { // those of the make that runs the tests
		return strings.HasPrefix(variable, "MAKE") || strings.HasPrefix(variable, "MFLAGS=")
	})
	temporary := filepath.Join(term.tmp, "tmp")
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		term.t.Fatal(err)
	}
	command.Env = append(command.Env, "TMPDIR="+temporary,
		"PATH="+filepath.Join(term.tmp, "path")+string(os.PathListSeparator)+os.Getenv("PATH"))
	if term.kubeconfig != "" {
		command.Env = append(command.Env, "KUBECONFIG="+term.kubeconfig)
	}
	return command
}

// typed runs a line to its end and returns what it printed and its exit code.
func (term *terminal) typed(line string) (output string, code int) {
	term.t.Helper()
	ctx, cancel := context.WithTimeout(term.t.Context(), patience)
	defer cancel()
	said, err := term.command(ctx, line).CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(said), exit.ExitCode()
	}
	if err != nil {
		term.t.Fatalf("%s: %v", line, err)
	}
	return string(said), 0
}

// works is typed for a line that must end with 0.
func (term *terminal) works(line string) string {
	term.t.Helper()
	output, code := term.typed(line)
	if code != 0 {
		term.t.Fatalf("%s ended with %d:\n%s", line, code, output)
	}
	return output
}

// eventually looks until look is done; look says what it saw.
func (term *terminal) eventually(what string, look func() (done bool, saw string)) {
	term.t.Helper()
	end, again := time.After(patience), time.NewTicker(glance)
	defer again.Stop()
	for {
		done, saw := look()
		if done {
			return
		}
		select {
		case <-end:
			term.t.Fatalf("waited %s for %s, and saw: %s", patience, what, saw)
		case <-term.t.Context().Done():
			term.t.Fatal("the test has ended")
		case <-again.C:
		}
	}
}

// leavesNothing demands that neither a process nor a directory of what was typed is left.
func (term *terminal) leavesNothing() {
	term.t.Helper()
	if left, err := os.ReadDir(filepath.Join(term.tmp, "tmp")); err != nil || len(left) > 0 {
		term.t.Errorf("%v is left in the directory for temporary files (%v)", left, err)
	}
	if left := term.processes(); len(left) > 0 {
		term.t.Errorf("these processes are left:\n%s", strings.Join(left, "\n"))
	}
}

// processes returns those that name the terminal's own directory.
func (term *terminal) processes() (all []string) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		term.t.Fatal(err)
	}
	for _, name := range lines {
		line, err := os.ReadFile(name)
		if err == nil && bytes.Contains(line, []byte(term.tmp)) {
			all = append(all, name+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return all
}

// running is a program in the foreground of a terminal of its own.
type running struct {
	command *exec.Cmd
	lines   chan string
	said    sync.WaitGroup
	all     bytes.Buffer // of standard output; to be read when said is done
	errors  bytes.Buffer
}

// start starts a line and reads along.
func (term *terminal) start(line string) *running {
	term.t.Helper()
	r := &running{command: term.command(term.t.Context(), line), lines: make(chan string, 1000)}
	r.command.Cancel = func() error { return r.command.Process.Signal(syscall.SIGINT) } // it stops what it has started
	r.command.WaitDelay = patience
	r.command.Stderr = &r.errors
	out, err := r.command.StdoutPipe()
	if err == nil {
		err = r.command.Start()
	}
	if err != nil {
		term.t.Fatalf("%s: %v", line, err)
	}
	r.said.Go(func() { r.read(out) })
	return r
}

func (r *running) read(out io.Reader) {
	defer close(r.lines)
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		r.all.WriteString(scanner.Text() + "\n")
		select {
		case r.lines <- scanner.Text():
		default: // nobody reads along any more
		}
	}
}

// until reads along until a line is enough, and returns what was said up to there.
func (r *running) until(t *testing.T, enough func(line string) bool) string {
	t.Helper()
	var said strings.Builder
	end := time.After(patience)
	for {
		select {
		case line, more := <-r.lines:
			if !more {
				code := r.ended()
				t.Fatalf("it ended with %d:\n%s%s", code, said.String(), r.errors.String())
			}
			said.WriteString(line + "\n")
			if enough(line) {
				return said.String()
			}
		case <-end:
			r.interrupt()
			t.Fatalf("waited %s, and read:\n%s", patience, said.String())
		}
	}
}

// interrupt is Ctrl-C.
func (r *running) interrupt() { _ = r.command.Process.Signal(syscall.SIGINT) }

// ended waits for the end and returns the exit code.
func (r *running) ended() int {
	r.said.Wait()
	_ = r.command.Wait() // the code says it
	return r.command.ProcessState.ExitCode()
}
