package door

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// Metrics are the metrics of a door of the node scheduling policy (N66). Every label is from a closed set or a name in
// the configuration.
type Metrics struct {
	Decisions *prometheus.CounterVec // group, mode, decision, resource, reason, dry_run
	Policy    *prometheus.GaugeVec   // group, mode: 1 for the mode in force, 0 for the others
	Ignored   prometheus.Gauge
	Read      prometheus.Gauge // Unix time, seconds
	EventsCut prometheus.Counter
	Entries   *Entries
	Pins      *prometheus.GaugeVec // group, state
	Nodes     *prometheus.GaugeVec // group, tainted
	Live      *prometheus.GaugeVec // source: 1 for the live one, 0 for the others
}

// Registry is the part of a metrics registry that kube-apiserver's and Prometheus' own have in common.
type Registry interface {
	MustRegister(...prometheus.Collector)
}

// NewMetrics registers the metrics. It panics if the registry already has metrics of these names.
func NewMetrics(registry Registry) Metrics {
	const namespace = "node_scheduling_policy"
	m := Metrics{
		Decisions: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "decisions_total",
			Help: "Requests that concern a protected group of nodes, by what came of them. Requests that concern none are not counted."},
			[]string{"group", "mode", "decision", "resource", "reason", "dry_run"}),
		Policy: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "group_mode",
			Help: "1 for the mode in which a group of nodes is protected, 0 for the others."}, []string{"group",
			"mode"}),
		Ignored: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "scheduler_ignored_fields",
			Help: "Parts of the live source that have no effect because they are wrong. The log says which."}),
		Read: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "scheduler_read_timestamp_seconds",
			Help: "When the live source was last read, as Unix time."}),
		EventsCut: prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "events_dropped_total",
			Help: "Events that were not written because there were too many."}),
		Entries: newEntries(registry, namespace),
		Pins: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "entries",
			Help: "Entries of authorizedUsers that name a namespace, by whether it is the one that they mean."},
			[]string{"group", "state"}),
	}
	m.Nodes = prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "nodes",
		Help: "Nodes of a protected group, by whether they have a taint for good. On those without one pods are " +
			"refused only when they are bound."},
		[]string{"group", "tainted"})
	m.Live = prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "live_source",
		Help: "1 for the source that is read while the cluster runs, beside the configuration, 0 for the others."},
		[]string{"source"})
	registry.MustRegister(m.Live, m.Nodes, m.Pins, m.Decisions, m.Policy, m.Ignored, m.Read, m.EventsCut)
	return m
}

// Count counts the findings of a request.
func (m Metrics) Count(samples []evaluator.Sample) {
	for _, s := range samples {
		m.Decisions.WithLabelValues(s.Group, s.Mode, s.Decision, s.Resource, s.Reason,
			strconv.FormatBool(s.DryRun)).Inc()
	}
}

// ShowNodes sets how many nodes of a group have a taint, and how many do not.
func (m Metrics) ShowNodes(group string, tainted, bare int) {
	m.Nodes.WithLabelValues(group, "true").Set(float64(tainted))
	m.Nodes.WithLabelValues(group, "false").Set(float64(bare))
}

// ShowLive sets which source is the live one, "" while that is unknown.
func (m Metrics) ShowLive(live evaluator.Source) {
	for _, source := range evaluator.Lives() {
		value := 0.0
		if source == live {
			value = 1
		}
		m.Live.WithLabelValues(string(source)).Set(value)
	}
}

// ShowPins sets how many entries of each group are in each state. A dangling entry for a namespace of the platform
// counts as reserved: it needs no attention, and must not cause an alert about dangling entries.
func (m Metrics) ShowPins(groups []evaluator.Effective, pins []evaluator.Pin) {
	for _, group := range groups {
		for _, state := range evaluator.PinStates() {
			count := 0
			for _, pin := range pins {
				if pin.Group == group.Group && shownState(pin) == state {
					count++
				}
			}
			m.Pins.WithLabelValues(group.Group, string(state)).Set(float64(count))
		}
	}
}

func shownState(pin evaluator.Pin) evaluator.PinState {
	if pin.State == evaluator.Dangling && pin.Fine() {
		return evaluator.Reserved
	}
	return pin.State
}

// Show sets the mode of each group, how many parts of the live source were ignored, and when it was read.
func (m Metrics) Show(groups []evaluator.Effective, ignored int, read time.Time) {
	for _, group := range groups {
		for _, mode := range []configv1.GroupMode{configv1.Enable, configv1.Inform, configv1.Disable} {
			value := 0.0
			if mode == group.Mode {
				value = 1
			}
			m.Policy.WithLabelValues(group.Group, string(mode)).Set(value)
		}
	}
	m.Ignored.Set(float64(ignored))
	m.Read.Set(float64(read.UnixMilli()) / 1000)
}
