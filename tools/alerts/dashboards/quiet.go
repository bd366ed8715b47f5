package main

// quiet are the queries that may return nothing, by name, with the reason. That their metrics are registered, by name and with the
// labels and values that they ask for, is what TestU10_TheDashboardShowsWhatIsRegistered and TestA43_EveryMetricAndLabelIsRegistered
// of the module show.
func quiet() map[string]string {
	return map[string]string{
		"variable/cluster": "the label is added by whoever watches several clusters with one Prometheus; without it there is no choice",
	}
}
