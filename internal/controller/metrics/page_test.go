package metrics_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics/state"
)

var rewrite = flag.Bool("rewrite", false, "write the table of metrics in docs/monitoring.md anew")

// recorder keeps what is registered.
type recorder struct {
	prometheus.Registerer
	all []prometheus.Collector
}

// MustRegister implements prometheus.Registerer.
func (r *recorder) MustRegister(collectors ...prometheus.Collector) {
	r.Registerer.MustRegister(collectors...)
	r.all = append(r.all, collectors...)
}

func kindOf(c prometheus.Collector) string {
	switch c.(type) {
	case *prometheus.CounterVec, prometheus.Counter:
		if _, gauge := c.(prometheus.Gauge); !gauge {
			return "counter"
		}
	case *prometheus.HistogramVec, prometheus.Histogram:
		return "histogram"
	}
	return "gauge"
}

// table has a row for each metric of Joiner's own.
func table() string {
	all := &recorder{Registerer: prometheus.NewRegistry()}
	metrics.New(all)
	metrics.NewRequests(all)
	metrics.NewSettings(all)
	described := regexp.MustCompile(`fqName: "(joiner_[^"]+)", help: "([^"]+)", constLabels: \{\}, ` +
		`variableLabels: \{([^}]*)\}`)
	var rows []string
	for _, c := range all.all {
		descs := make(chan *prometheus.Desc, 100)
		c.Describe(descs)
		close(descs)
		for desc := range descs {
			if found := described.FindStringSubmatch(desc.String()); found != nil {
				names := "none"
				if found[3] != "" {
					names = "`" + strings.ReplaceAll(found[3], ",", "`, `") + "`"
				}
				rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n", found[1], kindOf(c), names, found[2]))
			}
		}
	}
	for _, f := range state.Served(state.Options{Bounded: true}) {
		if strings.HasPrefix(f.Name, "joiner_") {
			rows = append(rows, fmt.Sprintf("| `%s` | gauge | `%s` | %s With `--metrics-detail=Bounded` only. |\n",
				f.Name, strings.Join(f.Labels, "`, `"), f.Help))
		}
	}
	slices.Sort(rows)
	return "| name | kind | labels | meaning |\n|---|---|---|---|\n" + strings.Join(rows, "")
}

// U-10: the page has the table of all metrics of Joiner's own, as they are registered.
func TestU10_ThePageListsTheMetrics(t *testing.T) {
	t.Parallel()
	const page = "../../../docs/monitoring.md"
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(content), "make rewrite. -->\n\n")
	old, after, ends := strings.Cut(rest, "\n<!-- The end of the table. -->")
	if !begins || !ends {
		t.Fatal("the page has no place for the table")
	}
	want := table()
	if strings.Count(want, "joiner_") < 20 {
		t.Fatalf("only these metrics were found:\n%s", want)
	}
	if *rewrite {
		whole := before + "make rewrite. -->\n\n" + want + "\n<!-- The end of the table. -->" + after
		if err := os.WriteFile(page, []byte(whole), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != want {
		t.Errorf("the table is\n%s\nwant (make rewrite writes it)\n%s", old, want)
	}
}

// U-10: what is shown of a look are its series and no others; a row with other labels than its metric has fails the
// scrape.
func TestU10_ALookShowsItsSeries(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	standing := metrics.New(registry).Own.Standing
	count := func() (series int) {
		families, err := registry.Gather()
		if err != nil {
			t.Error(err)
		}
		for _, family := range families {
			if family.GetName() == "joiner_nodes" || family.GetName() == "joiner_pods_waiting" {
				series += len(family.Metric)
			}
		}
		return series
	}
	standing.Show([]metrics.Row{{Family: metrics.NodesByState, Labels: []string{"a", "ready"}, Value: 3},
		{Family: metrics.NodesByState, Labels: []string{"b", "ready"}, Value: 1}})
	if n := count(); n != 2 {
		t.Errorf("%d series, want 2", n)
	}
	standing.Show([]metrics.Row{{Family: metrics.PodsWaiting, Labels: []string{"", "a"}, Value: 1}})
	if n := count(); n != 1 {
		t.Errorf("%d series after the next look, want 1", n)
	}
	standing.Show([]metrics.Row{{Family: metrics.NodesByState, Labels: []string{"a"}}})
	if _, err := registry.Gather(); err == nil {
		t.Error("a row without one of its labels is shown")
	}
	if empty := (&metrics.Latest{}).Get(); !empty.Empty() {
		t.Errorf("before any plan there is %v", empty)
	}
}
