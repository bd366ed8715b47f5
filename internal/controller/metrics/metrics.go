// Package metrics holds the metrics of the controllers: one struct for each subject, built with a registerer, no
// globals. Names, types, labels and buckets are Karpenter's where the meaning is the same (K-08), so that existing
// dashboards and alerts work. testdata/karpenter.txt lists those; the test lists which are not served yet. Labels come
// from closed sets: pools, zones, capacity types, reasons. Metrics that Karpenter does not have begin with joiner_.
//
//	metrics.go   Karpenter's metrics, by subject; make.go creates them, buckets.go has the buckets
//	labels.go    the values of labels (K-09)
//	podtimes.go  how long pods take
//	own.go, standing.go  metrics that Karpenter does not have
//
// Gauges of the state of nodes and pods are in package state: they are computed for each scrape.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// Set has all metrics of one process.
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

// Claims counts events in the life of NodeClaims.
type Claims struct {
	Created    *prometheus.CounterVec // reason, nodepool, min_values_relaxed
	Terminated *prometheus.CounterVec // nodepool, capacity_type, zone
	Disrupted  *prometheus.CounterVec // reason, nodepool, capacity_type, consolidation_policy, termination_mode
	Unhealthy  *prometheus.CounterVec // condition, nodepool, capacity_type, image_id, termination_mode
	// Pods counts the pods that have to move with disrupted claims; the labels are those of Disrupted.
	Pods *prometheus.CounterVec
	// Termination is the time from a claim's deletion to the end of its finalizer. InstanceTermination is the time
	// from the first call that ends its machine to the proof that it is gone. Both are in seconds.
	Termination, InstanceTermination *prometheus.HistogramVec // nodepool
	// Moving returns how many pods have to move with a claim; nil means none.
	Moving func(claim string) int
}

// Disrupt counts a claim that was chosen and is deleted, by its reason and, where that matters, its pool's
// consolidation policy.
func (c Claims) Disrupt(claim *karpenterv1.NodeClaim, reason, policy string) {
	labels := []string{Reason(reason), claim.Labels[karpenterv1.NodePoolLabelKey],
		claim.Labels[karpenterv1.CapacityTypeLabelKey],
		Snake(policy), TerminationMode(claim)}
	c.Disrupted.WithLabelValues(labels...).Inc()
	if c.Moving != nil {
		c.Pods.WithLabelValues(labels...).Add(float64(c.Moving(claim.Name)))
	}
}

// Disruption has the metrics of decisions about nodes that are not needed, or no longer right.
type Disruption struct {
	// Paused is 1 while the pause switch is on, otherwise 0 (D-14). OldPaused is the same under the name of the last
	// release.
	Paused, OldPaused prometheus.Gauge

	Decisions         *prometheus.CounterVec   // decision, reason, consolidation_type: commands begun
	PoolDecisions     *prometheus.CounterVec   // nodepool, decision, reason, consolidation_type
	Moves             *prometheus.CounterVec   // decision, nodepool, policy: of consolidation
	TerminateFirst    *prometheus.CounterVec   // nodepool, reason, terminate_first_reason
	Evaluation        *prometheus.HistogramVec // reason, consolidation_type; seconds
	Eligible          *Counted                 // reason: nodes that a search can choose from now
	FailedValidations *prometheus.CounterVec   // consolidation_type
	Failures          *prometheus.CounterVec   // decision, reason, consolidation_type
}

// ShowPaused sets whether voluntary disruption is paused, 1 or 0.
func (d Disruption) ShowPaused(is float64) {
	d.Paused.Set(is)
	d.OldPaused.Set(is)
}

// Nodes counts events in the life of nodes.
type Nodes struct {
	Created     *prometheus.CounterVec   // nodepool, zone
	Terminated  *prometheus.CounterVec   // nodepool, zone
	Drained     *prometheus.CounterVec   // nodepool
	Termination *prometheus.SummaryVec   // nodepool; seconds from deletion to the end of the finalizer
	Lifetime    *prometheus.HistogramVec // nodepool; seconds from creation
	// Reboots counts ended reboots. Reboot measures them from the decision. Recovery measures those that succeeded
	// from when the provider accepted them. Both are in seconds.
	Reboots  *prometheus.CounterVec   // result
	Reboot   *prometheus.HistogramVec // result
	Recovery *prometheus.HistogramVec
}

// Results of reboots (K-49).
const (
	RebootSucceeded     = "succeeded"
	RebootProviderError = "provider_error"
	RebootTimeout       = "recovery_timeout"
	RebootInvalid       = "invalid_request"
)

// Rebooted counts a reboot that ended this many seconds after it was decided.
func (n Nodes) Rebooted(result string, seconds float64) {
	n.Reboots.WithLabelValues(result).Inc()
	n.Reboot.WithLabelValues(result).Observe(max(0, seconds))
}

// Pods counts what is done to pods, and measures how long they take.
type Pods struct {
	Evictions *prometheus.CounterVec // code: the HTTP status of the answer
	Drained   *prometheus.CounterVec // reason
	// Startup is the time from a pod's creation until it is ready, Bound until it is bound. ProvisioningStartup and
	// ProvisioningBound start at the first plan with a place for it. Decisions is the time from when a pod was seen to
	// the first plan that included it. All are in seconds.
	Startup                        *prometheus.SummaryVec
	Bound, ProvisioningBound       *prometheus.HistogramVec // dynamic_resources
	ProvisioningStartup, Decisions *prometheus.HistogramVec
	// Times receives pods and makes these measurements.
	Times *PodTimes
}

// Plans measures planning.
type Plans struct {
	Duration      *prometheus.HistogramVec // controller; seconds
	Unschedulable *prometheus.GaugeVec     // controller
	Ignored       *prometheus.GaugeVec     // pods left out of planning
	Zones         *prometheus.GaugeVec     // controller, zone
	// Seconds and Pods measure rounds for waiting pods, and Last is the time of the last round (U-10).
	Seconds, Pods prometheus.Histogram
	Last          prometheus.Gauge
	// Latest is the last round's plan, Running what is being planned now.
	Latest  *Latest
	Running *Running
	// Times are those of Pods.
	Times *PodTimes
	// Bound is that of Own. Nil counts nothing.
	Bound *prometheus.CounterVec
}

// Begin creates the series of both places of bound pods before the first count, so that the increase is visible
// (K-60). It is called for each plan.
func (p Plans) Begin() {
	if p.Bound != nil {
		p.Bound.WithLabelValues(PlaceExpected)
		p.Bound.WithLabelValues(PlaceElsewhere)
	}
}

// Pools has the metrics of pools: limits, usage and budgets.
type Pools struct {
	Limit *Amounts
	Usage *Amounts
	// Allowed is how many nodes the budgets allow to disrupt in total, by pool and reason; [Unlimited] if no budget is
	// active. Consuming is how many nodes use them up. Remaining is what is left, if anything limits it (D-08).
	Allowed, Consuming, Remaining *Amounts
	// BlockedByLimit counts how often the hard node limit kept nodes from being replaced (L-34), by reason and
	// nodepool.
	BlockedByLimit Renamed
	// InVain counts rounds of launches that did not help their pods (P-35), by nodepool.
	InVain Renamed
	// CostErrors counts nodes whose machine has no price.
	CostErrors *prometheus.CounterVec // nodepool
}

// Unlimited is the value for a reason without an active budget, as in Karpenter.
const Unlimited = 1<<31 - 1

// Renamed is a counter with a new name. For one release the old name counts too.
type Renamed struct{ now, old *prometheus.CounterVec }

// Add adds n to the series with these values.
func (r Renamed) Add(n float64, values ...string) {
	r.now.WithLabelValues(values...).Add(n)
	r.old.WithLabelValues(values...).Add(n)
}

// Interruptions counts clouds' notices about machines: those received, and those fully handled.
type Interruptions struct {
	Received *prometheus.CounterVec // message_type
	Deleted  prometheus.Counter
}

// Cloud measures calls to the provider.
type Cloud struct {
	Duration *prometheus.HistogramVec // controller, method, provider; seconds
	Errors   *prometheus.CounterVec   // controller, method, provider, error, nodepool
}
