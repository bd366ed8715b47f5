package operator

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Board shares state between the controllers: the last reading of the policy, what they found out about each wrapper,
// and whether the guest is protected yet. It is safe for concurrent use.
type Board struct {
	mu        sync.Mutex
	reading   Reading
	written   time.Time // when an admission policy was written last
	began     time.Time // when the admission policies were looked at first
	missing   []string  // admission policies and bindings not in force at the moment
	lacking   []string  // the same, of those that others write
	blind     []string  // kinds of the guest that the operator may not read
	hosted    HostedReading
	steps     int // steps under way that may write in the guest, with a HostedControlPlane to ask
	verdicts  map[verdictKey]Verdict
	tell      func(kind, name string) // the listener for news; may be nil
	memory    memory
	rule      ruleBoard // the rule for NodeClaims, which is written before a reading counts
	protected atomic.Bool
	released  atomic.Bool
}

// NewBoard returns a board in the state before the first answer.
func NewBoard() *Board {
	starting := Reading{State: StateStarting}
	return &Board{reading: starting, rule: ruleBoard{latest: starting}, verdicts: map[verdictKey]Verdict{},
		memory: newMemory()}
}

// Reading returns the latest reading of the policy that the rule for NodeClaims covers; see [Board.Latest].
func (b *Board) Reading() Reading {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reading
}

// Set stores a reading and returns the one before. If the rule for NodeClaims must be written first, [Board.Reading]
// returns the new reading only after that.
func (b *Board) Set(reading Reading) (before Reading) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, b.rule.latest = b.rule.latest, reading
	if !b.rule.wanted || b.reading.SameForWrappers(reading) || !changesRule(reading) {
		b.reading = reading
	}
	return before
}

// Protected reports whether all admission policies have been in force once since the start. Nothing is written before
// (G22).
func (b *Board) Protected() bool { return b.protected.Load() }

// Protect stores that the admission policies are in force, and reports whether that is news.
func (b *Board) Protect() bool { return !b.protected.Swap(true) }

// SetMissing stores which admission policies and bindings are not in force at the moment, and notifies the listener if
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

// Missing returns the admission policies and bindings that are not in force at the moment.
func (b *Board) Missing() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.missing
}

// setMissingOfOthers stores which of the admission policies and bindings that others write are not in force, and
// notifies the listener if that is news.
func (b *Board) setMissingOfOthers(names []string) {
	b.mu.Lock()
	news, tell := !slices.Equal(b.lacking, names), b.tell
	b.lacking = names
	b.mu.Unlock()
	if news && tell != nil {
		tell(policyKind, "")
	}
}

// missingOfOthers returns what setMissingOfOthers stored.
func (b *Board) missingOfOthers() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lacking
}

// setBlind stores which kinds of the guest the operator may not read, and notifies the listener if that is news.
func (b *Board) setBlind(kinds []string) {
	b.mu.Lock()
	news, tell := !slices.Equal(b.blind, kinds), b.tell
	b.blind = kinds
	b.mu.Unlock()
	if news && tell != nil {
		tell(policyKind, "")
	}
}

// blindTo returns what setBlind stored.
func (b *Board) blindTo() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.blind
}

// start returns when this process began to look at the guest; zero before that.
func (b *Board) start() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.began
}

// wroteProtection stores when an admission policy was written.
func (b *Board) wroteProtection(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.written = now
}

// protectionWritten returns when an admission policy was written last; zero if not since the start.
func (b *Board) protectionWritten() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.written
}

// Release stops keeping the admission policies: a teardown removes them.
func (b *Board) Release() { b.released.Store(true) }

// Released reports whether [Board.Release] was called.
func (b *Board) Released() bool { return b.released.Load() }
