package machines

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/batch"
)

// This file is about machines between the call that ends them and their end. EC2 is asked once to end a machine, and
// then what has become of it, of all such machines in one call, however many callers want to know (E-54, E-61).

// ending is an instance of which EC2 has accepted the end.
type ending struct {
	accepted time.Time
	looked   time.Time // when EC2 was last asked about it; zero when it could not be
	machine  Machine   // what it said; without an id as long as nobody has asked
	err      error     // or that it knows no such instance
}

// failure is why EC2 has not ended an instance.
type failure struct {
	at  time.Time
	err error
}

const (
	// fresh is how long an answer about a machine that ends holds: less than the two seconds after which a controller
	// asks again.
	fresh = 1900 * time.Millisecond
	// crowdFresh is the same where more than a crowd end: they take EC2 half a minute and more.
	crowdFresh = 4 * time.Second
	crowd      = 20
	// laterShown is how long EC2 may show a machine as it was before it accepted its end.
	laterShown = 10 * time.Second
	// endAgain is when EC2 is asked once more to end a machine that is not gone.
	endAgain = 2 * time.Minute
	// toldFor is how long it is remembered why a machine was not ended: who wants it to end asks soon.
	toldFor = time.Minute
	// atOnce is how many machines are looked at in one call.
	atOnce = 500
)

// coming reports whether others are to end soon: their claims are being deleted, and nobody has asked for their
// machines' end.
func (m *Machines) coming(_ string, asked []string) bool {
	leaving := m.config.Leaving()
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(leaving, func(providerID string) bool {
		_, id, err := ParseProviderID(providerID)
		if err != nil || m.ending[id] != nil {
			return false
		}
		_, known := m.ended[id]
		_, waits := slices.BinarySearch(asked, id)
		return !known && !waits
	})
}

// errInUse means that an end was not asked for: the machine is in use.
var errInUse = errors.New("the machine is in use")

// mind notes how to find out whether a machine may end once the call that ends it is due.
func (m *Machines) mind(id string, inUse func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if inUse == nil {
		delete(m.inUse, id)
		return
	}
	m.inUse[id] = inUse
}

// kept returns which machines are in use and must not end now. A pod may have come to a node that was drained when its
// end began to wait for others: a scheduler may not know of the node's taint yet.
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

// call notes that EC2 is asked to end machines, until asked.
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

// asked takes in what came of a call that ends machines.
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

// failure returns, once, why an end was refused that nobody has waited for.
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

// look returns what EC2 says of a machine whose end it has accepted, and when it said so: a moment ago, or now. known
// is false for other machines, and for those that EC2 is to be asked again to end. A machine without an id is one of
// which EC2 has said nothing yet.
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

// due returns the machines to look at now, that of this id among them; none when what is known of it is fresh. They
// count as looked at from now on: others need not ask for them beside.
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

// lookAt asks EC2 for machines. The error is why it could not be asked for that of the id.
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

// end takes in that an instance has ended, and forgets those of which that was heard long ago. The lock is held.
func (m *Machines) end(id string, now time.Time) {
	maps.DeleteFunc(m.ended, func(_ string, at time.Time) bool { return now.Sub(at) >= remembered })
	delete(m.ending, id)
	m.ended[id] = now
}
