package main

import "github.com/spf13/pflag"

// addObservability adds the flags of metrics and events.
func (o *options) addObservability(flags *pflag.FlagSet) {
	flags.BoolVar(&o.DisableClusterStateObservability, "disable-cluster-state-observability",
		o.DisableClusterStateObservability,
		"leave out the metrics of nodes, pods, limits and conditions, and the events of conditions")
	flags.StringVar(&o.MetricsDetail, "metrics-detail", o.MetricsDetail,
		"what is served of nodes and pods: Karpenter, a series for each as Karpenter has it, or Bounded, sums by NodePool")
	flags.IntVar(&o.MetricsMaxSeries, "metrics-max-series", o.MetricsMaxSeries,
		"the most series of nodes, pods and conditions; above it the largest metric is left out; 0 for any number")
	flags.BoolVar(&o.DeprecatedMetrics, "deprecated-metrics", o.DeprecatedMetrics,
		"serve the metrics of conditions by their old names too, operator_status_condition_count and so on")
	flags.BoolVar(&o.ConditionEvents, "condition-events", o.ConditionEvents,
		"tell of each change of a condition of NodeClaims, NodePools and their nodes by an event")
	flags.IntVar(&o.EventsQPS, "events-qps", o.EventsQPS,
		"events per second, of all reasons, ten times as many at once, a quarter of these warnings only; 0 for any number")
}
