package operator

import (
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/autonode/approver"
)

// Two states of a NodeClaim are the same when all that a verdict rests on is: its creation as an instant, whatever
// the time zone.
func TestWhenTwoStatesOfANodeClaimAreTheSame(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	known := approver.Machine{Claim: "web-1", Created: start, Launched: true}
	moved, later, left := known, known, known
	moved.Created = start.In(time.FixedZone("there", 3600))
	later.Created = start.Add(time.Second)
	left.Leaving = true
	if !same(known, moved) || same(known, later) || same(known, left) {
		t.Error("want the same instant to be the same, and another one, or another state, not")
	}
}
