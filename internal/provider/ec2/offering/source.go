package offering

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

const (
	// firstRetry is when a source is asked again after it failed; each further failure doubles that.
	firstRetry = time.Minute
	// mostRetry bounds it, as does the source's own interval. So a question for which we lack rights, for example, is
	// not repeated every minute.
	mostRetry = time.Hour
	// mostPages bounds a listing. EC2's longest has fewer than 30 pages, and fewer than 6,000 in tests with one item
	// per page.
	mostPages = 20_000
)

var errTooManyPages = errors.New("the listing does not end")

// source keeps the last complete answer to a question that is asked repeatedly. Safe for concurrent use; it holds no
// lock while it asks.
type source[T any] struct {
	clock timer.Clock
	every time.Duration
	ask   func(ctx context.Context, now time.Time) (*T, error)

	mu     sync.Mutex
	known  *T // never nil, never changed
	next   time.Time
	failed int // times in a row
	asking bool
}

func newSource[T any](clock timer.Clock, every time.Duration,
	ask func(context.Context, time.Time) (*T, error)) *source[T] {
	return &source[T]{clock: clock, every: every, ask: ask, known: new(T)}
}

// refresh asks if it is time and nobody else is asking. If that fails, the known answer stays.
func (s *source[T]) refresh(ctx context.Context) error {
	now, mine := s.begin()
	if !mine {
		return nil
	}
	answer, err := s.ask(ctx, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = false
	if err != nil {
		wait := min(firstRetry<<min(s.failed, 10), mostRetry, s.every)
		s.failed++
		s.next = s.clock.Now().Add(wait)
		return err
	}
	s.known, s.failed, s.next = answer, 0, now.Add(s.every)
	return nil
}

func (s *source[T]) begin() (now time.Time, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = s.clock.Now()
	if s.asking || now.Before(s.next) {
		return now, false
	}
	s.asking = true
	return now, true
}

func (s *source[T]) get() *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

func (s *source[T]) due() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// pages asks for one page after the other. ask gets the token of a page, nil for the first, and returns that of the
// next.
func pages(ask func(token *string) (next *string, err error)) error {
	var token *string
	for range mostPages {
		next, err := ask(token)
		if err != nil || value(next) == "" {
			return err
		}
		if token != nil && *token == *next {
			return errTooManyPages
		}
		token = next
	}
	return errTooManyPages
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
