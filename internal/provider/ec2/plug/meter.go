package plug

import (
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/calls"
)

// meter has the metrics of calls to AWS, and of the age of its answers.
type meter struct {
	calls    *prometheus.CounterVec // service, action, result
	took     *prometheus.HistogramVec
	prices   *prometheus.GaugeVec // source
	stale    *prometheus.GaugeVec // nodeclass
	failures *prometheus.CounterVec
	queue    prometheus.Gauge
	userData *prometheus.GaugeVec // nodeclass
	named

	mu    sync.Mutex
	sizes map[string]sized // by name of the class
}

// sized is the largest user data of a class since its spec changed.
type sized struct {
	generation int64
	bytes      int
}

func newMeter(registerer prometheus.Registerer, log logr.Logger) *meter {
	m := &meter{
		named: newNamed(log),
		sizes: map[string]sized{},
		userData: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "karpenter_ec2nodeclasses_userdata_bytes",
			Help: "How many bytes of user data machines of a node class read, the most since its spec changed; " +
				"EC2 takes 16384."},
			[]string{"nodeclass"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "joiner_ec2_calls_total",
			Help: "Attempts to call AWS, by service, action and result: ok, or the class of the refusal."},
			[]string{"service", "action", "result"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "joiner_ec2_call_duration_seconds",
			Help: "How long AWS took to answer an attempt.", Buckets: []float64{.01, .03, .1, .3, 1, 3, 10, 30}},
			[]string{"service", "action"}),
		prices: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "joiner_ec2_prices_age_seconds",
			Help: "How old prices are, by source: on-demand or spot."}, []string{"source"}),
		stale: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "joiner_ec2_nodeclass_stale_seconds",
			Help: "Age of the oldest answer about a node class that AWS could not be asked for again; 0 when all are fresh."},
			[]string{"nodeclass"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "joiner_ec2_upkeep_failures_total",
			Help: "Failures of background work: refreshes, tags, collections, the queue, its messages."},
			[]string{"what"}),
		queue: prometheus.NewGauge(prometheus.GaugeOpts{Name: "joiner_ec2_queue_unavailable",
			Help: "1 while the interruption queue cannot be read, so that warnings are not heard; else 0."}),
	}
	if registerer != nil {
		registerer.MustRegister(m.calls, m.took, m.prices, m.stale, m.failures, m.queue, m.userData, &m.named)
	}
	return m
}

// observe counts an attempt.
func (m *meter) observe(a calls.Attempt) {
	result := string(a.Refused.Class)
	if result == "" {
		result = "ok"
	}
	m.calls.WithLabelValues(a.Service, a.Action, result).Inc()
	m.took.WithLabelValues(a.Service, a.Action).Observe(a.Took.Seconds())
}

// rendered updates the size of a class's user data. Pools and types add different amounts: the largest counts.
func (m *meter) rendered(class *awsv1.EC2NodeClass, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.sizes[class.Name]; known.generation == class.Generation {
		bytes = max(bytes, known.bytes)
	}
	m.sizes[class.Name] = sized{class.Generation, bytes}
	m.userData.WithLabelValues(class.Name).Set(float64(bytes))
}

// forget drops the metrics of a class that is gone.
func (m *meter) forget(class string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sizes, class)
	m.userData.DeleteLabelValues(class)
	m.stale.DeleteLabelValues(class)
}
