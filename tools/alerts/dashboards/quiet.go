package main

import "maps"

// quiet returns the reasons of queries that must return nothing, by name. TestU10_TheDashboardShowsWhatIsRegistered
// and TestA43_EveryMetricAndLabelIsRegistered of the module show that their metrics are registered, with the labels
// and values that they ask for.
func quiet() map[string]string {
	all := ofKarpenterAlone()
	maps.Copy(all, ofScene())
	return all
}

// ofKarpenterAlone returns queries of Karpenter's dashboards that return nothing for Joiner, and why.
func ofKarpenterAlone() map[string]string {
	const quantile = "there is no such quantile, in Karpenter neither: the mixin asks for 0.95, Karpenter has 0.9"
	const written = "Prometheus 3 writes this quantile as 0.0 and 1.0, of Karpenter too"
	const prefixed = "Karpenter 1.15 has the work queue's metrics without that prefix, and so has Joiner"
	const queue = "only a provider for a cloud with a queue of interruptions has it"
	const prices = "Karpenter's provider for AWS has the prices of offerings (P-52)"
	all := map[string]string{
		"mixin activity/queue failures":            "no replacement of a node fails in the scene; Karpenter has no series until one does",
		"mixin activity/pod startup 0.95":          quantile,
		"mixin performance/node termination 0.95":  quantile,
		"mixin performance/interruptions received": queue,
		"mixin performance/work queue depth":       prefixed,
		"mixin costs/hourly by pool":               prices,
		"mixin costs/price of types":               prices,
	}
	for _, p := range []string{"p50", "p95", "p99"} {
		all["mixin performance/interruption duration "+p] = queue
		all["mixin performance/work queue waiting "+p] = prefixed
		all["mixin performance/work queue working "+p] = prefixed
	}
	for _, q := range []string{"0", "1"} {
		all["aws performance/node termination "+q] = written
		all["aws performance/pod startup "+q] = written
	}
	return all
}

// ofScene returns queries about things that the scene does not cause.
func ofScene() map[string]string {
	const operator = "what the provider's side does wrong leaves such objects, and nothing in the scene does; " +
		"localcluster/e2e/autonode has them"
	const flood = "only a cluster with very many nodes or events has it"
	return map[string]string{
		"alert AutoNodeNotConforming/warning":  operator,
		"Controller/Metrics that are left out": flood,
		"Controller/Events that were not sent": flood,
		"variable/cluster": "the label is added by whoever watches several clusters with one Prometheus; " +
			"without it there is no choice",
	}
}
