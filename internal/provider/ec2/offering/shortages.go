package offering

import (
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// Pool is a capacity pool of EC2 (E-42).
type Pool struct {
	Type, Zone, CapacityType string
	Reservation              string // id of the capacity reservation; "" for none
	PlacementGroup           string // id of the placement group; "" for a launch into none
}

// SpreadZone returns the pool that stands for everything a placement group could have in a zone: a spread group can
// have only a few machines in each zone (E-15).
func SpreadZone(group, zone string) Pool { return Pool{Zone: zone, PlacementGroup: group} }

// Shortages remembers pools without capacity: for a minute at first, at most for half an hour. A restart loses it,
// which costs a refused launch for each pool. The zero value is ready for use; safe for concurrent use.
type Shortages struct{ backoff provider.Backoff[Pool] }

// Note notes that a pool was refused, or its machines were taken away, at now. If it counts as short already, nothing
// changes.
func (s *Shortages) Note(p Pool, now time.Time) { s.backoff.Note(p, now) }

// Pause notes that a fleet got nothing, and EC2 did not say which pools it refused. They count as short for a minute,
// and the next time not for longer.
func (s *Shortages) Pause(pools []Pool, now time.Time) {
	for _, p := range pools {
		s.backoff.Pause(p, now)
	}
}

// Clear notes that a pool had capacity: its next shortage counts as the first.
func (s *Shortages) Clear(p Pool) { s.backoff.Clear(p) }

// lacking returns the pools that count as short at now.
func (s *Shortages) lacking(now time.Time) map[Pool]bool {
	if s == nil {
		return nil
	}
	return s.backoff.Lacking(now)
}
