package alerts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/app/webhook"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/door"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// report returns a report with these counts.
func report(counts ...conformance.Count) conformance.Report {
	return conformance.Report{Counts: counts}
}

// operatorMetrics registers those of joiner-operator, each with all values of its labels.
func operatorMetrics(registry *prometheus.Registry) operator.Metrics {
	m := operator.NewMetrics(registry)
	m.ShowProtected("")
	m.ShowNotReady(nil)
	var counts []conformance.Count
	for _, cause := range conformance.Causes() {
		for _, state := range []conformance.State{conformance.NotConforming, conformance.Replacing,
			conformance.NotKnown} {
			counts = append(counts, conformance.Count{Kind: conformance.Node, State: state, Cause: cause,
				Party: cause.Party(), Objects: 1})
		}
	}
	counts = append(counts, conformance.Count{Kind: conformance.Node, State: conformance.Conforms, Objects: 1})
	m.ShowConformance(report(counts...), time.Unix(0, 0))
	m.Foreign.WithLabelValues(conformance.NodePool)
	return m
}

// webhookMetrics registers those of joiner-webhook, each with all values of its labels, for one group.
func webhookMetrics(registry *prometheus.Registry) {
	m := door.NewMetrics(registry)
	m.Show([]evaluator.Effective{{Group: "ControlPlane", Mode: configv1.Enable}}, 0, time.Unix(0, 0))
	m.ShowNodes("ControlPlane", 1, 1)
	m.ShowPins([]evaluator.Effective{{Group: "ControlPlane"}}, nil)
	for _, decision := range []evaluator.Decision{evaluator.Deny, evaluator.InformOnly,
		evaluator.Warn, evaluator.Overridden, evaluator.Authorized} {
		for _, dry := range []bool{false, true} {
			m.Count([]evaluator.Sample{{Group: "ControlPlane", Mode: string(configv1.Enable),
				Decision: string(decision), Resource: "pods", Reason: "NodeName", DryRun: dry}})
		}
	}
	registry.MustRegister(webhook.Rejections(), serve.ExpiryMetric(webhook.ExpiryMetric, noCertificate{}))
}

// registered returns what a scrape of the chart's program shows: by metric, the values of each label.
func registered(t *testing.T, chart string) map[string]map[string][]string {
	t.Helper()
	registry := prometheus.NewRegistry()
	switch chart {
	case charts.Operator:
		operatorMetrics(registry)
	case charts.Joiner:
		joinerMetrics(registry)
	default:
		webhookMetrics(registry)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]map[string][]string{}
	for _, family := range families {
		has := map[string][]string{}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				has[label.GetName()] = append(has[label.GetName()], label.GetValue())
			}
		}
		names := []string{""}
		if family.GetType() == dto.MetricType_HISTOGRAM {
			names = []string{"_bucket", "_sum", "_count"}
		}
		for _, suffix := range names {
			shown[family.GetName()+suffix] = has
		}
		if len(names) > 1 {
			shown[family.GetName()+"_bucket"] = maps.Clone(has)
			shown[family.GetName()+"_bucket"]["le"] = nil
		}
	}
	return shown
}

// values returns those that a matcher names.
func values(m *labels.Matcher) []string {
	if m.Type == labels.MatchRegexp || m.Type == labels.MatchNotRegexp {
		return strings.Split(m.Value, "|")
	}
	return []string{m.Value}
}

// the program of the chart registers every metric of an expression, with that label and that value. A scrape
// adds the namespace, which each expression asks for.
func TestA43_EveryMetricAndLabelIsRegistered(t *testing.T) {
	t.Parallel()
	selectors := 0
	for _, a := range alerts(t) {
		shown := registered(t, a.chart)
		parser.Inspect(a.parsed(t), func(node parser.Node, _ []parser.Node) error {
			selector, is := node.(*parser.VectorSelector)
			if !is {
				return nil
			}
			selectors++
			has, known := shown[selector.Name]
			if !known {
				t.Errorf("%s: %s has no metric %s; it has %v", a.Alert, a.chart, selector.Name,
					slices.Sorted(maps.Keys(shown)))
				return nil
			}
			scoped := false
			for _, m := range selector.LabelMatchers {
				switch m.Name {
				case labels.MetricName:
				case "namespace":
					scoped = m.Type == labels.MatchEqual && m.Value == namespace
				default:
					for _, value := range values(m) {
						if !slices.Contains(has[m.Name], value) {
							t.Errorf("%s: %s{%s} never has %q; it has %q", a.Alert, selector.Name, m.Name, value,
								has[m.Name])
						}
					}
				}
			}
			if !scoped {
				t.Errorf("%s: %s is not that of the release's namespace", a.Alert, selector.Name)
			}
			return nil
		})
		a.aggregated(t, shown)
	}
	if selectors < len(alerts(t)) {
		t.Errorf("only %d metrics were looked at", selectors)
	}
}

// aggregated reports labels by which an expression groups, but which neither its metrics nor a scrape have.
func (a alert) aggregated(t *testing.T, shown map[string]map[string][]string) {
	t.Helper()
	parser.Inspect(a.parsed(t), func(node parser.Node, _ []parser.Node) error {
		aggregate, is := node.(*parser.AggregateExpr)
		if !is {
			return nil
		}
		parser.Inspect(aggregate.Expr, func(inner parser.Node, _ []parser.Node) error {
			if selector, is := inner.(*parser.VectorSelector); is {
				for _, label := range aggregate.Grouping {
					if _, has := shown[selector.Name][label]; !has && label != "namespace" && label != "pod" {
						t.Errorf("%s: %s has no label %s to group by", a.Alert, selector.Name, label)
					}
				}
			}
			return nil
		})
		return nil
	})
}

// each alert has what its reader needs, and one of the party Tenant pages nobody.
func TestA44_EachAlertSaysWhoseItIsAndWhereToRead(t *testing.T) {
	t.Parallel()
	parties := map[string]bool{"": true} // of those that take it from the metric
	for _, party := range conformance.Parties() {
		parties[string(party)] = true
	}
	for _, a := range alerts(t) {
		if !slices.Contains([]string{"info", "warning", "critical"}, a.Labels["severity"]) ||
			!parties[a.Labels["party"]] {
			t.Errorf("%s has the labels %v", a.Alert, a.Labels)
		}
		if a.Labels["party"] == string(conformance.Tenant) && a.Labels["severity"] != "info" {
			t.Errorf("%s is the tenant's and has the severity %s", a.Alert, a.Labels["severity"])
		}
		if want := fmt.Sprintf("/docs/runbooks/%s.md", a.Alert); !strings.HasSuffix(a.Annotations["runbook_url"],
			want) {
			t.Errorf("%s: its runbook_url is %q, want one that ends in %s", a.Alert, a.Annotations["runbook_url"],
				want)
		}
		for _, annotation := range []string{"summary", "description"} {
			if !strings.HasSuffix(a.Annotations[annotation], ".") {
				t.Errorf("%s: its %s is %q, want a sentence", a.Alert, annotation, a.Annotations[annotation])
			}
		}
	}
}
