package metrics_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
)

// U-10: dashboards made for Karpenter ask for these names and labels.
func TestNamesAndLabelsAreThoseThatDashboardsKnow(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	set := metrics.New(registry)
	want := map[prometheus.Collector]string{
		set.Claims.Created:         `"karpenter_nodeclaims_created_total" {reason,nodepool,min_values_relaxed}`,
		set.Claims.Terminated:      `"karpenter_nodeclaims_terminated_total" {nodepool,capacity_type,zone}`,
		set.Claims.Disrupted:       `"karpenter_nodeclaims_disrupted_total" {reason,nodepool,capacity_type,consolidation_policy,termination_mode}`,
		set.Claims.Unhealthy:       `"karpenter_nodeclaims_unhealthy_disrupted_total" {condition,nodepool,capacity_type,image_id}`,
		set.Interruptions.Received: `"karpenter_interruption_received_messages_total" {message_type}`,
		set.Interruptions.Deleted:  `"karpenter_interruption_deleted_messages_total" {}`,
		set.Nodes.Created:          `"karpenter_nodes_created_total" {nodepool,zone}`,
		set.Nodes.Terminated:       `"karpenter_nodes_terminated_total" {nodepool,zone}`,
		set.Pods.Evictions:         `"karpenter_pods_eviction_requests_total" {code}`,
		set.Plans.Duration:         `"karpenter_scheduler_scheduling_duration_seconds" {controller}`,
		set.Pools.Allowed:          `"karpenter_nodepools_allowed_disruptions" {nodepool,reason}`,
		set.Pools.Limit:            `"karpenter_nodepools_limit" {resource_type,nodepool}`,
		set.Pools.Usage:            `"karpenter_nodepools_usage" {resource_type,nodepool}`,
		set.Cloud.Duration:         `"karpenter_cloudprovider_duration_seconds" {controller,method,provider}`,
		set.Cloud.Errors:           `"karpenter_cloudprovider_errors_total" {controller,method,provider,error}`,
		set.Disruption.Paused:      `"karpenter_voluntary_disruption_paused" {}`,
		set.Nodes.Drained:          `"karpenter_nodes_drained_total" {nodepool}`,
		set.Plans.Unschedulable:    `"karpenter_scheduler_unschedulable_pods_count" {controller}`,
		set.Pools.BlockedByLimit:   `"karpenter_nodepools_disruptions_blocked_by_node_limit_total" {reason,nodepool}`,
	}
	for collector, text := range want {
		name, labels, _ := strings.Cut(text, " ")
		described := make(chan *prometheus.Desc, 1)
		collector.Describe(described)
		got := (<-described).String()
		if !strings.Contains(got, name) {
			t.Errorf("described as %s, want the name %s", got, name)
		}
		for _, label := range slices.Collect(strings.SplitSeq(strings.Trim(labels, "{}"), ",")) {
			if !strings.Contains(got, label) {
				t.Errorf("described as %s, want the label %s", got, label)
			}
		}
		if strings.Contains(got, `help: ""`) {
			t.Errorf("described as %s, want a text of help", got)
		}
		if err := registry.Register(collector); !errors.As(err, new(prometheus.AlreadyRegisteredError)) {
			t.Errorf("%s: %v, want it to be registered already: nobody would see it", name, err)
		}
	}
}

// show is what a scrape sees of a collector: the value of each series by its labels.
func show(t *testing.T, collector prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			var labels []string
			for _, label := range metric.Label {
				labels = append(labels, label.GetValue())
			}
			seen[strings.Join(labels, " ")] = metric.GetGauge().GetValue()
		}
	}
	return seen
}

// U-10: what is shown is what a pool has now, also of a resource that comes back.
func TestAmountsFollowWhatAPoolHas(t *testing.T) {
	t.Parallel()
	usage := metrics.New(prometheus.NewRegistry()).Pools.Usage
	for _, c := range []struct {
		amounts map[string]float64
		want    map[string]float64
	}{
		{map[string]float64{"cpu": 1, "memory": 2}, map[string]float64{"a cpu": 1, "a memory": 2}},
		{map[string]float64{"memory": 3}, map[string]float64{"a memory": 3}},
		{map[string]float64{"cpu": 4, "memory": 3}, map[string]float64{"a cpu": 4, "a memory": 3}},
		{nil, map[string]float64{}},
		{map[string]float64{"cpu": 5}, map[string]float64{"a cpu": 5}},
	} {
		usage.Show("a", c.amounts)
		if got := show(t, usage); !maps.Equal(got, c.want) {
			t.Errorf("after %v a scrape sees %v, want %v", c.amounts, got, c.want)
		}
	}
}

// A cached answer and a stuck one have to differ: the buckets span 1 ms to 1 min, and have Prometheus' usual bounds between.
func TestDurationsAreToldApartFromAMillisecondToAMinute(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	set := metrics.New(registry)
	set.Plans.Duration.WithLabelValues("provisioner").Observe(1)
	families, err := registry.Gather()
	if err != nil || len(families) == 0 {
		t.Fatalf("%d families (%v)", len(families), err)
	}
	for _, family := range families {
		if family.GetName() != "karpenter_scheduler_scheduling_duration_seconds" {
			continue
		}
		buckets := family.Metric[0].GetHistogram().Bucket
		if first, last := buckets[0].GetUpperBound(), buckets[len(buckets)-1].GetUpperBound(); first != .001 || last != 60 {
			t.Errorf("the buckets span %v to %v, want 0.001 to 60", first, last)
		}
		bounds := map[float64]bool{}
		for _, bucket := range buckets {
			bounds[bucket.GetUpperBound()] = true
		}
		for _, usual := range append([]float64{30}, prometheus.DefBuckets...) {
			if !bounds[usual] {
				t.Errorf("no bucket ends at %v s", usual)
			}
		}
		return
	}
	t.Error("the duration of planning is not to be seen")
}

// U-10: a limit that was taken away, and a pool that is gone, leave no series.
func TestAmountsThatAreGoneAreNotShown(t *testing.T) {
	t.Parallel()
	limit := metrics.New(prometheus.NewRegistry()).Pools.Limit
	series := func() int {
		all := make(chan prometheus.Metric, 10)
		limit.Collect(all)
		return len(all)
	}
	limit.Show("a", map[string]float64{"cpu": 1, "memory": 2})
	limit.Show("b", map[string]float64{"cpu": 3})
	limit.Show("a", map[string]float64{"cpu": 4})
	if n := series(); n != 2 {
		t.Errorf("%d series, want 2: the cpu of a and of b", n)
	}
	limit.Show("a", nil)
	if n := series(); n != 1 {
		t.Errorf("%d series after pool a is gone, want 1", n)
	}
}
