package alerts

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/charts"
)

// namespace is that of the charts' releases in these tests.
const namespace = "hcp-a"

// alert is a rule as written in a chart.
type alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
	chart               string
}

// alerts returns those of all charts.
func alerts(t *testing.T) (all []alert) {
	t.Helper()
	for _, chart := range []string{charts.Operator, charts.Webhook, charts.Joiner} {
		content, err := charts.Alerts(chart, namespace)
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Groups []struct {
				Name  string
				Rules []alert
			}
		}
		if err := yaml.UnmarshalStrict(content, &file); err != nil {
			t.Fatalf("%s: %v", chart, err)
		}
		for _, group := range file.Groups {
			for _, a := range group.Rules {
				a.chart = chart
				all = append(all, a)
			}
		}
	}
	if len(all) < 28 {
		t.Fatalf("only %d alerts: does the test still read them?", len(all))
	}
	return all
}

// parsed returns the expression of an alert.
func (a alert) parsed(t *testing.T) parser.Expr {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(a.Expr)
	if err != nil {
		t.Fatalf("%s: %v", a.Alert, err)
	}
	return expr
}

// rule returns the alert as Prometheus evaluates it.
func (a alert) rule(t *testing.T) *rules.AlertingRule {
	t.Helper()
	var hold model.Duration
	if a.For != "" {
		var err error
		if hold, err = model.ParseDuration(a.For); err != nil {
			t.Fatalf("%s: for: %v", a.Alert, err)
		}
	}
	return rules.NewAlertingRule(a.Alert, a.parsed(t), time.Duration(hold), 0, labels.FromMap(a.Labels),
		labels.FromMap(a.Annotations),
		labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
}

// firing is one alert that fires, by its labels.
type firing struct{ name, party, severity, summary, description string }

// history evaluates all alerts once a minute over samples, which have one value a minute. It returns what fires in
// each of the given minutes, which are in order. Samples are series in the notation of Prometheus' own tests, without
// the labels that a scrape adds.
func history(t *testing.T, samples []string, minutes ...int) map[int][]firing {
	t.Helper()
	load := []string{"load 1m"}
	for _, series := range samples {
		load = append(load, "  "+scraped(series))
	}
	storage := promqltest.LoadedStorage(t, strings.Join(load, "\n")+"\n")
	t.Cleanup(func() { storage.Close() })
	query := rules.EngineQueryFunc(promqltest.NewTestEngineWithOpts(t, promql.EngineOpts{
		MaxSamples: 100_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
	}), storage)
	var all []*rules.AlertingRule
	for _, a := range alerts(t) {
		all = append(all, a.rule(t))
	}
	found := map[int][]firing{}
	for minute := range minutes[len(minutes)-1] + 1 {
		for _, rule := range all {
			if _, err := rule.Eval(t.Context(), 0, time.Unix(int64(minute)*60, 0), query, nil, 0); err != nil {
				t.Fatalf("%s: %v", rule.Name(), err)
			}
			for _, active := range rule.ActiveAlerts() {
				if active.State == rules.StateFiring && slices.Contains(minutes, minute) {
					found[minute] = append(found[minute], firing{rule.Name(), active.Labels.Get("party"),
						active.Labels.Get("severity"),
						active.Annotations.Get("summary"), active.Annotations.Get("description")})
				}
			}
		}
	}
	return found
}

// scraped adds the labels of its target to a series.
func scraped(series string) string {
	target := fmt.Sprintf("namespace=%q,pod=%q", namespace, "p-1")
	name, rest, _ := strings.Cut(series, " ")
	if before, closed := strings.CutSuffix(name, "}"); closed {
		return strings.TrimSuffix(before, ",") + "," + target + "} " + rest
	}
	return name + "{" + target + "} " + rest
}
