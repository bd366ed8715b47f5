package metrics_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
)

// U-10: dashboards made for Karpenter ask for these names and labels.
func TestNamesAndLabelsAreThoseThatDashboardsKnow(t *testing.T) {
	t.Parallel()
	set := metrics.New(prometheus.NewRegistry())
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
	}
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
