package machines

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/batch"
)

// This file handles machines between the call that ends them and their end. EC2 is asked once to end a machine. After
// that, one call asks for the state of all such machines, however many callers want to know (E-54, E-61).

// ending is an instance whose end EC2 has accepted.
type ending struct {
	accepted time.Time
	looked   time.Time // when EC2 was last asked about it; zero after a failure
	machine  Machine   // its answer; without an id before the first one
	err      error     // or its answer that it knows no such instance
}

// failure is an error of ending an instance.
type failure struct {
	at  time.Time
	err error
}

const (
	// fresh is how long an answer about an ending machine is used: less than the two seconds after which a controller
	// asks again.
	fresh = 1900 * time.Millisecond
	// crowdFresh is the same if more than crowd machines are ending: then EC2 needs half a minute and more.
	crowdFresh = 4 * time.Second
	crowd      = 20
	// laterShown is how long EC2 may still show the state from before it accepted the end.
	laterShown = 10 * time.Second
	// endAgain is after what time EC2 is asked once more to end a machine that is not gone.
	endAgain = 2 * time.Minute
	// toldFor is how long the error of ending a machine is remembered: its caller asks again soon.
	toldFor = time.Minute
	// atOnce is how many machines one call asks about.
	atOnce = 500
)

// coming reports whether more machines will be ended soon: their claims are being deleted, and their end was not
// requested yet.
func (m *Machines) coming(_ string, asked []string) bool {
	leaving := m.config.Leaving()
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(leaving, func(providerID string) bool {
		id, err := instanceOf(providerID)
		if err != nil || m.ending[id] != nil {
			return false
		}
		_, known := m.ended[id]
		_, waits := slices.BinarySearch(asked, id)
		return !known && !waits
	})
}

// errInUse means that EC2 was not asked to end the machine: it is in use.
var errInUse = errors.New("the machine is in use")

// mind stores the function that tells whether a machine is in use when the call that ends it is due.
func (m *Machines) mind(id string, inUse func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if inUse == nil {
		delete(m.inUse, id)
		return
	}
	m.inUse[id] = inUse
}

// kept returns which machines are in use and must not end now. A drained node may have got a pod while its end waited
// for others: a scheduler may not know of the node's taint yet.
func (m *Machines) kept(ids []string) map[string]bool {
	m.mu.Lock()
	ask := map[string]func() bool{}
	for _, id := range ids {
		if inUse := m.inUse[id]; inUse != nil {
			ask[id] = inUse
			delete(m.inUse, id)
		}
	}
	m.mu.Unlock()
	kept := map[string]bool{}
	for id, inUse := range ask {
		kept[id] = inUse()
	}
	return kept
}

// call notes that EC2 is being asked to end machines; asked clears this.
func (m *Machines) call(ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		m.calling[id] = true
	}
}

func (m *Machines) isCalling(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calling[id]
}

// asked stores the answers of a call that ends machines.
func (m *Machines) asked(ids []string, answers []batch.Answer[Machine]) {
	now := m.config.Clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.failed, func(_ string, f failure) bool { return now.Sub(f.at) >= toldFor })
	maps.DeleteFunc(m.ending, func(_ string, e *ending) bool { return now.Sub(e.accepted) >= remembered })
	for i, id := range ids {
		delete(m.calling, id)
		switch a := answers[i]; {
		case a.Err != nil:
			m.failed[id] = failure{now, a.Err}
		case a.Value.Gone:
			m.end(id, now)
		default:
			m.ending[id] = &ending{accepted: now, looked: now}
		}
	}
}

// failure returns, once, the error of an end for which no caller has waited.
func (m *Machines) failure(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, found := m.failed[id]
	delete(m.failed, id)
	if !found || m.config.Clock.Now().Sub(f.at) >= toldFor {
		return nil
	}
	return f.err
}

// look returns what EC2 says of a machine whose end it has accepted, and when it said so. It asks EC2 if the last
// answer is too old. known is false for other machines, and for those that EC2 must be asked again to end. A machine
// without an id means that EC2 has not answered about it yet.
func (m *Machines) look(ctx context.Context, id string) (machine Machine, at time.Time, known bool, err error) {
	if ids := m.due(id); len(ids) > 0 {
		if err := m.lookAt(ctx, ids, id); err != nil {
			return Machine{}, m.config.Clock.Now(), true, err
		}
	}
	now := m.config.Clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.ending[id]
	if e == nil {
		return Machine{}, now, false, nil
	}
	since := now.Sub(e.accepted)
	switch {
	case e.err != nil:
		return Machine{}, e.looked, true, e.err
	case e.machine.Gone:
		m.end(id, now)
	case e.machine.InstanceID != "" && !e.machine.Ending && since >= laterShown, since >= endAgain:
		delete(m.ending, id)
		return Machine{}, now, false, nil
	}
	return e.machine, e.looked, true, nil
}

// due returns the machines to ask about now, including id; none if the answer about id is fresh. It marks them as
// asked, so that others do not ask at the same time.
func (m *Machines) due(id string) []string {
	now := m.config.Clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	holds := fresh
	if len(m.ending) > crowd {
		holds = crowdFresh
	}
	stale := func(e *ending) bool { return now.Sub(e.looked) >= holds }
	if e := m.ending[id]; e == nil || !stale(e) {
		return nil
	}
	ids := []string{id}
	for _, other := range slices.Sorted(maps.Keys(m.ending)) {
		if other != id && len(ids) < atOnce && stale(m.ending[other]) {
			ids = append(ids, other)
		}
	}
	for _, each := range ids {
		m.ending[each].looked = now
	}
	return ids
}

// lookAt asks EC2 about machines. The error is the failure to ask about id.
func (m *Machines) lookAt(ctx context.Context, ids []string, id string) error {
	slices.Sort(ids)
	answers := m.describe(ctx, "", ids)
	var failed error
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, each := range ids {
		e, a := m.ending[each], answers[i]
		switch {
		case e == nil:
		case a.Err == nil || isUnknown(a.Err):
			e.machine, e.err = a.Value, a.Err
		default:
			e.looked = time.Time{}
			if each == id {
				failed = a.Err
			}
		}
	}
	return failed
}

// end notes that an instance has ended, and forgets those that ended long ago. The lock is held.
func (m *Machines) end(id string, now time.Time) {
	maps.DeleteFunc(m.ended, func(_ string, at time.Time) bool { return now.Sub(at) >= remembered })
	delete(m.ending, id)
	m.ended[id] = now
}
