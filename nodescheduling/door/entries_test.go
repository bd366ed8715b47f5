package door

import (
	"fmt"
	"maps"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

// counted reads the metric: by "source entry".
func counted(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			switch family.GetName() {
			case "node_scheduling_policy_entry_uses_total":
				labels := map[string]string{}
				for _, label := range metric.GetLabel() {
					labels[label.GetName()] = label.GetValue()
				}
				counts[labels["source"]+" "+labels["entry"]] = metric.GetCounter().GetValue()
			case "node_scheduling_policy_entries_not_counted":
				if n := metric.GetGauge().GetValue(); n > 0 {
					counts["not counted"] = n
				}
			}
		}
	}
	return counts
}

// H19: the metric has every entry of the configuration and of Scheduler, with 0 until it lets a request pass. A
// denial, a dry run and a request that aims at no protected node use no entry. Of two entries that authorize the same,
// the first is used.
func TestUsesOfEntriesAreCounted(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	metrics := NewMetrics(registry)
	world := schedulingtest.NewWorld()
	change := func(lines string) {
		t.Helper()
		if _, err := world.Run("cluster", false, lines, nil); err != nil {
			t.Fatal(err)
		}
		policy, _, err := evaluator.New(world.Sources)
		if err != nil {
			t.Fatal(err)
		}
		metrics.Entries.Show(policy.Entries())
	}
	expect := func(what string, want map[string]float64) {
		t.Helper()
		if got := counted(t, registry); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	change(
		"group ControlPlane select=cp mode=Enable users=scheduler,ops/a,ops/b,group:admins\n" +
			"scheduler cluster users=backup/agent\nnode cp1 labels=cp\nnode w1")
	expect("nobody came", map[string]float64{"Config scheduler": 0, "Config ops/a": 0, "Config ops/b": 0,
		"Config group:admins": 0, "Scheduler backup/agent": 0})
	observe := Observer(NewEvents(nil, nil, metrics), metrics, logr.Discard())
	for _, line := range []string{
		"scheduler bind ops/web to=cp1", "scheduler bind ops/web to=w1", "scheduler bind app/web to=cp1",
		"eve create pod ops/web node=cp1",
		"dora[admins] create pod backup/web node=cp1", "dora[admins] create pod ops/web node=cp1 dry-run",
		"sa:backup/agent create pod backup/web node=cp1",
	} {
		asked, err := schedulingtest.ParseRequest(line)
		if err != nil {
			t.Fatal(err)
		}
		verdict, err := world.Evaluate(asked)
		if err != nil {
			t.Fatal(err)
		}
		observe(asked.Request, verdict)
	}
	expect("some came", map[string]float64{"Config scheduler": 1, "Config ops/a": 1, "Config ops/b": 0,
		"Config group:admins": 1, "Scheduler backup/agent": 2})
	change("scheduler cluster users=ops/a,other/x")
	expect("Scheduler changed", map[string]float64{"Config scheduler": 1, "Config ops/a": 1, "Config ops/b": 0,
		"Config group:admins": 1, "Scheduler other/x": 0})
	metrics.Entries.Count([]evaluator.Use{{Group: "ControlPlane", Entry: "backup/agent"}})
	expect("an older verdict comes late", map[string]float64{"Config scheduler": 1, "Config ops/a": 1,
		"Config ops/b": 0, "Config group:admins": 1, "Scheduler other/x": 0})
	change("group ControlPlane select=cp mode=Enable users=scheduler,ops/a\nscheduler cluster users=ops/b")
	expect("an entry moved", map[string]float64{"Config scheduler": 1, "Config ops/a": 1, "Scheduler ops/b": 0})
	change("group ControlPlane select=cp mode=Enable users=scheduler\nscheduler cluster users=ops/a,ops/b")
	expect("one that was used moved", map[string]float64{"Config scheduler": 1, "Scheduler ops/a": 0,
		"Scheduler ops/b": 0})
	change("scheduler cluster mode=Disable")
	expect("a group that is not judged has no entries that could be used", map[string]float64{})
}

// H19: the metric stays small whatever the lists hold, and takes any text.
func TestEntriesAreBounded(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	metrics := NewMetrics(registry)
	entries := []evaluator.Entry{{Group: "g", Text: "\xff", Source: evaluator.FromConfig}}
	for i := range maxEntries + 2 {
		entries = append(entries, evaluator.Entry{Group: "g", Text: fmt.Sprint(i), Source: evaluator.FromScheduler})
	}
	metrics.Entries.Show(entries)
	metrics.Entries.Count([]evaluator.Use{{Group: "g", Entry: "\xff"}, {Group: "g", Entry: fmt.Sprint(maxEntries)}})
	got := counted(t, registry)
	if len(got) != maxEntries+1 || got["not counted"] != 3 || got["Config \uFFFD"] != 1 {
		t.Errorf("%d series, %v not counted, %v", len(got), got["not counted"], got["Config \uFFFD"])
	}
}
