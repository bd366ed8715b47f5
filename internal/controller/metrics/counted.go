package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Counted is a gauge with one label that is counted at each scrape (K-13), so that no round of work pays for it. It
// exports nothing before Measure was called. It is safe for concurrent use.
type Counted struct {
	desc  *prometheus.Desc
	count atomic.Pointer[func() map[string]int]
}

// Measure sets the function that counts, by the value of the label; if it returns nil, nothing is exported. It may be
// called at any time, also concurrently.
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
