package door_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/nodescheduling/door"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// N66: alerts ask for these names and labels; docs/control-plane-protection.md lists them.
func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := door.NewMetrics(registry)
	m.Count([]evaluator.Sample{{Group: "ControlPlane", Mode: "Enable", Decision: "deny", Resource: "pods",
		Reason: "NodeName", DryRun: true}})
	m.Show([]evaluator.Effective{{Group: "ControlPlane", Mode: "Inform"}}, 1, time.UnixMilli(1500))
	m.Show([]evaluator.Effective{{Group: "ControlPlane", Mode: "Enable"}}, 2, time.UnixMilli(2500))
	m.ShowNodes("ControlPlane", 2, 1)
	m.ShowLive(evaluator.FromGroups)
	m.ShowPins([]evaluator.Effective{{Group: "ControlPlane"}, {Group: "Edge"}},
		[]evaluator.Pin{{Entry: evaluator.Entry{Group: "Edge"}, State: evaluator.Pinned}})
	m.Entries.Show([]evaluator.Entry{{Group: "ControlPlane", Text: "backup/agent", Source: evaluator.FromScheduler}})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, family := range families {
		if !strings.HasSuffix(family.GetHelp(), ".") {
			t.Errorf("%s says %q about itself", family.GetName(), family.GetHelp())
		}
		for _, metric := range family.GetMetric() {
			labels := []string{}
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			fmt.Fprintf(&got, "%s{%s} %v\n", family.GetName(), strings.Join(labels, ","),
				metric.GetCounter().GetValue()+metric.GetGauge().GetValue())
		}
	}
	const want = `node_scheduling_policy_decisions_total{decision=deny,dry_run=true,group=ControlPlane,mode=Enable,reason=NodeName,resource=pods} 1
node_scheduling_policy_entries{group=ControlPlane,state=dangling} 0
node_scheduling_policy_entries{group=ControlPlane,state=pinned} 0
node_scheduling_policy_entries{group=ControlPlane,state=replaced} 0
node_scheduling_policy_entries{group=ControlPlane,state=reserved} 0
node_scheduling_policy_entries{group=ControlPlane,state=unpinned} 0
node_scheduling_policy_entries{group=Edge,state=dangling} 0
node_scheduling_policy_entries{group=Edge,state=pinned} 1
node_scheduling_policy_entries{group=Edge,state=replaced} 0
node_scheduling_policy_entries{group=Edge,state=reserved} 0
node_scheduling_policy_entries{group=Edge,state=unpinned} 0
node_scheduling_policy_entries_not_counted{} 0
node_scheduling_policy_entry_uses_total{entry=backup/agent,group=ControlPlane,source=Scheduler} 0
node_scheduling_policy_events_dropped_total{} 0
node_scheduling_policy_group_mode{group=ControlPlane,mode=Disable} 0
node_scheduling_policy_group_mode{group=ControlPlane,mode=Enable} 1
node_scheduling_policy_group_mode{group=ControlPlane,mode=Inform} 0
node_scheduling_policy_live_source{source=NodeSchedulingGroup} 1
node_scheduling_policy_live_source{source=None} 0
node_scheduling_policy_live_source{source=Scheduler} 0
node_scheduling_policy_nodes{group=ControlPlane,tainted=false} 1
node_scheduling_policy_nodes{group=ControlPlane,tainted=true} 2
node_scheduling_policy_scheduler_ignored_fields{} 2
node_scheduling_policy_scheduler_read_timestamp_seconds{} 2.5
`
	if got.String() != want {
		t.Errorf("metrics\n%swant\n%s", got.String(), want)
	}
}

// N68: durations of what the evaluator looks at, and of nothing else.
func TestDurations(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	d := door.NewDurations(registry)
	for _, resource := range []string{"pods", "configmaps"} {
		d.Observe(evaluator.Request{Resource: resource, Operation: evaluator.Create}, time.Millisecond)
	}
	d.Observe(evaluator.Request{Resource: "pods", Subresource: "binding", Operation: evaluator.Create}, time.Second)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families) != 1 || families[0].GetName() != "node_scheduling_policy_verdict_duration_seconds" ||
		len(families[0].GetMetric()) != 2 || !strings.HasSuffix(families[0].GetHelp(), ".") {
		t.Fatalf("metrics %v", families)
	}
	var bounds []float64
	for _, bucket := range families[0].GetMetric()[0].GetHistogram().GetBucket() {
		bounds = append(bounds, bucket.GetUpperBound())
	}
	if want := []float64{10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 25e-3, 0.1, 1,
		10}; !slices.Equal(bounds, want) {
		t.Errorf("bounds %v, want %v", bounds, want)
	}
	if got := families[0].GetMetric()[1].GetLabel()[0].GetValue(); got != "pods/binding" {
		t.Errorf("a binding is counted as %s", got)
	}
	if metric := families[0].GetMetric()[0]; metric.GetLabel()[0].GetValue() != "pods" ||
		metric.GetHistogram().GetSampleSum() != 0.001 {
		t.Errorf("metric %v", metric)
	}
}
