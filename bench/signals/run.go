// Package signals compares what two controllers tell their users while they do the same (K-08 to K-19). Karpenter's
// own controller for KWOK nodes and Joiner go through one scenario, each on a control plane of its own. Then their
// metrics, events, kubectl tables and logs are set side by side, and make the page docs/metrics-parity.md. Each
// difference has an explanation in testdata, and each explanation a difference.
//
//	run.go       what a run has shown, read from text
//	compare.go   two runs side by side
//	explained.go the explanations
//	page.go      the page
package signals

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Run is what one side has shown.
type Run struct {
	// Rest is a scrape while nodes stand and a pod waits, End one after everything is gone.
	Rest, End map[string]Family
	// Events are how many events of a reason were seen, by "Reason Type Kind".
	Events map[string]int
	// Columns are the headings of kubectl's tables, by what was asked for.
	Columns map[string]string
	// Messages are how often something was logged, by the message and, where a line has one, by its key event.
	Messages map[string]int
}

// Family is a metric of a scrape.
type Family struct {
	Type   string
	Labels []string // in alphabetical order
	Series []Series
}

// Series is a series of a family. For histograms and summaries, Value is the number of observations.
type Series struct {
	Labels map[string]string
	Value  float64
}

// ReadMetrics reads a scrape.
func ReadMetrics(text io.Reader) (map[string]Family, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	read, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, fmt.Errorf("a scrape: %w", err)
	}
	families := map[string]Family{}
	for name, f := range read {
		family, labels := Family{Type: strings.ToLower(f.GetType().String())}, map[string]bool{}
		for _, m := range f.GetMetric() {
			series := Series{Labels: map[string]string{}, Value: value(m)}
			for _, l := range m.GetLabel() {
				series.Labels[l.GetName()] = l.GetValue()
				labels[l.GetName()] = true
			}
			family.Series = append(family.Series, series)
		}
		family.Labels = slices.Sorted(maps.Keys(labels))
		families[name] = family
	}
	return families, nil
}

func value(m *dto.Metric) float64 {
	switch {
	case m.GetHistogram() != nil:
		return float64(m.GetHistogram().GetSampleCount())
	case m.GetSummary() != nil:
		return float64(m.GetSummary().GetSampleCount())
	case m.GetCounter() != nil:
		return m.GetCounter().GetValue()
	case m.GetGauge() != nil:
		return m.GetGauge().GetValue()
	}
	return m.GetUntyped().GetValue()
}

// ReadMessages counts the messages of a log whose lines are JSON, and the values of the key event.
func ReadMessages(log io.Reader) (map[string]int, error) {
	messages, lines := map[string]int{}, bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Message, Event string }
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		for _, name := range []string{line.Message, line.Event} {
			if name != "" {
				messages[name]++
			}
		}
	}
	return messages, lines.Err()
}

// Heading returns the first line of a kubectl table, with single spaces.
func Heading(table string) string {
	first, _, _ := strings.Cut(table, "\n")
	return strings.Join(strings.Fields(first), " ")
}
