package resolve

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
)

const (
	// retryAfter is how long a failed question is not repeated, however often Resolve is called.
	retryAfter = 30 * time.Second
	// forgetAfter is how long an answer is kept that no class needs.
	forgetAfter = 48 * time.Hour
	// mostText bounds the part of AWS's message in a condition, in characters.
	mostText = 300
)

// failure is why a question was not answered.
type failure struct {
	action string // with its service: ec2:DescribeSubnets
	class  refusal.Class
	code   string
	text   string // AWS's message, if useful and equal in every call
	clock  string // how far this machine's clock is off, if that is the reason; else ""
}

func failureOf(action string, err error) *failure {
	r := refusal.Of(err)
	f := &failure{action: action, class: r.Class, code: r.Code}
	if text := clockText(err); text != "" { // AWS's message has times that change with every call
		f.text, f.clock = text, text
		return f
	}
	if r.Code != "" && r.Class != refusal.Throttle && r.Class != refusal.Server {
		f.text, _, _ = strings.Cut(r.Message, " Encoded authorization failure message")
		if runes := []rune(f.text); len(runes) > mostText {
			f.text = string(runes[:mostText]) + "…"
		}
	}
	return f
}

// String returns a text such as "ec2:DescribeSubnets: RequestLimitExceeded". It is equal for equal failures, so that a
// condition does not change with every call.
func (f *failure) String() string {
	code := f.code
	if code == "" {
		code = "no answer that can be read"
	}
	if f.text == "" {
		return f.action + ": " + code
	}
	return fmt.Sprintf("%s: %s (%s)", f.action, code, f.text)
}

// state is the age and the last failure of an answer.
type state struct {
	known   bool
	asked   time.Time // before the call that was answered
	failure *failure  // of the last call; nil on success
	tried   time.Time // when that failed
	used    time.Time
}

// answer is what is known of a question.
type answer[T any] struct {
	state
	value T
}

// memory has the last answer to each question. It is safe for concurrent use; its lock is never held across a call.
type memory[T any] struct {
	mu      sync.Mutex
	answers map[string]answer[T]
}

func newMemory[T any]() *memory[T] { return &memory[T]{answers: map[string]answer[T]{}} }

func (m *memory[T]) get(key string) answer[T] {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answers[key]
}

// due returns the questions to ask now, sorted. keep returns how long an answer holds. Once one is due, so are those
// whose time is half over: then they share calls from the next time on.
func (m *memory[T]) due(now time.Time, keys []string, keep func(key string, value T) time.Duration) []string {
	due, soon := m.dueAndSoon(now, keys, keep)
	if len(due) == 0 {
		return nil
	}
	return slices.Sorted(slices.Values(append(due, soon...)))
}

func (m *memory[T]) dueAndSoon(now time.Time, keys []string,
	keep func(key string, value T) time.Duration) (due, soon []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range slices.Compact(slices.Sorted(slices.Values(keys))) {
		a := m.answers[key]
		a.used = now
		m.answers[key] = a
		age, holds := now.Sub(a.asked), keep(key, a.value)
		switch {
		case a.failure != nil && now.Sub(a.tried) < retryAfter:
		case !a.known || age >= holds:
			due = append(due, key)
		case age >= holds/2:
			soon = append(soon, key)
		}
	}
	return due, soon
}

func (m *memory[T]) answered(key string, asked time.Time, value T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers[key] = answer[T]{value: value, state: state{known: true, asked: asked, used: asked}}
}

// failed leaves the last answer as it is.
func (m *memory[T]) failed(key string, now time.Time, why *failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.answers[key]
	a.failure, a.tried, a.used = why, now, now
	m.answers[key] = a
}

// drop removes an answer that is no longer valid.
func (m *memory[T]) drop(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.answers, key)
}

// forget removes answers that no class has needed for long.
func (m *memory[T]) forget(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.answers, func(_ string, a answer[T]) bool { return now.Sub(a.used) > forgetAfter })
}

// basis summarizes the answers to all questions of a part of a class.
type basis struct {
	known   bool      // all have an answer
	asked   time.Time // the earliest
	failure *failure  // of the answer overdue for longest; nil if there is no failure
	seen    time.Time // when that question was last answered; zero for never
	overdue time.Time // when that question should have been asked again
}

func newBasis() basis { return basis{known: true} }

// add adds an answer that is valid for holds.
func (b *basis) add(s state, holds time.Duration) {
	if !s.known {
		b.known = false
		if s.failure != nil && (b.failure == nil || !b.seen.IsZero()) {
			b.failure, b.seen, b.overdue = s.failure, time.Time{}, time.Time{}
		}
		return
	}
	if b.asked.IsZero() || s.asked.Before(b.asked) {
		b.asked = s.asked
	}
	if overdue := s.asked.Add(holds); s.failure != nil &&
		(b.failure == nil || !b.seen.IsZero() && overdue.Before(b.overdue)) {
		b.failure, b.seen, b.overdue = s.failure, s.asked, overdue
	}
}
