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

// This file counts the API requests of a run (B-12). The cost of adding or removing a node is thus a function of a
// script: it is the same on every machine, and an additional request shows in testdata/requests.

// verbEvent is the verb under which events are counted. A process sends each event in a request of its own.
const verbEvent = "event"

// Request is a kind of request: its controller, verb and kind of objects. For an event, Object is the reason and the
// kind of the object concerned, and Controller is unknown.
type Request struct {
	Controller, Verb, Object string
	// Refused says that the API server refused it: the object has changed, or is gone.
	Refused bool
}

// Requests are the numbers of requests by kind.
type Requests map[Request]int

// Total returns the sum.
func (r Requests) Total() (sum int) {
	for _, n := range r {
		sum += n
	}
	return sum
}

// Table formats the counts, and each count divided by nodes: the most frequent first, events last.
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
	_ = t.Flush() // a builder never fails
	return b.String()
}

// last sorts events after all others.
func (r Request) last() string {
	if r.Verb == verbEvent {
		return verbEvent
	}
	return ""
}

// String returns its name in tables.
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

// requestVerbs returns the script lines of this file.
func requestVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{"count": (*World).countAnew}
}

// countAnew resets the counts: the line is "at 3m count requests".
func (w *World) countAnew(arguments) error {
	clear(w.requests)
	return nil
}
