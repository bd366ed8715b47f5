package history

import (
	"cmp"
	"slices"
	"time"
)

// Slots is how many ConfigMaps hold the log, one page each.
const Slots = 16

// mostRecords bounds the records in memory, whatever their size.
const mostRecords = 20_000

// mostPending bounds the removals that have not ended yet.
const mostPending = 10_000

// sameWithin is the time within which a repeated refusal is counted in the same record.
const sameWithin = 10 * time.Minute

// lookBack is how many records are searched for the same refusal.
const lookBack = 50

// Page is a part of the log, as one ConfigMap holds it.
type Page struct {
	// Sequence numbers the pages from 1. A page is in the slot Sequence modulo Slots.
	Sequence uint64
	Records  []Record // oldest first
}

// Slot returns the number of the ConfigMap that holds the page.
func (p Page) Slot() int { return int(p.Sequence % Slots) }

// Log holds records, oldest first, in pages of which the last is open. It is not safe for concurrent use.
type Log struct {
	retention time.Duration
	origin    string // keeps IDs of different processes apart
	pages     []Page
	removals  map[string]string // by NodeClaim: the ID of the decision to remove it
	launches  map[string]launch // by NodeClaim, until it has joined
	lastMilli uint64
	inMilli   uint64
	changes   uint64 // counts changes of the open page
	stored    uint64 // the changes that the ConfigMap holds
}

// New returns an empty log. Records older than retention are dropped; with 0 none is dropped because of its age.
// origin identifies the process.
func New(retention time.Duration, origin uint64) *Log {
	return &Log{retention: retention, origin: number(origin, 3), pages: []Page{{Sequence: 1}},
		removals: map[string]string{}, launches: map[string]launch{}}
}

// launch is the decision that created a NodeClaim.
type launch struct{ id, cause string }

// Add adds a record with the time now. It returns the record's ID and whether it is new: a repeated refusal is counted
// in the existing record.
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
	if r.Verb != VerbLead { // a leader without decisions writes nothing
		l.changes++
	}
	l.drop(now)
	return r.ID, true
}

// note sets Of where a record ends something. The end of a removal refers to its decision; a join, or an end before
// joining, refers to the launch.
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

// nextID returns an ID that sorts after all earlier IDs of this log, even if the clock was set back.
func (l *Log) nextID(now time.Time) string {
	if milli := uint64(max(0, now.UnixMilli())); milli > l.lastMilli {
		l.lastMilli, l.inMilli = milli, 0
	} else if l.inMilli++; l.inMilli == uint64(len(digits)*len(digits)) {
		l.lastMilli, l.inMilli = l.lastMilli+1, 0
	}
	return number(l.lastMilli, idLength-5) + number(l.inMilli, 2) + l.origin
}

// drop deletes records that are too old or too many. The open page stays, even if it is empty.
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

// Load inserts pages that were read before the records added since the start. Records that appear twice are kept once.
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

// Open returns a copy of the open page, and the count of changes that it contains, for [Log.Stored].
func (l *Log) Open() (p Page, changes uint64) {
	p = l.pages[len(l.pages)-1]
	p.Records = slices.Clone(p.Records)
	return p, l.changes
}

// Dirty reports whether something is not stored yet.
func (l *Log) Dirty() bool { return l.changes != l.stored }

// Stored notes that the open page is stored as [Log.Open] returned it.
func (l *Log) Stored(changes uint64) { l.stored = changes }

// Closed notes that the open page is full and stored up to the record last. Later records go on the next page.
func (l *Log) Closed(sequence uint64, last string) {
	open := &l.pages[len(l.pages)-1]
	if open.Sequence != sequence {
		return
	}
	// Not by order: the clock of the previous leader may have been ahead.
	n := 1 + slices.IndexFunc(open.Records, func(r Record) bool { return r.ID == last })
	rest := slices.Clone(open.Records[n:])
	open.Records = open.Records[:n:n]
	l.pages = append(l.pages, Page{Sequence: sequence + 1, Records: rest})
	if len(l.pages) > Slots {
		l.pages = slices.Delete(l.pages, 0, 1)
	}
}
