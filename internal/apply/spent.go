package apply

import "sync"

// This file keeps two plans from spending the same money (K-55, P-11). Provisioning and disruption plan at the same
// time with what a commitment or a reservation has left. Neither sees what the other is about to launch. A cloud
// refuses a machine beyond a reservation, and sells one beyond a commitment at the full price.

// spent records by name the commitments and reservations that plans launch on. The zero value is ready for use.
type spent struct {
	mu   sync.Mutex
	last map[string]spending
}

// spending is who launches on one commitment or reservation.
type spending struct {
	running int    // plans being carried out
	since   uint64 // version of the snapshot with the last plan's launches
}

// begin refuses launches that count on something another plan is spending, or has spent since the snapshot. It records
// the others. Call end with the version of the snapshot once their claims are in it.
func (s *spent) begin(basedOn uint64, attempts []attempt) (end func(version uint64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	begun := map[string]bool{}
	for i := range attempts {
		t := &attempts[i]
		what := t.launch.Cheapest.Prepaid()
		if what == "" || t.refusal != "" || t.err != nil {
			continue
		}
		if known := s.last[what]; !begun[what] && (known.running > 0 || basedOn < known.since) {
			t.refusal = "another plan launches on " + what + " meanwhile"
			continue
		}
		begun[what] = true
	}
	for what := range begun {
		s.change(what, func(own *spending) { own.running++ })
	}
	return func(version uint64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for what := range begun {
			s.change(what, func(own *spending) { own.running, own.since = own.running-1, version })
		}
	}
}

func (s *spent) change(what string, to func(*spending)) {
	if s.last == nil {
		s.last = map[string]spending{}
	}
	own := s.last[what]
	to(&own)
	s.last[what] = own
}
