// Package metrics holds the metrics of the controllers: one struct for each thing that is counted, built with a
// registerer, no globals. Names and labels are Karpenter's where the meaning is the same, so that existing dashboards
// and alerts work (U-10). Labels come from closed sets: pools, zones, capacity types, reasons.
package metrics

import "github.com/prometheus/client_golang/prometheus"

// Set is all metrics of one process.
type Set struct {
	Claims        Claims
	Disruption    Disruption
	Interruptions Interruptions
	Nodes         Nodes
	Pods          Pods
	Plans         Plans
	Pools         Pools
	Cloud         Cloud
	Own           Own
}

// Claims counts what becomes of NodeClaims.
type Claims struct {
	Created    *prometheus.CounterVec // reason, nodepool, min_values_relaxed
	Terminated *prometheus.CounterVec // nodepool, capacity_type, zone
	Disrupted  *prometheus.CounterVec // reason, nodepool, capacity_type, consolidation_policy, termination_mode
	Unhealthy  *prometheus.CounterVec // condition, nodepool, capacity_type, image_id
}

// Disruption shows what bounds voluntary disruption.
type Disruption struct {
	// Paused is 1 while the pause switch is on, otherwise 0 (D-14).
	Paused prometheus.Gauge
}

// Nodes counts what becomes of nodes.
type Nodes struct {
	Created    *prometheus.CounterVec // nodepool, zone
	Terminated *prometheus.CounterVec // nodepool, zone
	Drained    *prometheus.CounterVec // nodepool
}

// Pods counts what is done to pods.
type Pods struct {
	Evictions *prometheus.CounterVec // code: the HTTP status of the answer
}

// Plans measures planning.
type Plans struct {
	Duration      *prometheus.HistogramVec // controller; seconds
	Unschedulable *prometheus.GaugeVec     // controller
	// Seconds and Pods measure rounds for pods that wait, and Last is when the last one was (U-10).
	Seconds, Pods prometheus.Histogram
	Last          prometheus.Gauge
	// Latest is what the last of them planned.
	Latest *Latest
}

// Pools shows limits and usage of pools.
type Pools struct {
	Limit *Amounts
	Usage *Amounts
	// Allowed is how many more nodes the budgets allow to disrupt, by pool and reason; nothing is shown where nothing limits
	// them (D-08).
	Allowed *Amounts
	// BlockedByLimit counts how often the hard node limit kept nodes from being replaced (L-34).
	BlockedByLimit *prometheus.CounterVec // reason, nodepool
	// InVain counts rounds of launches that did not help the pods they were for (P-35).
	InVain *prometheus.CounterVec // nodepool
}

// Interruptions counts what clouds say about the future of machines, and what was done about it.
type Interruptions struct {
	Received *prometheus.CounterVec // message_type
	Deleted  prometheus.Counter
}

// Cloud measures calls to the provider.
type Cloud struct {
	Duration *prometheus.HistogramVec // controller, method, provider; seconds
	Errors   *prometheus.CounterVec   // controller, method, provider, error
}

// prefix is Karpenter's, on purpose.
const prefix = "karpenter_"

// New returns the metrics, registered on r. It panics, as the library does, when r already has one of them: that is a
// mistake in the composition root, found by the first test that runs it.
func New(r prometheus.Registerer) *Set {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	value := func(name, help string) prometheus.Gauge {
		v := prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + name, Help: help})
		r.MustRegister(v)
		return v
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: durationBuckets()}, labels)
		r.MustRegister(v)
		return v
	}
	deleted := prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "interruption_deleted_messages_total", Help: "Notices of clouds about which all was done."})
	r.MustRegister(deleted)
	return &Set{
		Interruptions: Interruptions{
			Received: counter("interruption_received_messages_total", "Notices of clouds about machines of this cluster.", "message_type"),
			Deleted:  deleted,
		},
		Claims: Claims{
			Created:    counter("nodeclaims_created_total", "NodeClaims created, by reason and NodePool.", "reason", "nodepool", "min_values_relaxed"),
			Terminated: counter("nodeclaims_terminated_total", "NodeClaims whose instance is gone.", "nodepool", "capacity_type", "zone"),
			Disrupted: counter("nodeclaims_disrupted_total", "NodeClaims that were chosen to go, by reason.",
				"reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"),
			Unhealthy: counter("nodeclaims_unhealthy_disrupted_total", "NodeClaims that were removed since their node was unhealthy.",
				"condition", "nodepool", "capacity_type", "image_id"),
		},
		Disruption: Disruption{
			Paused: value("voluntary_disruption_paused", "1 while voluntary disruption is paused in the whole cluster, otherwise 0."),
		},
		Nodes: Nodes{
			Created:    counter("nodes_created_total", "Nodes that joined and were matched with their NodeClaim.", "nodepool", "zone"),
			Terminated: counter("nodes_terminated_total", "Nodes that were drained and whose instance is gone.", "nodepool", "zone"),
			Drained:    counter("nodes_drained_total", "Nodes that were drained.", "nodepool"),
		},
		Pods: Pods{
			Evictions: counter("pods_eviction_requests_total", "Calls of the eviction API, by HTTP status of the answer.", "code"),
		},
		Plans: newPlans(r, Plans{
			Duration:      histogram("scheduler_scheduling_duration_seconds", "Duration of one round of planning.", "controller"),
			Unschedulable: gauge("scheduler_unschedulable_pods_count", "Pods that the last round left unplaced.", "controller"),
		}),
		Own: newOwn(r),
		Pools: Pools{
			Limit:   newAmounts(gauge("nodepools_limit", "Limits of a NodePool, by resource.", "resource_type", "nodepool")),
			Usage:   newAmounts(gauge("nodepools_usage", "What the nodes of a NodePool have, by resource.", "resource_type", "nodepool")),
			Allowed: newAmounts(gauge("nodepools_allowed_disruptions", "Nodes of a NodePool that its budgets allow to be disrupted now, by reason.", "reason", "nodepool")),
			BlockedByLimit: counter("nodepools_disruptions_blocked_by_node_limit_total",
				"Times that the hard node limit of a NodePool kept nodes from being replaced.", "reason", "nodepool"),
			InVain: counter("nodepools_launches_in_vain_total",
				"Rounds of launches after which none of the pods was bound that they were for.", "nodepool"),
		},
		Cloud: Cloud{
			Duration: histogram("cloudprovider_duration_seconds", "Duration of calls to the provider.", "controller", "method", "provider"),
			Errors:   counter("cloudprovider_errors_total", "Calls to the provider that failed.", "controller", "method", "provider", "error"),
		},
	}
}

// durationBuckets spans a cached answer (1 ms) to a stuck one (1 min).
func durationBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
}
