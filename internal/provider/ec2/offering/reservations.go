package offering

import (
	"sync"
	"time"
)

// takenAfter is how long after a launch into a reservation an answer of EC2 may still count the machine's place as
// free, as with addresses (E-12).
const takenAfter = 10 * time.Second

// Reservations counts the free places of capacity reservations: EC2's last answer minus later launches (E-13). A
// restart loses it, and EC2 is asked every minute. The zero value is ready for use; safe for concurrent use.
type Reservations struct {
	mu    sync.Mutex
	known map[string]*places // by id
}

// places is what is known of a reservation.
type places struct {
	asked time.Time
	free  int64                // by EC2's answer; negative if there is none yet
	took  map[string]time.Time // launch times of machines that the answer may not count, by instance id
	empty time.Time            // when EC2 last refused a launch into it; zero for never
}

// Seen stores an answer: the free places of each reservation, by id, at the time when EC2 was asked. A reservation
// that is not in it is forgotten: it has ended, or no longer belongs to a class. An answer to an older question
// changes nothing.
func (r *Reservations) Seen(asked time.Time, free map[string]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, p := range r.known {
		if _, named := free[id]; !named && asked.After(p.latest()) {
			delete(r.known, id)
		}
	}
	for id, n := range free {
		p := r.of(id)
		if !asked.After(p.asked) {
			continue
		}
		p.asked, p.free = asked, max(0, n)
		if asked.After(p.empty) {
			p.empty = time.Time{}
		}
		for machine, at := range p.took {
			if asked.After(at.Add(takenAfter)) {
				delete(p.took, machine)
			}
		}
	}
}

// Took notes that a machine was launched into a reservation.
func (r *Reservations) Took(id, machine string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.of(id)
	if !p.asked.IsZero() && p.asked.After(at.Add(takenAfter)) {
		return
	}
	p.took[machine] = at
}

// Empty notes that EC2 refused a launch into a reservation: it counts as full until a later answer.
func (r *Reservations) Empty(id string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.of(id)
	if at.After(p.asked) && at.After(p.empty) {
		p.empty = at
	}
}

// Left returns the free places of a reservation. known is false when EC2 never said.
func (r *Reservations) Left(id string) (left int64, known bool) {
	if r == nil {
		return 0, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.known[id]
	switch {
	case p == nil || p.free < 0:
		return 0, false
	case !p.empty.IsZero():
		return 0, true
	}
	return max(0, p.free-int64(len(p.took))), true
}

func (r *Reservations) of(id string) *places {
	if r.known[id] == nil {
		if r.known == nil {
			r.known = map[string]*places{}
		}
		r.known[id] = &places{free: -1, took: map[string]time.Time{}}
	}
	return r.known[id]
}

// latest returns when something was last learned about the reservation.
func (p *places) latest() time.Time {
	latest := p.asked
	if p.empty.After(latest) {
		latest = p.empty
	}
	for _, at := range p.took {
		if at.After(latest) {
			latest = at
		}
	}
	return latest
}
