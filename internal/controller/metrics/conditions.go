package metrics

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// This file measures the conditions of objects (K-10): how often they change, and after what time. The names are those
// of the library that Karpenter uses. Package state exports the current conditions.

// The kinds whose conditions are measured.
const (
	KindNodeClaim      = "NodeClaim"
	KindNodePool       = "NodePool"
	KindNode           = "Node"
	KindCapacityBuffer = "CapacityBuffer"
)

// DeprecatedPrefix is the prefix of the metrics that all kinds share.
const DeprecatedPrefix = "operator_"

// ConditionKind is a kind whose conditions are measured.
type ConditionKind struct {
	Name string
	// Group is its API group, a label of the old names.
	Group string
	// Copied are the label keys of its objects that are also labels of its metrics, named by [PromLabel].
	Copied []string
	// Deprecated is true for kinds that also have metrics with the old names.
	Deprecated bool
}

// Prefix returns the prefix of the kind's metrics.
func (k ConditionKind) Prefix() string { return "operator_" + strings.ToLower(k.Name) + "_" }

// ConditionKinds returns the kinds. classes are the label keys by which objects name their node class.
func ConditionKinds(classes []string) []ConditionKind {
	claim := append(slices.Clone(classes), karpenterv1.NodePoolLabelKey)
	return []ConditionKind{
		{KindNodeClaim, karpenterv1.Group, claim, true},
		{KindNodePool, karpenterv1.Group, nil, true},
		{KindNode, corev1.GroupName, append(slices.Clone(claim), karpenterv1.NodeInitializedLabelKey), false},
		{KindCapacityBuffer, autoscalingv1beta1.Group, nil, true},
	}
}

// PromLabel converts a label key to the name of a metric's label.
func PromLabel(key string) string {
	return strings.NewReplacer("/", "_", ".", "_", "-", "_").Replace(key)
}

// PromLabels is PromLabel for several keys.
func PromLabels(keys []string) []string {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = PromLabel(key)
	}
	return names
}

// ConditionsOf returns the conditions of an object of the kinds above, nil for other kinds.
func ConditionsOf(object client.Object) []karpenterv1.Condition {
	switch o := object.(type) {
	case *karpenterv1.NodeClaim:
		return o.Status.Conditions
	case *karpenterv1.NodePool:
		return o.Status.Conditions
	case *autoscalingv1beta1.CapacityBuffer:
		conditions := make([]karpenterv1.Condition, len(o.Status.Conditions))
		for i, c := range o.Status.Conditions {
			conditions[i] = karpenterv1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message,
				LastTransitionTime: c.LastTransitionTime}
		}
		return conditions
	case *corev1.Node:
		conditions := make([]karpenterv1.Condition, len(o.Status.Conditions))
		for i, c := range o.Status.Conditions {
			conditions[i] = karpenterv1.Condition{Type: string(c.Type), Status: metav1.ConditionStatus(c.Status),
				Reason:  c.Reason,
				Message: c.Message, LastTransitionTime: c.LastTransitionTime}
		}
		return conditions
	}
	return nil
}

// Transition is a condition whose status has changed, or that is new. From is the old status. For a new condition it
// is "", or Unknown if the condition is a step of the object's life.
type Transition struct {
	karpenterv1.Condition
	From metav1.ConditionStatus
}

// Conditions measures how the conditions of objects change. It remembers the last state of each object, and observes
// only while its process leads. It is safe for concurrent use.
type Conditions struct {
	kinds map[string]*conditionMetrics
	old   *conditionMetrics // nil if the old names are not served

	mu    sync.Mutex
	leads bool
	known map[types.UID][]seenCondition
}

type seenCondition struct {
	kind   string
	status metav1.ConditionStatus
	since  time.Time
}

type conditionMetrics struct {
	ConditionKind
	transitions *prometheus.CounterVec   // type, status, reason and what is copied
	took        *prometheus.HistogramVec // type, status, to_status and what is copied
	terminated  *prometheus.HistogramVec // what is copied
}

// NewConditions returns the metrics of conditions, registered on r; with deprecated also under their old names.
func NewConditions(r prometheus.Registerer, classes []string, deprecated bool) *Conditions {
	c := &Conditions{kinds: map[string]*conditionMetrics{}, known: map[types.UID][]seenCondition{}}
	for _, kind := range ConditionKinds(classes) {
		c.kinds[kind.Name] = newConditionMetrics(r, kind.Prefix(), kind, PromLabels(kind.Copied),
			prometheus.ExponentialBuckets(.5, 2, 15))
	}
	if deprecated {
		c.old = newConditionMetrics(r, DeprecatedPrefix, ConditionKind{}, []string{"group", "kind"},
			prometheus.DefBuckets)
	}
	return c
}

func newConditionMetrics(r prometheus.Registerer, prefix string, kind ConditionKind, copied []string,
	buckets []float64) *conditionMetrics {
	with := func(labels ...string) []string { return append(labels, copied...) }
	m := &conditionMetrics{kind,
		prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "status_condition_transitions_total",
			Help: "Transitions of conditions, by type, status and reason."}, with("type", "status", "reason")),
		prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + "status_condition_transition_seconds",
			Help: "How long conditions kept a status.", Buckets: buckets},
			with("type", "status", "to_status")),
		prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + "termination_duration_seconds",
			Help: "How long objects took from their deletion until they were gone.", Buckets: buckets}, with()),
	}
	r.MustRegister(m.transitions, m.took, m.terminated)
	return m
}

// Lead sets whether this process leads.
func (c *Conditions) Lead(leads bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leads = leads
}

// Apply records the state of an object and returns its changed conditions, in their order. An object seen for the
// first time has none. Objects of other kinds have no conditions here. It returns nil if this process does not lead.
func (c *Conditions) Apply(object client.Object) (changed []Transition) {
	m := c.of(object)
	if m == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before, seen := c.known[object.GetUID()]
	now := make([]seenCondition, 0, len(before))
	for _, condition := range ConditionsOf(object) {
		now = append(now, seenCondition{condition.Type, condition.Status, condition.LastTransitionTime.Time})
		i := slices.IndexFunc(before, func(s seenCondition) bool { return s.kind == condition.Type })
		switch {
		case !seen || i >= 0 && before[i].status == condition.Status:
		case i < 0 && condition.Status == metav1.ConditionUnknown: // the same as no condition
		case i < 0 && m.step(condition.Type):
			changed = append(changed, Transition{condition, metav1.ConditionUnknown})
			c.observe(m, object, condition, seenCondition{condition.Type, metav1.ConditionUnknown,
				object.GetCreationTimestamp().Time})
		case i < 0:
			changed = append(changed, Transition{condition, ""})
		default:
			changed = append(changed, Transition{condition, before[i].status})
			c.observe(m, object, condition, before[i])
		}
	}
	c.known[object.GetUID()] = now
	if !c.leads {
		return nil
	}
	for _, t := range changed {
		m.transitions.WithLabelValues(append([]string{t.Type, string(t.Status), t.Reason},
			m.copied(object)...)...).Inc()
		if c.old != nil && m.Deprecated {
			c.old.transitions.WithLabelValues(t.Type, string(t.Status), t.Reason, m.Group, m.Name).Inc()
		}
	}
	return changed
}

// step reports whether a condition is one that each object of the kind gets in the end. Karpenter first writes those
// as Unknown. So a new one counts as changed from Unknown, which it had since the object's creation.
func (k ConditionKind) step(condition string) bool {
	switch k.Name {
	case KindNodeClaim:
		return slices.Contains([]string{karpenterv1.ConditionTypeLaunched, karpenterv1.ConditionTypeRegistered,
			karpenterv1.ConditionTypeInitialized, karpenterv1.ConditionTypeReady}, condition)
	case KindNodePool:
		return slices.Contains([]string{karpenterv1.ConditionTypeValidationSucceeded,
			karpenterv1.ConditionTypeNodeClassReady,
			karpenterv1.ConditionTypeNodeRegistrationHealthy, karpenterv1.ConditionTypeReady}, condition)
	}
	return false
}

// observe measures how long a condition had its last status.
func (c *Conditions) observe(m *conditionMetrics, object client.Object, now karpenterv1.Condition,
	before seenCondition) {
	if !c.leads {
		return
	}
	took := max(0, now.LastTransitionTime.Sub(before.since).Seconds())
	m.took.WithLabelValues(append([]string{now.Type, string(before.status), string(now.Status)},
		m.copied(object)...)...).Observe(took)
	if c.old != nil && m.Deprecated {
		c.old.took.WithLabelValues(now.Type, string(before.status), string(now.Status), m.Group, m.Name).Observe(took)
	}
}

// Remove records that an object is gone, in its last state, at now. It reports whether that was measured: the kind has
// metrics, the object was being deleted and this process leads.
func (c *Conditions) Remove(object client.Object, now time.Time) bool {
	m := c.of(object)
	if m == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, object.GetUID())
	at := object.GetDeletionTimestamp()
	if !c.leads || at == nil {
		return false
	}
	took := max(0, now.Sub(at.Time).Seconds())
	m.terminated.WithLabelValues(m.copied(object)...).Observe(took)
	if c.old != nil && m.Deprecated {
		c.old.terminated.WithLabelValues(m.Group, m.Name).Observe(took)
	}
	return true
}

// of returns the metrics of an object's kind, nil for other kinds.
func (c *Conditions) of(object client.Object) *conditionMetrics {
	switch object.(type) {
	case *karpenterv1.NodeClaim:
		return c.kinds[KindNodeClaim]
	case *karpenterv1.NodePool:
		return c.kinds[KindNodePool]
	case *corev1.Node:
		return c.kinds[KindNode]
	case *autoscalingv1beta1.CapacityBuffer:
		return c.kinds[KindCapacityBuffer]
	}
	return nil
}

// copied returns the values of the copied labels.
func (m *conditionMetrics) copied(object client.Object) []string {
	values := make([]string, len(m.Copied))
	for i, key := range m.Copied {
		values[i] = object.GetLabels()[key]
	}
	return values
}
