package main

import "github.com/spf13/pflag"

// addObservability adds the flags of metrics and events.
func (o *options) addObservability(flags *pflag.FlagSet) {
	flags.BoolVar(&o.DisableClusterStateObservability, "disable-cluster-state-observability",
		o.DisableClusterStateObservability,
		"leave out the metrics of nodes, pods, limits and conditions, and the events of conditions")
	flags.StringVar(&o.MetricsDetail, "metrics-detail", o.MetricsDetail,
		"metrics of nodes and pods: Karpenter (a series for each, as in Karpenter) or Bounded (sums by NodePool)")
	flags.IntVar(&o.MetricsMaxSeries, "metrics-max-series", o.MetricsMaxSeries,
		"maximum number of series of nodes, pods and conditions; above it the largest metric is left out; 0 is no "+
			"limit")
	flags.BoolVar(&o.DeprecatedMetrics, "deprecated-metrics", o.DeprecatedMetrics,
		"also serve the metrics of conditions by their old names, operator_status_condition_count and so on")
	flags.BoolVar(&o.ConditionEvents, "condition-events", o.ConditionEvents,
		"write an event for each change of a condition of NodeClaims, NodePools and their nodes")
	flags.IntVar(&o.EventsQPS, "events-qps", o.EventsQPS,
		"events per second, for all reasons together; bursts are ten times as many, a quarter of that for warnings "+
			"only; 0 is no limit")
}
