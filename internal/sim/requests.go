package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file counts what a run asks of the API server (B-12). What a node costs that comes or goes is then a function
// of a script: it is the same on every machine, and a request more shows in testdata/requests.

// event is the verb under which events are counted. A process sends each by a request of its own.
const verbEvent = "event"

// Request is a kind of request: of which controller, which verb on which kind of objects. Of an event it is the
// reason, and the kind of the object that it is about; nobody knows its controller.
type Request struct {
	Controller, Verb, Object string
	// Refused says that the API server did not do it: the object has changed, or is gone.
	Refused bool
}

// Requests are counts by kind.
type Requests map[Request]int

// Total is the number of all.
func (r Requests) Total() (sum int) {
	for _, n := range r {
		sum += n
	}
	return sum
}

// Table prints the counts, and each divided by so many nodes: the most frequent first, events after all others.
func (r Requests) Table(nodes int) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	kinds := slices.SortedFunc(maps.Keys(r), func(a, b Request) int {
		return cmp.Or(strings.Compare(a.last(), b.last()), cmp.Compare(r[b], r[a]),
			strings.Compare(a.String(), b.String()))
	})
	events := 0
	for _, kind := range kinds {
		if kind.Verb == verbEvent {
			events += r[kind]
		}
		fmt.Fprintf(t, "%s\t%d\t%.2f\n", kind, r[kind], float64(r[kind])/float64(nodes))
	}
	fmt.Fprintf(t, "all, of them events\t%d, %d\t%.2f, %.2f\n", r.Total(), events, float64(r.Total())/float64(nodes),
		float64(events)/float64(nodes))
	_ = t.Flush() // a builder takes everything
	return b.String()
}

// last sorts events behind all others.
func (r Request) last() string {
	if r.Verb == verbEvent {
		return verbEvent
	}
	return ""
}

// String is how tables name it.
func (r Request) String() string {
	text := strings.TrimPrefix(r.Controller+": "+r.Verb+" "+r.Object, ": ")
	if r.Refused {
		text += ", refused"
	}
	return text
}

// countCall counts a call that has arrived.
func (w *World) countCall(p *process, c *call) {
	if c.cloud {
		return
	}
	words := strings.Fields(c.subject) // the kind, the name, and perhaps a part
	object := words[0]
	if len(words) > 1 && strings.HasSuffix(c.subject, " status") {
		object += " status"
	}
	w.requests[Request{p.line.Name, c.verb, object, c.err != nil}]++
}

// countEvent counts an event.
func (w *World) countEvent(about client.Object, reason string) {
	w.requests[Request{Verb: verbEvent, Object: reason + " " + kindOf(about)}]++
}

// requestVerbs are the lines of scripts that this file adds.
func requestVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{"count": (*World).countAnew}
}

// countAnew forgets what was asked so far: the line is "at 3m count requests".
func (w *World) countAnew(arguments) error {
	clear(w.requests)
	return nil
}
