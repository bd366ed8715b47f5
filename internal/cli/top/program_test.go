//go:build unix

package top

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"
)

// asProgram is the variable of the environment that makes this test the program.
const asProgram = "JOINER_TEST_TOP"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	look, err := exampleLook()
	if err == nil {
		err = Run(ctx, New(Settings{Every: time.Second, Paint: true, Look: exampleLook}, look, "price"), os.Stdin,
			os.Stdout)
	}
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		os.Exit(3)
	}
	os.Exit(0)
}

// screenOf reads what a terminal is told until that has a text; then it returns all of it.
func screenOf(t *testing.T, said <-chan string, all *strings.Builder, want string) {
	t.Helper()
	late := time.After(time.Minute)
	for !strings.Contains(all.String(), want) {
		select {
		case text, more := <-said:
			if !more {
				t.Fatalf("it ended without %q:\n%q", want, all.String())
			}
			all.WriteString(text)
		case <-late:
			t.Fatalf("no %q:\n%q", want, all.String())
		}
	}
}

// TestU05_TheTerminalIsLeftAsItWas: after q, Ctrl-C and SIGTERM; and a new size is a new frame.
func TestU05_TheTerminalIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*os.File, *os.Process) error{
		"q":       func(f *os.File, _ *os.Process) error { _, err := f.WriteString("q"); return err },
		"Ctrl-C":  func(f *os.File, _ *os.Process) error { _, err := f.WriteString("\x03"); return err },
		"SIGTERM": func(_ *os.File, p *os.Process) error { return p.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			keyboard, screen, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer keyboard.Close()
			defer screen.Close()
			before, err := term.GetState(int(screen.Fd()))
			if err != nil || pty.Setsize(keyboard, &pty.Winsize{Rows: 24, Cols: 80}) != nil {
				t.Fatal(err)
			}
			command := exec.CommandContext(t.Context(), os.Args[0])
			command.Env = append(os.Environ(), asProgram+"=1", "TERM=xterm-256color")
			command.Stdin, command.Stdout = screen, screen
			command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			said, all := make(chan string, 1000), &strings.Builder{}
			go func() {
				buffer := make([]byte, 4096)
				for {
					n, err := keyboard.Read(buffer)
					if err != nil {
						close(said)
						return
					}
					said <- string(buffer[:n])
				}
			}()
			screenOf(t, said, all, "gpu-aaaa")
			all.Reset()
			if err := pty.Setsize(keyboard, &pty.Winsize{Rows: 14, Cols: 50}); err != nil {
				t.Fatal(err)
			}
			screenOf(t, said, all, "too small")
			all.Reset()
			if err := end(keyboard, command.Process); err != nil {
				t.Fatal(err)
			}
			screenOf(t, said, all, "\x1b[?1049l")
			if err := command.Wait(); err != nil {
				t.Error(err)
			}
			after, err := term.GetState(int(screen.Fd()))
			if err != nil || !reflect.DeepEqual(before, after) {
				t.Errorf("%v: %+v before, %+v after", err, before, after)
			}
		})
	}
}
