package door

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// maxEntries is how many entries are counted each by itself: administrators write the lists, but a metric must stay small
// whatever they write.
const maxEntries = 500

// Entries counts how often each entry of authorizedUsers let somebody pass, so that those that nobody needs are found (H19).
// Its methods may be called by many goroutines.
type Entries struct {
	uses      *prometheus.CounterVec // group, entry, source
	uncounted prometheus.Gauge

	// mu keeps a verdict of an older policy from bringing back an entry that is gone. It is never held across a call that waits.
	mu    sync.Mutex
	shown map[evaluator.Use]evaluator.Source
}

func newEntries(registry Registry, namespace string) *Entries {
	e := &Entries{
		uses: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "entry_uses_total",
			Help: "Requests that an entry of authorizedUsers let pass to a protected group of nodes. Entries that were never used are there with 0."},
			[]string{"group", "entry", "source"}),
		uncounted: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "entries_not_counted",
			Help: "Entries of authorizedUsers whose uses are not counted because there are too many."}),
	}
	registry.MustRegister(e.uses, e.uncounted)
	return e
}

// Show makes the metric have exactly these entries. One that stays keeps its count, and a new one begins with 0; one that moves
// between the configuration and Scheduler is a new one.
func (e *Entries) Show(entries []evaluator.Entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	gone := e.shown
	e.shown = map[evaluator.Use]evaluator.Source{}
	left := 0
	for _, entry := range entries {
		use := evaluator.Use{Group: entry.Group, Entry: entry.Text}
		if _, twice := e.shown[use]; twice {
			continue // the first is the one that is used
		}
		if len(e.shown) == maxEntries {
			left++
			continue
		}
		e.shown[use] = entry.Source
		if gone[use] == entry.Source {
			delete(gone, use)
		}
		e.counter(use, entry.Source).Add(0)
	}
	for use, source := range gone {
		e.uses.DeleteLabelValues(use.Group, printable(use.Entry), string(source))
	}
	e.uncounted.Set(float64(left))
}

// Count counts uses. Entries that are not shown are left out.
func (e *Entries) Count(uses []evaluator.Use) {
	if len(uses) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, use := range uses {
		if source, shown := e.shown[use]; shown {
			e.counter(use, source).Inc()
		}
	}
}

func (e *Entries) counter(use evaluator.Use, source evaluator.Source) prometheus.Counter {
	return e.uses.WithLabelValues(use.Group, printable(use.Entry), string(source))
}

// printable is an entry as the value of a label, which must be valid UTF-8.
func printable(entry string) string { return strings.ToValidUTF8(entry, "\uFFFD") }
