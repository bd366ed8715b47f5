package controllertest

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Observed returns how many observations a histogram or summary has with these label values.
func Observed(t *testing.T, registry *prometheus.Registry, name string, labels ...string) uint64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var times uint64
	for _, family := range families {
		for _, metric := range family.Metric {
			var values []string
			for _, pair := range metric.Label {
				values = append(values, pair.GetValue())
			}
			if family.GetName() == name && !slices.ContainsFunc(labels,
				func(l string) bool { return !slices.Contains(values, l) }) {
				times += metric.GetHistogram().GetSampleCount() + metric.GetSummary().GetSampleCount()
			}
		}
	}
	return times
}

// Count returns the sum of a counter's or gauge's series with these label values, as in a scrape.
func Count(t *testing.T, registry *prometheus.Registry, name string, labels ...string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.Metric {
			var values []string
			for _, pair := range metric.Label {
				values = append(values, pair.GetValue())
			}
			if !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(values, l) }) {
				sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return sum
}
