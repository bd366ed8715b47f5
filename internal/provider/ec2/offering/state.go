package offering

import (
	"math"
	"reflect"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/quota"
)

// state is what a catalogue depends on beside its class, types and prices, and the functions of its input, whose
// answers depend on these. Everything that changes elsewhere, or by time alone, is in here by value. So nobody has to
// report a change, and nothing can come between the look at it and its use: the work on a catalogue reads only this.
type state struct {
	region    string
	settings  Settings
	placement Placement
	dedicated bool
	// memory is the version of what is known of nodes' memory. The work reads that memory later. If it has changed by
	// then, the version has, too.
	memory   int64
	lacking  map[string]map[Pool]bool // what is short, by type; "" for all types
	reserved map[string][]reservation // by type
	marks    quota.InForce            // quotas that are used up
	free     map[string]addresses     // by subnet of the class
}

// addresses are the free ones of a subnet.
type addresses struct{ left, atRest int64 }

// Holds reports whether [Builder.Build] would return the same result for this input, with another time and what is
// known then. The class, the types and the prices have to be those that the result was built from.
func (r *Result) Holds(in Input) bool {
	if in.Only != "" || r.state == nil {
		return false
	}
	now := newWork(in).state
	now.enough(r.most)
	return reflect.DeepEqual(*r.state, now)
}

// enough cuts counts of free addresses down to what the machine with the greatest need takes. More of them make no
// difference, and they change all the time.
func (s *state) enough(most int64) {
	for id, a := range s.free {
		s.free[id] = addresses{min(a.left, most), min(a.atRest, most)}
	}
}

// look reads everything that is in the state, for a work that knows its zones and subnets.
func (w *work) look() {
	in := &w.in
	w.state = state{region: in.Region, settings: in.Settings, placement: in.Placement, dedicated: in.Dedicated,
		lacking: map[string]map[Pool]bool{}, free: map[string]addresses{}, reserved: w.reservations()}
	if in.Memory != nil {
		w.state.memory = in.Memory.Version()
	}
	if in.Quotas != nil {
		w.state.marks = in.Quotas.InForce(in.Now)
	}
	for pool := range in.Shortages.lacking(in.Now) {
		if w.state.lacking[pool.Type] == nil {
			w.state.lacking[pool.Type] = map[Pool]bool{}
		}
		w.state.lacking[pool.Type][pool] = true
	}
	for _, s := range w.subnets {
		a := addresses{math.MaxInt64, math.MaxInt64} // one that nobody has counted yet has enough
		if in.Free != nil {
			if left, known := in.Free.Left(s.ID); known {
				a.left = left
			}
			if atRest, known := in.Free.AtRest(s.ID); known {
				a.atRest = atRest
			}
		}
		w.state.free[s.ID] = a
	}
}
