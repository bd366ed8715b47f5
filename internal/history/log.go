package history

import (
	"cmp"
	"slices"
	"time"
)

// Slots is how many ConfigMaps hold the log, one page each.
const Slots = 16

// mostRecords bounds what is kept in memory, whatever its size.
const mostRecords = 20_000

// mostPending bounds the removals whose end is still to come.
const mostPending = 10_000

// sameWithin is how long the same refusal goes on in one record.
const sameWithin = 10 * time.Minute

// lookBack is how many records are looked at for the same refusal.
const lookBack = 50

// Page is a part of the log, as one ConfigMap holds it.
type Page struct {
	// Sequence numbers the pages from 1. A page is in the slot Sequence modulo Slots.
	Sequence uint64
	Records  []Record // oldest first
}

// Slot is the number of the ConfigMap that has the page.
func (p Page) Slot() int { return int(p.Sequence % Slots) }

// Log holds records, oldest first, in pages of which the last is open. It is not safe for concurrent use.
type Log struct {
	retention time.Duration
	origin    string // makes IDs of two processes differ
	pages     []Page
	removals  map[string]string // by NodeClaim, the ID of the decision to remove it
	launches  map[string]launch // by NodeClaim that has not joined yet
	lastMilli uint64
	inMilli   uint64
	changes   uint64 // counts what was added to the open page
	stored    uint64 // changes that are in the ConfigMap
}

// New returns an empty log. Records older than retention are dropped; 0 drops none for their age.
// origin names the process.
func New(retention time.Duration, origin uint64) *Log {
	return &Log{retention: retention, origin: number(origin, 3), pages: []Page{{Sequence: 1}},
		removals: map[string]string{}, launches: map[string]launch{}}
}

// launch is the decision that a NodeClaim was made by.
type launch struct{ id, cause string }

// Add takes in a record of now and returns its ID, and whether it is a new one. A refusal that repeats is counted where
// it stands.
func (l *Log) Add(r Record, now time.Time) (id string, isNew bool) {
	now, r.Why = now.UTC().Truncate(time.Millisecond), printable(r.Why)
	open := &l.pages[len(l.pages)-1]
	for i := len(open.Records) - 1; i >= max(0, len(open.Records)-lookBack); i-- {
		if known := &open.Records[i]; r.same(*known) && now.Sub(known.Time) < sameWithin {
			known.Times, known.Last = max(known.Times, 1)+1, now
			l.changes++
			return known.ID, false
		}
	}
	r.ID, r.Time = l.nextID(now), now
	l.note(&r)
	open.Records = append(open.Records, r)
	if r.Verb != VerbLead { // a leader that decides nothing writes nothing
		l.changes++
	}
	l.drop(now)
	return r.ID, true
}

// note ties the end of a removal to the decision, and to a launch that its node has joined or that it was given up
// before.
func (l *Log) note(r *Record) {
	made, waits := l.launches[r.NodeClaim]
	switch {
	case r.NodeClaim == "":
	case r.Verb != "remove" && r.Outcome == "joined":
		if waits && r.Of == "" {
			r.Of, r.Cause = made.id, made.cause
		}
		delete(l.launches, r.NodeClaim)
	case r.Verb != "remove":
		if r.Outcome == "done" && len(l.launches) < mostPending {
			l.launches[r.NodeClaim] = launch{r.ID, r.Cause}
		}
	case r.Outcome == "planned":
		if len(l.removals) < mostPending {
			l.removals[r.NodeClaim] = r.ID
		}
	default:
		if r.Of == "" {
			r.Of = cmp.Or(l.removals[r.NodeClaim], made.id)
		}
		delete(l.removals, r.NodeClaim)
		delete(l.launches, r.NodeClaim)
	}
}

// nextID returns an ID that sorts behind all that this log gave, also when the clock was put back.
func (l *Log) nextID(now time.Time) string {
	if milli := uint64(max(0, now.UnixMilli())); milli > l.lastMilli {
		l.lastMilli, l.inMilli = milli, 0
	} else if l.inMilli++; l.inMilli == uint64(len(digits)*len(digits)) {
		l.lastMilli, l.inMilli = l.lastMilli+1, 0
	}
	return number(l.lastMilli, idLength-5) + number(l.inMilli, 2) + l.origin
}

// drop forgets what is too old or too much. The open page stays, also when it is empty.
func (l *Log) drop(now time.Time) {
	total := 0
	for _, p := range l.pages {
		total += len(p.Records)
	}
	for i := range l.pages {
		p := &l.pages[i]
		n := max(0, min(len(p.Records), total-mostRecords))
		for n < len(p.Records) && l.retention > 0 && now.Sub(p.Records[n].Time) > l.retention {
			n++
		}
		p.Records, total = p.Records[n:], total-n
		if n == 0 {
			break
		}
	}
	for len(l.pages) > 1 && (len(l.pages[0].Records) == 0 || len(l.pages) > Slots) {
		l.pages = slices.Delete(l.pages, 0, 1)
	}
}

// Load puts pages that were read before what was added since the start. What cannot follow on another is left out.
func (l *Log) Load(read []Page, now time.Time) {
	added := l.pages[len(l.pages)-1].Records
	known := map[string]bool{}
	for _, r := range added {
		known[r.ID] = true
	}
	read = slices.Clone(read)
	slices.SortFunc(read, func(a, b Page) int { return cmp.Compare(a.Sequence, b.Sequence) })
	var pages []Page
	l.removals, l.launches = map[string]string{}, map[string]launch{}
	for _, p := range read {
		p.Records = slices.Clone(p.Records)
		p.Records = slices.DeleteFunc(p.Records, func(r Record) bool { return known[r.ID] })
		for i := range p.Records {
			known[p.Records[i].ID] = true
			l.note(&p.Records[i])
		}
		pages = append(pages, p)
	}
	if len(pages) == 0 {
		pages = []Page{{Sequence: 1}}
	}
	open := &pages[len(pages)-1]
	for i := range added {
		l.note(&added[i])
	}
	open.Records = append(open.Records, added...)
	l.pages = pages
	l.drop(now)
}

// Records returns all records, oldest first.
func (l *Log) Records() []Record {
	var all []Record
	for _, p := range l.pages {
		all = append(all, p.Records...)
	}
	return all
}

// Open returns a copy of the page that is written, and what it is to be called when it was: see [Log.Stored].
func (l *Log) Open() (p Page, changes uint64) {
	p = l.pages[len(l.pages)-1]
	p.Records = slices.Clone(p.Records)
	return p, l.changes
}

// Dirty reports whether something is not stored.
func (l *Log) Dirty() bool { return l.changes != l.stored }

// Stored says that the open page is stored as [Log.Open] gave it.
func (l *Log) Stored(changes uint64) { l.stored = changes }

// Closed says that the open page is stored and full with its records up to one: those after it go on the next page.
func (l *Log) Closed(sequence uint64, last string) {
	open := &l.pages[len(l.pages)-1]
	if open.Sequence != sequence {
		return
	}
	// Not by order: the clock of the leader before may have been ahead.
	n := 1 + slices.IndexFunc(open.Records, func(r Record) bool { return r.ID == last })
	rest := slices.Clone(open.Records[n:])
	open.Records = open.Records[:n:n]
	l.pages = append(l.pages, Page{Sequence: sequence + 1, Records: rest})
	if len(l.pages) > Slots {
		l.pages = slices.Delete(l.pages, 0, 1)
	}
}
