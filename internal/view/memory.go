package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Memory is what a controller has recorded about a pool, and the engine does not know.
type Memory struct {
	// Paused says what pauses voluntary disruption; "" when nothing does. The pause ends at PauseEnds, unless that is
	// zero.
	Paused    string
	PauseEnds time.Time
	// Held says what pauses the disruption of this pool alone; "" when nothing does (K-52).
	Held string
	// BacksOffUntil is the end of the time for which the pool is left alone after a cancelled command; zero when it is
	// not.
	BacksOffUntil time.Time
}

// Remembered adds what is remembered of a pool to the standings of its node. Such pauses hold up only removals that
// budgets bound, and are reported before budgets.
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
	case !m.BacksOffUntil.IsZero() && held.Wanted != plan.Empty: // empty nodes go anyway
		held.Cause, held.Until = cause.BackingOff, m.BacksOffUntil.Unix()
		held.Text = "the last disruption in NodePool " + pool +
			" was cancelled, and the pool is left alone for a while"
	default:
		return standings
	}
	if now.Goes != "" {
		return []engine.Standing{held}
	}
	return slices.Insert(slices.Clone(standings), at, held)
}
