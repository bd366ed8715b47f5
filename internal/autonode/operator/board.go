package operator

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Board is where the last reading of the policy hangs for the controllers, what they found out about each wrapper, and
// whether the guest is protected yet. It is safe for concurrent use.
type Board struct {
	mu        sync.Mutex
	reading   Reading
	written   time.Time // when an admission policy was written last
	began     time.Time // when the admission policies were looked at first
	missing   []string  // admission policies and bindings that are not in force at the moment
	lacking   []string  // of what others are to write of them
	hosted    HostedReading
	steps     int // steps under way that may write in the guest, with a HostedControlPlane to ask
	verdicts  map[verdictKey]Verdict
	tell      func(kind, name string) // of news in verdicts; nil for nobody
	memory    memory
	rule      ruleBoard // the rule for NodeClaims, which comes before what is read
	protected atomic.Bool
	released  atomic.Bool
}

// NewBoard returns a board before the first answer.
func NewBoard() *Board {
	starting := Reading{State: StateStarting}
	return &Board{reading: starting, rule: ruleBoard{latest: starting}, verdicts: map[verdictKey]Verdict{},
		memory: newMemory()}
}

// Reading returns what is known of the policy, as far as the rule for NodeClaims is there for it; see [Board.Latest].
func (b *Board) Reading() Reading {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reading
}

// Set hangs up a reading and returns the one before. Where there is a rule for NodeClaims to be written first,
// [Board.Reading] returns it only after that.
func (b *Board) Set(reading Reading) (before Reading) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, b.rule.latest = b.rule.latest, reading
	if !b.rule.wanted || b.reading.SameForWrappers(reading) || !changesRule(reading) {
		b.reading = reading
	}
	return before
}

// Protected reports whether the admission policies have been there once since the start: nothing is written before
// (G22).
func (b *Board) Protected() bool { return b.protected.Load() }

// Protect says that they are there, and reports whether that is news.
func (b *Board) Protect() bool { return !b.protected.Swap(true) }

// SetMissing says which admission policies and bindings are not in force at the moment, and tells whoever listens when
// that is news.
func (b *Board) SetMissing(names []string) {
	b.mu.Lock()
	news, tell := !slices.Equal(b.missing, names), b.tell
	b.missing = names
	b.mu.Unlock()
	if news && tell != nil {
		tell(policyKind, "")
	}
}

// Missing returns them.
func (b *Board) Missing() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.missing
}

// setMissingOfOthers says which admission policies and bindings that are others' to write are not in force, and tells
// whoever listens when that is news.
func (b *Board) setMissingOfOthers(names []string) {
	b.mu.Lock()
	news, tell := !slices.Equal(b.lacking, names), b.tell
	b.lacking = names
	b.mu.Unlock()
	if news && tell != nil {
		tell(policyKind, "")
	}
}

// missingOfOthers returns them.
func (b *Board) missingOfOthers() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lacking
}

// wroteProtection says when an admission policy was written.
func (b *Board) wroteProtection(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.written = now
}

// protectionWritten returns when an admission policy was written last, the zero time for not since the start.
func (b *Board) protectionWritten() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.written
}

// Release says that the admission policies are no longer to be kept: a teardown takes them away.
func (b *Board) Release() { b.released.Store(true) }

// Released reports whether the admission policies are no longer to be kept.
func (b *Board) Released() bool { return b.released.Load() }
