// Package alerts tests the alerts of the charts with Prometheus' own parser and engine: their metrics
// and label values are those that the programs register, each fires and stops, and each cause makes the alerts of its
// party fire. It is a module of its own, since nothing else needs Prometheus.
package alerts
