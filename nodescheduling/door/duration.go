package door

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// Durations measures how long verdicts take, from the request to the answer, without the way to the door (N68, B-14).
// The API server's own histograms begin at 5 ms.
type Durations struct {
	seconds *prometheus.HistogramVec
}

// NewDurations registers the metric of durations.
func NewDurations(registry Registry) Durations {
	d := Durations{seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "node_scheduling_policy_verdict_duration_seconds",
		Help:    "How long verdicts took, by resource, with the wait for nodes and for the API server.",
		Buckets: []float64{10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 25e-3, 0.1, 1, 10},
	}, []string{"resource"})}
	registry.MustRegister(d.seconds)
	return d
}

// Observe counts one verdict. It ignores requests for resources that the evaluator does not judge: anybody may send
// those to a webhook, and each resource would be a time series.
func (d Durations) Observe(request evaluator.Request, took time.Duration) {
	if evaluator.NewObject(request.Group, request.Resource, request.Subresource) == nil {
		return
	}
	resource := request.Resource
	if request.Subresource != "" {
		resource += "/" + request.Subresource
	}
	d.seconds.WithLabelValues(resource).Observe(took.Seconds())
}
