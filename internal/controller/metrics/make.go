package metrics

import "github.com/prometheus/client_golang/prometheus"

// prefix is deliberately Karpenter's.
const prefix = "karpenter_"

// maker creates metrics with Karpenter's prefix and registers them.
type maker struct{ prometheus.Registerer }

func (m maker) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	m.MustRegister(v)
	return v
}

func (m maker) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
	m.MustRegister(v)
	return v
}

func (m maker) counted(name, help, label string) *Counted {
	v := &Counted{desc: prometheus.NewDesc(prefix+name, help, []string{label}, nil)}
	m.MustRegister(v)
	return v
}

func (m maker) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets},
		labels)
	m.MustRegister(v)
	return v
}

// summary has Karpenter's quantiles.
func (m maker) summary(name, help string, labels ...string) *prometheus.SummaryVec {
	v := prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: prefix + name, Help: help,
		Objectives: map[float64]float64{0: .01, .5: .01, .9: .01, .99: .01, 1: .01}}, labels)
	m.MustRegister(v)
	return v
}

// own returns a counter of Joiner's own that had another name under Karpenter's prefix in the last release (K-09).
func (m maker) own(name, old, help string, labels ...string) Renamed {
	r := Renamed{
		now: prometheus.NewCounterVec(prometheus.CounterOpts{Name: ownPrefix + name, Help: help}, labels),
		old: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + old, Help: "The old name of " + ownPrefix +
			name + "."}, labels),
	}
	m.MustRegister(r.now, r.old)
	return r
}

// New returns the metrics, registered on r. It panics, as the library does, if r already has one of them. That is a
// mistake in the composition root, and the first test that runs it finds it.
func New(r prometheus.Registerer) *Set {
	m := maker{r}
	set := &Set{
		Claims: m.claims(), Disruption: m.disruption(), Nodes: m.nodes(), Pods: m.pods(), Plans: m.plans(),
		Pools: m.pools(), Own: newOwn(r),
		Interruptions: Interruptions{
			Received: m.counter("interruption_received_messages_total",
				"Notices of clouds about machines of this cluster.", "message_type"),
			Deleted: prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "interruption_deleted_messages_total",
				Help: "Notices of clouds that were handled to the end."}),
		},
		Cloud: Cloud{
			Duration: m.histogram("cloudprovider_duration_seconds", "Duration of calls to the provider.",
				prometheus.DefBuckets, "controller", "method", "provider"),
			Errors: m.counter("cloudprovider_errors_total", "Calls to the provider that failed.",
				"controller", "method", "provider", "error", "nodepool"),
		},
	}
	r.MustRegister(set.Interruptions.Deleted)
	set.Plans.Times, set.Plans.Bound = set.Pods.Times, set.Own.Bound
	return set
}

func (m maker) claims() Claims {
	disrupted := []string{"reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"}
	return Claims{
		Created: m.counter("nodeclaims_created_total", "NodeClaims created, by reason and NodePool.", "reason",
			"nodepool", "min_values_relaxed"),
		Terminated: m.counter("nodeclaims_terminated_total", "NodeClaims whose instance is gone.", "nodepool",
			"capacity_type", "zone"),
		Disrupted: m.counter("nodeclaims_disrupted_total", "NodeClaims that were chosen to go, by reason.",
			disrupted...),
		Unhealthy: m.counter("nodeclaims_unhealthy_disrupted_total",
			"NodeClaims that were removed since their node was unhealthy.",
			"condition", "nodepool", "capacity_type", "image_id", "termination_mode"),
		Pods: m.counter("pods_disruption_initiated_total",
			"Pods that have to move with NodeClaims that were chosen to go.", disrupted...),
		Termination: m.histogram("nodeclaims_termination_duration_seconds",
			"From a NodeClaim's deletion to the end of its finalizer.",
			prometheus.ExponentialBuckets(1, 2, 12), "nodepool"),
		InstanceTermination: m.histogram("nodeclaims_instance_termination_duration_seconds",
			"From the first call that ends a machine to the proof that it is gone.",
			prometheus.ExponentialBuckets(1, 2,
				11), "nodepool"),
	}
}

func (m maker) disruption() Disruption {
	const paused = "1 while voluntary disruption is paused in the whole cluster, otherwise 0."
	d := Disruption{
		Paused: prometheus.NewGauge(prometheus.GaugeOpts{Name: ownPrefix + "voluntary_disruption_paused",
			Help: paused}),
		OldPaused: prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + "voluntary_disruption_paused",
			Help: "The old name of joiner_voluntary_disruption_paused."}),
		Decisions: m.counter("voluntary_disruption_decisions_total",
			"Commands that remove or replace nodes, when they begin.", "decision", "reason", "consolidation_type"),
		PoolDecisions: m.counter("voluntary_disruption_decisions_by_nodepool_total",
			"The same, once for each NodePool that loses a node.",
			"nodepool", "decision", "reason", "consolidation_type"),
		Moves: m.counter("consolidation_moves_total",
			"Moves that make the cluster cheaper, once for each NodePool that loses a node.", "decision", "nodepool",
			"policy"),
		TerminateFirst: m.counter("voluntary_disruption_terminate_first_decisions_total",
			"Commands that remove a node before there is another one.",
			"nodepool", "reason", "terminate_first_reason"),
		Evaluation: m.histogram("voluntary_disruption_decision_evaluation_duration_seconds",
			"Duration of one search for nodes that may go.", durationBuckets(), "reason", "consolidation_type"),
		Eligible: m.counted("voluntary_disruption_eligible_nodes", "Nodes that a search can choose from now.",
			"reason"),
		FailedValidations: m.counter("voluntary_disruption_failed_validations_total",
			"Commands that did not hold when they were judged again.", "consolidation_type"),
		Failures: m.counter("voluntary_disruption_queue_failures_total", "Commands of which a replacement failed.",
			"decision", "reason", "consolidation_type"),
	}
	m.MustRegister(d.Paused, d.OldPaused)
	timeouts := m.counter("voluntary_disruption_consolidation_timeouts_total",
		"0: Joiner's searches are bounded by work, not by time.", "consolidation_type")
	for _, kind := range []string{Multi, Single} {
		timeouts.WithLabelValues(kind)
	}
	return d
}

func (m maker) nodes() Nodes {
	const result = "result"
	return Nodes{
		Reboots: m.counter("nodes_reboots_total", "Reboots of nodes that have ended, by how.", result),
		Reboot: m.histogram("nodes_reboot_duration_seconds", "From the decision to reboot a node to the end of that.",
			rebootBuckets(), result),
		Recovery: m.histogram("nodes_reboot_recovery_duration_seconds",
			"From when the provider took a reboot on until the node was ready again.",
			// a vector although it has no labels: as in Karpenter, it has no series before the first reboot
			rebootBuckets()),
		Created: m.counter("nodes_created_total", "Nodes that joined and were matched with their NodeClaim.",
			"nodepool", "zone"),
		Terminated: m.counter("nodes_terminated_total", "Nodes that were drained and whose instance is gone.",
			"nodepool", "zone"),
		Drained: m.counter("nodes_drained_total", "Nodes that were drained.", "nodepool"),
		Termination: m.summary("nodes_termination_duration_seconds",
			"From a node's deletion to the end of its finalizer.", "nodepool"),
		Lifetime: m.histogram("nodes_lifetime_duration_seconds", "From a node's creation to its end.",
			lifetimeBuckets(), "nodepool"),
	}
}

func (m maker) pods() Pods {
	const dynamic = "dynamic_resources"
	p := Pods{
		Evictions: m.counter("pods_eviction_requests_total",
			"Calls of the eviction API, by HTTP status of the answer.", "code"),
		Drained: m.counter("pods_drained_total",
			"Pods that left a node that was drained, by the reason of the removal.", "reason"),
		Startup: m.summary("pods_startup_duration_seconds", "From a pod's creation to its being ready."),
		Bound: m.histogram("pods_bound_duration_seconds", "From a pod's creation to its being bound.",
			durationBuckets(), dynamic),
		ProvisioningBound: m.histogram("pods_provisioning_bound_duration_seconds",
			"From the first plan with a place for a pod to its being bound.", durationBuckets(), dynamic),
		ProvisioningStartup: m.histogram("pods_provisioning_startup_duration_seconds",
			"From the first plan with a place for a pod to its being ready.", durationBuckets()),
		Decisions: m.histogram("pods_scheduling_decision_duration_seconds",
			"From when a pod was seen to the first plan that had it.", durationBuckets()),
	}
	p.Times = newPodTimes(p)
	return p
}

func (m maker) plans() Plans {
	return newPlans(m, Plans{
		Duration: m.histogram("scheduler_scheduling_duration_seconds", "Duration of one round of planning.",
			durationBuckets(), "controller"),
		Unschedulable: m.gauge("scheduler_unschedulable_pods_count", "Pods that the last round left unplaced.",
			"controller"),
		Ignored: m.gauge("scheduler_ignored_pods_count",
			"Pods that are left out of planning, since something of theirs is missing or invalid."),
		Zones: m.gauge("scheduler_pending_pods_by_effective_zone_count",
			"Pods of the last round by the zone they are bound to: its name, "+
				"flexible for several, none where nothing is left.", "controller", "zone"),
		Running: &Running{},
	})
}

func (m maker) pools() Pools {
	amounts := func(name, help, by string) *Amounts { return newAmounts(m.gauge(name, help, by, "nodepool")) }
	remaining := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: ownPrefix + "nodepools_remaining_disruptions",
		Help: "Nodes of a NodePool that its budgets still allow to be disrupted, by reason; " +
			"nothing where nothing limits it."},
		[]string{"reason", "nodepool"})
	m.MustRegister(remaining)
	return Pools{
		Limit: amounts("nodepools_limit", "Limits of a NodePool, by resource.", "resource_type"),
		Usage: amounts("nodepools_usage", "What the nodes of a NodePool have, by resource.", "resource_type"),
		Allowed: amounts("nodepools_allowed_disruptions",
			"Nodes of a NodePool that its budgets allow to be disrupted in all, by reason.", "reason"),
		Consuming: amounts("nodepools_nodes_consuming_budgets",
			"Nodes of a NodePool that use up its budgets, by reason.", "reason"),
		Remaining: newAmounts(remaining),
		BlockedByLimit: m.own("nodepools_disruptions_blocked_by_node_limit_total",
			"nodepools_disruptions_blocked_by_node_limit_total",
			"Times that the hard node limit of a NodePool kept nodes from being replaced.", "reason", "nodepool"),
		InVain: m.own("nodepools_launches_in_vain_total", "nodepools_launches_in_vain_total",
			"Rounds of launches after which none of the pods was bound that they were for.", "nodepool"),
		CostErrors: m.counter("nodepools_cost_tracker_errors_total", "Nodes whose machine has no known price.",
			"nodepool"),
	}
}

// NewBuild returns the gauge that identifies the program, registered on r. Its series is 1.
func NewBuild(r prometheus.Registerer) *prometheus.GaugeVec {
	return maker{r}.gauge("build_info", "1 for the program that is running.", "version", "goversion", "goarch",
		"commit")
}
