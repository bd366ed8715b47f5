package main

// quiet are the queries that may return nothing, by name, with the reason. That their metrics are registered, by name and with the
// labels and values that they ask for, is what TestU10_TheDashboardShowsWhatIsRegistered and TestA43_EveryMetricAndLabelIsRegistered
// of the module show.
func quiet() map[string]string {
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
