package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Memory is what a controller has written down of a pool, and the engine does not know.
type Memory struct {
	// Paused says what pauses voluntary disruption; "" when nothing does. That ends at PauseEnds, unless it is zero.
	Paused    string
	PauseEnds time.Time
	// Held says what pauses the disruption of this pool alone; "" when nothing does (K-52).
	Held string
	// BacksOffUntil is until when the pool is left alone after a command of it was taken back; zero when it is not.
	BacksOffUntil time.Time
}

// Remembered adds to how a node stands what is remembered of its pool. All of it holds up what budgets bound, and nothing
// else: they come before that.
func Remembered(pool string, standings []engine.Standing, m Memory) []engine.Standing {
	bound := []cause.Code{cause.BudgetClosed, cause.BudgetUsedUp, cause.OthersFirst}
	at := slices.IndexFunc(standings, func(s engine.Standing) bool {
		return s.Goes != "" || slices.Contains(bound, s.Cause)
	})
	if at < 0 {
		return standings
	}
	now := standings[at]
	held := engine.Standing{Wanted: cmp.Or(now.Wanted, now.Goes)}
	switch {
	case m.Paused != "":
		held.Cause, held.Text = cause.Paused, m.Paused
		if !m.PauseEnds.IsZero() {
			held.Until = m.PauseEnds.Unix()
		}
	case m.Held != "":
		held.Cause, held.Text = cause.PoolHeld, m.Held
	case !m.BacksOffUntil.IsZero() && held.Wanted != plan.Empty: // what is empty goes all the same
		held.Cause, held.Until = cause.BackingOff, m.BacksOffUntil.Unix()
		held.Text = "the last disruption in NodePool " + pool + " was cancelled, and the pool is left alone for a while"
	default:
		return standings
	}
	if now.Goes != "" {
		return []engine.Standing{held}
	}
	return slices.Insert(slices.Clone(standings), at, held)
}
