// Package shared holds what the tests of one package share, such as a control plane. It starts with the first test
// that asks for it, and ends after the last.
package shared

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
)

// StartTimeout bounds a start, on a machine that also compiles.
const StartTimeout = 5 * time.Minute

// Thing is started at most once, by any number of tests.
type Thing[T any] struct {
	start func() (T, error)
	stop  func(T) error

	mu      sync.Mutex
	started []T // at most one
}

// New returns a Thing that start makes at the first Get. ctx bounds the start only. If start fails, it must leave
// nothing behind.
func New[T any](start func(ctx context.Context) (T, error), stop func(T) error) *Thing[T] {
	thing := &Thing[T]{stop: stop}
	thing.start = sync.OnceValues(func() (T, error) {
		ctx, cancel := context.WithTimeout(context.Background(), StartTimeout)
		defer cancel()
		made, err := start(ctx)
		if err == nil {
			thing.mu.Lock()
			defer thing.mu.Unlock()
			thing.started = append(thing.started, made)
		}
		return made, err
	})
	return thing
}

// Get starts the thing if necessary. It fails the test if the start failed.
func (s *Thing[T]) Get(t *testing.T) T {
	t.Helper()
	made, err := s.start()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// end stops the thing, if a test asked for it.
func (s *Thing[T]) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, made := range s.started {
		if err := s.stop(made); err != nil {
			return err
		}
	}
	return nil
}

// Main is a TestMain: it runs the tests, stops the things, and exits. A thing that cannot be stopped is a failure.
func Main(m *testing.M, things ...interface{ end() error }) {
	code := m.Run()
	for _, thing := range things {
		if err := thing.end(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping what the tests share:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// Port reserves a TCP port of this machine until the end of the test.
func Port(t *testing.T) int {
	t.Helper()
	reserved, err := cluster.Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := reserved.Release(); err != nil {
			t.Error(err)
		}
	})
	return reserved.Ports[0]
}

// Asked reads from an environment variable whether to run a part of a test that the short form leaves out. what
// describes that part.
func Asked(t *testing.T, variable, what string) bool {
	t.Helper()
	switch text := os.Getenv(variable); text {
	case "", "0":
		return false
	case "1":
		return true
	default:
		t.Fatalf("%s is %q: want 1 to %s, 0 or nothing not to", variable, text, what)
		return false
	}
}
