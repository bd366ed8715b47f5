package alerts

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/joiner-autoscaler/joiner/charts"
)

// expressions returns those of the dashboard, by panel.
func expressions(t *testing.T) map[string][]string {
	t.Helper()
	content, err := charts.Files().ReadFile(charts.Joiner + "/files/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(content, &board); err != nil {
		t.Fatal(err)
	}
	found, row := map[string][]string{}, ""
	for _, p := range board.Panels {
		if len(p.Targets) == 0 {
			row = p.Title
		}
		for _, target := range p.Targets {
			found[row+"/"+p.Title] = append(found[row+"/"+p.Title], strings.ReplaceAll(target.Expr, "$__rate_interval",
				"5m"))
		}
	}
	return found
}

// shownByAll returns what scrapes of all programs show: by metric, the values of each label.
func shownByAll(t *testing.T) map[string]map[string][]string {
	t.Helper()
	shown := map[string]map[string][]string{}
	for _, chart := range []string{charts.Operator, charts.Webhook, charts.Joiner} {
		maps.Copy(shown, registered(t, chart))
	}
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), "process_") {
			shown[family.GetName()] = map[string][]string{}
		}
	}
	return shown
}

// U-10: each expression of the dashboard can be parsed. The programs register its metrics, labels and label values,
// except those that a scrape or the user's Prometheus adds.
func TestU10_TheDashboardShowsWhatIsRegistered(t *testing.T) {
	t.Parallel()
	shown, selectors := shownByAll(t), 0
	for panel, list := range expressions(t) {
		for _, expr := range list {
			a := alert{Alert: panel, Expr: expr}
			parser.Inspect(a.parsed(t), func(node parser.Node, _ []parser.Node) error {
				selector, is := node.(*parser.VectorSelector)
				if !is {
					return nil
				}
				selectors++
				has, known := shown[selector.Name]
				if !known {
					t.Errorf("%s: nothing registers %s", panel, selector.Name)
					return nil
				}
				ofCluster := false
				for _, m := range selector.LabelMatchers {
					values, label := values(m), has[m.Name]
					switch {
					case m.Name == labels.MetricName:
					case m.Name == "cluster":
						ofCluster = true
					case m.Value == "$nodepool" && label != nil:
					default:
						for _, value := range values {
							if !slices.Contains(label, value) {
								t.Errorf("%s: %s{%s} never has %q; it has %q", panel, selector.Name, m.Name, value,
									label)
							}
						}
					}
				}
				if !ofCluster {
					t.Errorf("%s: %s is not that of the chosen cluster", panel, selector.Name)
				}
				return nil
			})
			a.aggregated(t, shown)
		}
	}
	if selectors < 50 {
		t.Errorf("only %d metrics were looked at", selectors)
	}
}

// U-10: each of Joiner's own metrics is on the dashboard or in an alert: else nobody would look at it.
func TestU10_EveryMetricIsLookedAt(t *testing.T) {
	t.Parallel()
	text := ""
	for _, list := range expressions(t) {
		text += strings.Join(list, "\n")
	}
	for _, a := range alerts(t) {
		text += a.Expr
	}
	for name := range registered(t, charts.Joiner) {
		name = strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count")
		if strings.HasPrefix(name, "joiner_") && !strings.Contains(text, name) {
			t.Errorf("%s is in no panel and no alert", name)
		}
	}
}
