package door_test

import (
	"fmt"
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
	m.Count([]evaluator.Sample{{Group: "ControlPlane", Mode: "Enable", Decision: "deny", Resource: "pods", Reason: "NodeName", DryRun: true}})
	m.Show([]evaluator.Effective{{Group: "ControlPlane", Mode: "Inform"}}, 1, time.UnixMilli(1500))
	m.Show([]evaluator.Effective{{Group: "ControlPlane", Mode: "Enable"}}, 2, time.UnixMilli(2500))
	m.ShowNodes("ControlPlane", 2, 1)
	m.ShowLive(evaluator.FromGroups)
	m.Entries.Show([]evaluator.Entry{{Group: "ControlPlane", Text: "backup/agent", Source: evaluator.FromScheduler}})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := []string{}
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			fmt.Fprintf(&got, "%s{%s} %v\n", family.GetName(), strings.Join(labels, ","), metric.GetCounter().GetValue()+metric.GetGauge().GetValue())
		}
	}
	const want = `node_scheduling_policy_decisions_total{decision=deny,dry_run=true,group=ControlPlane,mode=Enable,reason=NodeName,resource=pods} 1
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
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families) != 1 || families[0].GetName() != "node_scheduling_policy_verdict_duration_seconds" || len(families[0].GetMetric()) != 1 {
		t.Fatalf("metrics %v", families)
	}
	if metric := families[0].GetMetric()[0]; metric.GetLabel()[0].GetValue() != "pods" || metric.GetHistogram().GetSampleSum() != 0.001 {
		t.Errorf("metric %v", metric)
	}
}
