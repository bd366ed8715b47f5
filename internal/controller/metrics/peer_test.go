package metrics_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics/state"
)

// notServed returns Karpenter's families that are not served yet, with the line of the specification that they wait
// for. The list may only shrink.
func notServed() map[string]string {
	const score, cost = "K-16: the score of a move is not in the plan", "K-50"
	return map[string]string{
		"karpenter_consolidation_score":                                    score,
		"karpenter_pod_deletion_cost_nodes_with_pending_annotation_writes": cost,
		"karpenter_pod_deletion_cost_pod_annotation_writes_total":          cost,
	}
}

// kwokLabels are the label keys of nodes that Karpenter knows with its provider for KWOK.
func kwokLabels() []string {
	const kwok = "karpenter.kwok.sh/"
	return append(metrics.NodeLabels(), kwok+"instance-size", kwok+"instance-family", kwok+"instance-cpu",
		kwok+"instance-memory")
}

// K-08, K-10: names, types, labels, buckets and quantiles are Karpenter's. A test in the module bench, which may
// import Karpenter, checks the table itself.
func TestK08_MetricsAreAsKarpenterHasThem(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("testdata/karpenter.txt")
	if err != nil {
		t.Fatal(err)
	}
	ours, missing := served(t), notServed()
	for line := range strings.Lines(string(table)) {
		line = strings.TrimSpace(line)
		name, _, _ := strings.Cut(line, " ")
		have, found := ours[name]
		reason, listed := missing[name]
		delete(missing, name)
		switch {
		case listed && found:
			t.Errorf("%s is served, and in the list of those that are not (%s): take it out", name, reason)
		case !listed && !found:
			t.Errorf("%s is not served, want\n\t%s", name, line)
		case found && have != line:
			t.Errorf("served is\n\t%s\nwant\n\t%s", have, line)
		}
	}
	for name := range missing {
		t.Errorf("%s is in the list of those that are not served, and Karpenter has no such metric", name)
	}
	if n := len(notServed()); n > 3 {
		t.Errorf("%d families are not served: the list may only shrink", n)
	}
}

var described = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

// served are our lines of the table, by name.
func served(t *testing.T) map[string]string {
	t.Helper()
	all := &recorder{Registerer: prometheus.NewRegistry()}
	classes := []string{"karpenter.kwok.sh/kwoknodeclass"}
	metrics.New(all)
	metrics.NewConditions(all, classes, true)
	metrics.NewBuild(all)
	lines := map[string]string{}
	for _, collector := range all.all {
		descs := make(chan *prometheus.Desc, 100)
		collector.Describe(descs)
		close(descs)
		for desc := range descs {
			found := described.FindStringSubmatch(desc.String())
			if found == nil {
				t.Fatalf("described as %s", desc)
			}
			labels := slices.DeleteFunc(strings.Split(found[2], ","), func(l string) bool { return l == "" })
			kind, shape := measure(t, collector, len(labels))
			slices.Sort(labels)
			lines[found[1]] = strings.TrimRight(fmt.Sprintf("%s %s {%s} %s", found[1], kind, strings.Join(labels, ","),
				shape), " ")
		}
	}
	for _, f := range state.Served(state.Options{NodeLabels: kwokLabels(), ClassLabels: classes, Deprecated: true}) {
		lines[f.Name] = fmt.Sprintf("%s gauge {%s}", f.Name, strings.Join(f.Labels, ","))
	}
	return lines
}

// measure makes a series of a collector, and tells its type, and its buckets or quantiles.
func measure(t *testing.T, collector prometheus.Collector, labels int) (kind, shape string) {
	t.Helper()
	values := make([]string, labels)
	var made prometheus.Metric
	switch vec := collector.(type) {
	case *prometheus.CounterVec:
		made = vec.WithLabelValues(values...)
	case *metrics.Amounts:
		return "gauge", ""
	case *prometheus.GaugeVec:
		made = vec.WithLabelValues(values...)
	case *prometheus.HistogramVec:
		made = vec.WithLabelValues(values...).(prometheus.Metric)
	case *prometheus.SummaryVec:
		made = vec.WithLabelValues(values...).(prometheus.Metric)
	case prometheus.Metric:
		made = vec
	default:
		return "gauge", "" // those of how the cluster stands
	}
	var written dto.Metric
	if err := made.Write(&written); err != nil {
		t.Fatal(err)
	}
	var numbers []string
	number := func(f float64) { numbers = append(numbers, strconv.FormatFloat(f, 'g', -1, 64)) }
	switch {
	case written.Counter != nil:
		return "counter", ""
	case written.Histogram != nil:
		for _, bucket := range written.Histogram.Bucket {
			number(bucket.GetUpperBound())
		}
		return "histogram", strings.Join(numbers, ",")
	case written.Summary != nil:
		for _, quantile := range written.Summary.Quantile {
			number(quantile.GetQuantile())
		}
		return "summary", strings.Join(numbers, ",")
	}
	return "gauge", ""
}

// K-25: joinerctl takeover check knows which of the metrics that Karpenter's users look at are served.
func TestK25_TheCheckKnowsWhatIsServed(t *testing.T) {
	t.Parallel()
	const path = "../../takeover/metrics.txt"
	var names []string
	for name := range served(t) {
		if !strings.HasPrefix(name, "joiner_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if *rewrite {
		if err := os.WriteFile(path, []byte(strings.Join(names, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if listed := strings.Fields(string(data)); !slices.Equal(listed, names) {
		t.Errorf("internal/takeover/metrics.txt has\n%v\nserved are\n%v\nmake rewrite writes it anew", listed, names)
	}
}
