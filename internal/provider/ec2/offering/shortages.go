package offering

import (
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// Pool is what EC2 has or lacks capacity of (E-42).
type Pool struct {
	Type, Zone, CapacityType string
	Reservation              string // id of the capacity reservation; "" for what is not reserved
	PlacementGroup           string // id of the placement group; "" for a launch into none
}

// SpreadZone is all that a placement group could have in a zone: one that spreads its machines takes a few in each
// (E-15).
func SpreadZone(group, zone string) Pool { return Pool{Zone: zone, PlacementGroup: group} }

// Shortages remembers what could not be had: a minute at first, at most half an hour. It is lost with the process,
// which costs a refused launch for each pool. The zero value is ready for use; safe for concurrent use.
type Shortages struct{ backoff provider.Backoff[Pool] }

// Note takes in that a pool was refused, or its machines were taken away, at now. While it counts as short already
// nothing changes.
func (s *Shortages) Note(p Pool, now time.Time) { s.backoff.Note(p, now) }

// Pause takes in that a fleet got nothing from any of its pools, and EC2 did not say from which: they count as short
// for a minute, and for no longer the next time.
func (s *Shortages) Pause(pools []Pool, now time.Time) {
	for _, p := range pools {
		s.backoff.Pause(p, now)
	}
}

// Clear takes in that a pool could be had: its next shortage is a first one.
func (s *Shortages) Clear(p Pool) { s.backoff.Clear(p) }

// lacking returns the pools that count as short at now.
func (s *Shortages) lacking(now time.Time) map[Pool]bool {
	if s == nil {
		return nil
	}
	return s.backoff.Lacking(now)
}
