package door

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// maxEntries is how many entries have a time series of their own. A metric must stay small, whatever administrators
// write into the lists.
const maxEntries = 500

// Entries counts how often each entry of authorizedUsers let a request pass, so that unused entries can be found
// (H19). Its methods are safe for concurrent use.
type Entries struct {
	uses      *prometheus.CounterVec // group, entry, source
	uncounted prometheus.Gauge

	// mu keeps a verdict of an older policy from bringing back a removed entry. It is never held across a call that
	// waits.
	mu    sync.Mutex
	shown map[evaluator.Use]evaluator.Source
}

func newEntries(registry Registry, namespace string) *Entries {
	e := &Entries{
		uses: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "entry_uses_total",
			Help: "Requests that an entry of authorizedUsers let pass to a protected group of nodes. " +
				"Entries that were never used are there with 0."},
			[]string{"group", "entry", "source"}),
		uncounted: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "entries_not_counted",
			Help: "Entries of authorizedUsers whose uses are not counted because there are too many."}),
	}
	registry.MustRegister(e.uses, e.uncounted)
	return e
}

// Show makes the metric have exactly these entries. An entry that stays keeps its count, a new one begins at 0. One
// that moves between the configuration and the live source counts as new.
func (e *Entries) Show(entries []evaluator.Entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	gone := e.shown
	e.shown = map[evaluator.Use]evaluator.Source{}
	left := 0
	for _, entry := range entries {
		use := evaluator.Use{Group: entry.Group, Entry: entry.Text}
		if _, twice := e.shown[use]; twice {
			continue // the first one is used
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

// Count counts uses. It ignores entries that are not shown.
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

// printable returns an entry as a label value, which must be valid UTF-8.
func printable(entry string) string { return strings.ToValidUTF8(entry, "\uFFFD") }
