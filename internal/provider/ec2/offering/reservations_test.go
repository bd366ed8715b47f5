package offering_test

import (
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
)

// E-13: free places are counted down between two answers of EC2.
func TestReservationsAreCountedDown(t *testing.T) {
	t.Parallel()
	var r offering.Reservations
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	step := func(name string, want int64, wantKnown bool) {
		t.Helper()
		if got, known := r.Left("cr-1"); got != want || known != wantKnown {
			t.Errorf("%s: %d left, known: %t; want %d, %t", name, got, known, want, wantKnown)
		}
	}
	step("nobody was asked", 0, false)
	r.Took("cr-1", "i-0", at(-20))
	step("launched before anybody asked", 0, false)
	r.Seen(at(0), map[string]int64{"cr-1": 3, "cr-2": 1})
	step("seen", 3, true)
	r.Took("cr-1", "i-1", at(1))
	r.Took("cr-1", "i-1", at(1)) // the same one
	r.Took("cr-1", "i-2", at(15))
	step("two launched", 1, true)
	r.Seen(at(-1), map[string]int64{"cr-1": 9})
	step("an older answer", 1, true)
	r.Seen(at(20), map[string]int64{"cr-1": 2})
	step("the answer counts the first, and may not count the second yet", 1, true)
	r.Took("cr-1", "i-1", at(1))
	step("said once more", 1, true)
	r.Empty("cr-1", at(31))
	step("refused", 0, true)
	r.Seen(at(30), map[string]int64{"cr-1": 2})
	step("asked before that", 0, true)
	r.Seen(at(90), map[string]int64{"cr-1": 2})
	step("asked after that", 2, true)
	r.Empty("cr-1", at(80))
	step("a refusal of before", 2, true)
	if left, known := r.Left("cr-2"); known {
		t.Errorf("a reservation that EC2 does not name any more has %d left", left)
	}
	r.Took("cr-1", "i-4", at(91))
	r.Took("cr-1", "i-5", at(91))
	r.Took("cr-1", "i-6", at(91))
	step("more launched than there was place for", 0, true)
}
