package metrics

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// This file has the metrics that Karpenter does not have (U-10). No label holds the name of a pod, a node or a claim.

// ownPrefix is the prefix of metrics that Karpenter does not have.
const ownPrefix = "joiner_"

// Own has the metrics that Karpenter does not have, except those of Plans.
type Own struct {
	// Decisions counts decisions about nodes and their outcomes.
	Decisions *prometheus.CounterVec // verb, cause, outcome
	// Leader is 1 in the replica that leads, otherwise 0.
	Leader prometheus.Gauge
	// Stages measures how long NodeClaims take from one stage to the next.
	Stages *prometheus.HistogramVec // nodepool, stage
	// Dropped is 1 for each metric that is left out because there are too many series.
	Dropped *prometheus.GaugeVec // family
	// EventsDropped counts events that were not sent because there were too many.
	EventsDropped *prometheus.CounterVec // reason
	// CommitmentsRead is 1 if the commitments file could be read last, otherwise 0 (K-55). Without a file it has no
	// series.
	CommitmentsRead *prometheus.GaugeVec // no label
	// Grace is the remaining grace of the first start (K-27).
	Grace *Countdown
	// Bound counts the pods that kube-scheduler bound where a plan expected them, and those bound elsewhere (K-60).
	Bound *prometheus.CounterVec // place
	// Standing is the state of the cluster.
	Standing *Standing
	// Observed is what would be done. It is measured only in a process that only observes (K-26).
	Observed Observed
}

// Observed is what a process that only observes would do, and the final state that this would lead to.
type Observed struct {
	Launches, Removals *prometheus.CounterVec // nodepool, reason
	Nodes, Cost        *prometheus.GaugeVec   // nodepool
}

func newObserved() Observed {
	return Observed{
		Launches: prometheus.NewCounterVec(prometheus.CounterOpts{Name: ownPrefix + "observed_launches_total",
			Help: "Nodes that would have been launched, with --observe-only."}, []string{"nodepool", "reason"}),
		Removals: prometheus.NewCounterVec(prometheus.CounterOpts{Name: ownPrefix + "observed_removals_total",
			Help: "Nodes that would have been removed, with --observe-only."}, []string{"nodepool", "reason"}),
		Nodes: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: ownPrefix + "observed_nodes",
			Help: "Nodes that a NodePool would have at rest, with --observe-only."}, []string{"nodepool"}),
		Cost: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: ownPrefix + "observed_cost_per_hour",
			Help: "What these nodes would cost, in dollars per hour."}, []string{"nodepool"}),
	}
}

// The values of Stages' label stage. A stage is over when the condition of its name becomes true.
const (
	StageLaunched    = "launched"
	StageRegistered  = "registered"
	StageInitialized = "initialized"
)

// The values of Bound's label place.
const (
	PlaceExpected  = "expected"
	PlaceElsewhere = "elsewhere"
)

func newOwn(r prometheus.Registerer) Own {
	own := Own{
		Decisions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: ownPrefix + "decisions_total",
			Help: "Decisions about nodes, by action, reason and result."},
			[]string{"verb", "cause", "outcome"}),
		Leader: prometheus.NewGauge(prometheus.GaugeOpts{Name: ownPrefix + "leader",
			Help: "1 while this replica leads, otherwise 0."}),
		Stages: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: ownPrefix + "node_stage_seconds",
			Help:    "How long NodeClaims took to reach a stage, from the one before, or from their creation.",
			Buckets: stageBuckets()}, []string{"nodepool", "stage"}),
		Dropped: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: ownPrefix + "metrics_family_dropped",
			Help: "1 for each metric that is left out, since there are too many series."}, []string{"family"}),
		EventsDropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: ownPrefix + "events_dropped_total",
			Help: "Events that were not sent, since there were too many at a time."}, []string{"reason"}),
		CommitmentsRead: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: ownPrefix + "commitments_file_read",
			Help: "1 when --commitments-file could be read last, otherwise 0. Absent without it."}, nil),
		Grace: &Countdown{},
		Bound: prometheus.NewCounterVec(prometheus.CounterOpts{Name: ownPrefix + "pods_bound_total",
			Help: "Pods that had a place in a plan when kube-scheduler bound them: to that node (expected), or elsewhere."},
			[]string{"place"}),
		Standing: newStanding(),
		Observed: newObserved(),
	}
	r.MustRegister(own.Observed.Launches, own.Observed.Removals, own.Observed.Nodes, own.Observed.Cost)
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: ownPrefix + "takeover_grace_seconds",
		Help: "How long nothing is removed voluntarily after the first start, in seconds; 0 when that is over."},
		own.Grace.seconds))
	r.MustRegister(own.Decisions, own.Leader, own.Stages, own.Dropped, own.EventsDropped, own.CommitmentsRead,
		own.Bound, own.Standing)
	return own
}

// Countdown is a remaining time, measured at each scrape. It is safe for concurrent use.
type Countdown struct {
	left atomic.Pointer[func() time.Duration]
}

// Measure sets the function that returns how long is left.
func (c *Countdown) Measure(left func() time.Duration) { c.left.Store(&left) }

func (c *Countdown) seconds() float64 {
	if left := c.left.Load(); left != nil {
		return (*left)().Seconds()
	}
	return 0
}

// stageBuckets range from a cloud that answers at once to the time after which a claim is given up. They are few,
// because each pool and stage has its own histogram.
func stageBuckets() []float64 { return []float64{5, 15, 30, 60, 120, 300, 900} }

func newPlans(m maker, plans Plans) Plans {
	plans.Seconds = prometheus.NewHistogram(prometheus.HistogramOpts{Name: ownPrefix + "plan_duration_seconds",
		Help: "Duration of one round of planning for pods that wait.", Buckets: durationBuckets()})
	plans.Pods = prometheus.NewHistogram(prometheus.HistogramOpts{Name: ownPrefix + "plan_pods",
		Help:    "Pods that one round planned for.",
		Buckets: []float64{1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000}})
	plans.Last = prometheus.NewGauge(prometheus.GaugeOpts{Name: ownPrefix + "last_plan_timestamp_seconds",
		Help: "When this replica last planned for pods that wait, or found that its last plan still holds."})
	plans.Latest = &Latest{}
	m.MustRegister(plans.Seconds, plans.Pods, plans.Last)
	return plans
}

// NewRequests returns the counter of calls to the API server, registered on r. It is separate, because the connection
// is created before the other metrics.
func NewRequests(r prometheus.Registerer) *prometheus.CounterVec {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: ownPrefix + "api_requests_total",
		Help: "Calls to the API server, by verb and kind."}, []string{"verb", "kind"})
	r.MustRegister(requests)
	return requests
}

// Settings has the metrics of settings with another effect than somebody may think (K-03).
type Settings struct{ ignored, invalid *prometheus.GaugeVec }

// NewSettings returns the metrics of settings, registered on r.
func NewSettings(r prometheus.Registerer) Settings {
	own := Settings{
		ignored: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: ownPrefix + "settings_ignored",
			Help: "1 for each setting that was given and has no effect."}, []string{"setting"}),
		invalid: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: ownPrefix + "settings_invalid",
			Help: "1 for each setting whose variable cannot be read, so that it has its default."},
			[]string{"setting"}),
	}
	r.MustRegister(own.ignored, own.invalid)
	return own
}

// Set sets which settings are ignored or invalid, by the names of their flags. It is called once.
func (s Settings) Set(ignored, invalid []string) {
	for _, name := range ignored {
		s.ignored.WithLabelValues(name).Set(1)
	}
	for _, name := range invalid {
		s.invalid.WithLabelValues(name).Set(1)
	}
}

// Latest is the last plan for waiting pods. It is safe for concurrent use; a finished plan never changes.
type Latest struct{ plan atomic.Pointer[plan.Plan] }

// Set stores a plan.
func (l *Latest) Set(p plan.Plan) { l.plan.Store(&p) }

// Get returns the last plan; an empty one before the first.
func (l *Latest) Get() plan.Plan {
	if p := l.plan.Load(); p != nil {
		return *p
	}
	return plan.Plan{}
}

// Running is what is being planned now, by controller. It is safe for concurrent use.
type Running struct {
	mu    sync.Mutex
	plans map[string]RunningPlan
}

// RunningPlan is a plan in progress.
type RunningPlan struct {
	Pods  int // that it plans for
	Since time.Time
}

// Begin records that a controller plans for this many pods from now on.
func (r *Running) Begin(controller string, pods int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.plans == nil {
		r.plans = map[string]RunningPlan{}
	}
	r.plans[controller] = RunningPlan{pods, now}
}

// End records that the controller's plan is finished.
func (r *Running) End(controller string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.plans != nil {
		r.plans[controller] = RunningPlan{}
	}
}

// Plans returns, for each controller that has ever planned, what it is planning. An idle controller has no pods and
// the zero time.
func (r *Running) Plans() map[string]RunningPlan {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.plans)
}

// ShowPending exports the pods of a plan by zone, and how many pods were left out because something of theirs is
// missing or invalid. The zone comes from the pod's own requirements and the location of its volumes.
func (p Plans) ShowPending(s *cluster.Snapshot) {
	zones, ignored := map[string]int{}, 0
	byShape := map[*cluster.Shape]string{}
	for _, pod := range s.Pending {
		if pod.Shape.Blocked != "" {
			ignored++
			continue
		}
		zone, known := byShape[pod.Shape]
		if !known {
			zone = zoneOf(pod.Shape)
			byShape[pod.Shape] = zone
		}
		zones[zone]++
	}
	p.Ignored.WithLabelValues().Set(float64(ignored))
	p.Zones.Reset()
	for zone, pods := range zones {
		p.Zones.WithLabelValues(Provisioner, zone).Set(float64(pods))
	}
}

// Values for pods with several possible zones, and with none.
const (
	zoneFlexible = "flexible"
	zoneNone     = "none"
)

// zoneOf returns the only zone that pods of a shape can run in, or one of the values above.
func zoneOf(shape *cluster.Shape) string {
	if len(shape.Alternatives) == 0 {
		return zoneFlexible
	}
	zones := map[string]bool{}
	for _, alternative := range shape.Alternatives {
		values, finite := alternative.Labels.Get(catalog.LabelZone).Values()
		if !finite {
			return zoneFlexible
		}
		for _, zone := range values {
			zones[zone] = true
		}
	}
	if len(zones) == 0 {
		return zoneNone
	}
	for zone := range zones {
		if len(zones) == 1 {
			return zone
		}
	}
	return zoneFlexible
}
