package apply

import "sync"

// This file keeps two plans from spending the same money (K-55, P-11). Provisioning and disruption plan at the same time, each
// with what a commitment or a reservation has left, and neither sees what the other one is about to launch. A cloud refuses a
// machine beyond a reservation; one beyond a commitment it sells at the full price.

// spent is what plans launch on that is paid for anyway, by its name. The zero value is ready for use.
type spent struct {
	mu   sync.Mutex
	last map[string]spending
}

// spending is who launches on something.
type spending struct {
	running int    // plans that are being carried out
	since   uint64 // version of the picture that has what the last of them launched
}

// begin refuses the launches of a plan that count on what another plan has spent since, or spends now, and notes the others. It
// returns what is to be called with the version of the picture once their claims are in it.
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
