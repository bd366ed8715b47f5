package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Counted is a gauge with one label that is counted when it is asked for (K-13): a scrape pays for it, and no round of
// work. Before anybody says how to count it shows nothing. It is safe for concurrent use.
type Counted struct {
	desc  *prometheus.Desc
	count atomic.Pointer[func() map[string]int]
}

// Measure says how to count, by the value of the label; nil is nothing to show. It may be called at any time, also
// several times at once.
func (c *Counted) Measure(count func() map[string]int) { c.count.Store(&count) }

// Describe implements prometheus.Collector.
func (c *Counted) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

// Collect implements prometheus.Collector.
func (c *Counted) Collect(to chan<- prometheus.Metric) {
	count := c.count.Load()
	if count == nil {
		return
	}
	for value, n := range (*count)() {
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(n), value)
	}
}
