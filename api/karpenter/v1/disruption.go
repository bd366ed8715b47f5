package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Disruption says when and how fast nodes of a pool may be removed or replaced.
type Disruption struct {
	// ConsolidateAfter is how long no pod may have come to or gone from a node before the node is
	// considered for consolidation: whole numbers with the units s, m and h, for example 30s, or Never.
	// +optional
	// +kubebuilder:default="0s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^(([0-9]+[smh])+|Never)$`
	ConsolidateAfter NillableDuration `json:"consolidateAfter,omitempty"`
	// ConsolidationPolicy says which nodes are considered for consolidation. WhenEmpty: those that
	// hold only pods of daemon sets. WhenEmptyOrUnderutilized, also spelled WhenUnderutilized: also
	// those whose pods fit elsewhere or on a cheaper node. Balanced: like the latter, if the savings
	// outweigh the disruption.
	// +optional
	// +kubebuilder:default=WhenEmptyOrUnderutilized
	ConsolidationPolicy ConsolidationPolicy `json:"consolidationPolicy,omitempty"`
	// Budgets bound how many nodes of the pool may be disrupted at the same time. Of several active
	// budgets the smallest holds. Expiration, a deleted node and a machine that its cloud takes away are
	// not bound by them.
	// +optional
	// +listType=atomic
	// +kubebuilder:default={{nodes: "10%"}}
	// +kubebuilder:validation:MaxItems=50
	Budgets []Budget `json:"budgets,omitzero"`
}

// ConsolidationPolicy says which nodes are considered for consolidation.
//
// +kubebuilder:validation:Enum=WhenEmpty;WhenUnderutilized;WhenEmptyOrUnderutilized;Balanced
type ConsolidationPolicy string

// The consolidation policies. The two that name underutilized nodes behave alike (V-06).
const (
	ConsolidationPolicyWhenEmpty                ConsolidationPolicy = "WhenEmpty"
	ConsolidationPolicyWhenUnderutilized        ConsolidationPolicy = "WhenUnderutilized"
	ConsolidationPolicyWhenEmptyOrUnderutilized ConsolidationPolicy = "WhenEmptyOrUnderutilized"
	ConsolidationPolicyBalanced                 ConsolidationPolicy = "Balanced"
)

// Budget bounds how many nodes of a pool may be disrupted at the same time.
//
// +kubebuilder:validation:XValidation:rule="has(self.schedule) == has(self.duration)",message="schedule and duration belong together: give both, or neither for a budget that is always active"
// +kubebuilder:validation:XValidation:rule="!has(self.timeZone) || has(self.schedule)",message="timeZone says where the clock of schedule stands: give both, or neither"
type Budget struct {
	// Reasons are the causes of disruption the budget holds for; without reasons it holds for all.
	// Expired restricts nothing, since an expired node is removed whatever the budgets say, unless the
	// NodePool has the annotation karpenter.sh/graceful-expiration.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Reasons []DisruptionReason `json:"reasons,omitempty"`
	// Nodes is how many nodes may be disrupted at the same time while the budget is active: a number
	// such as 5, or a share of the pool's nodes such as 10%, rounded up. 0 forbids disruption.
	// +optional
	// +kubebuilder:default="10%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 2147483647 : self.matches('^([0-9]{1,9}|[0-9]{1,2}%|100%)$')",messageExpression="'nodes is ' + string(self) + ': it must be a whole number that is not negative, or a percentage from 0% to 100%'"
	Nodes intstr.IntOrString `json:"nodes,omitempty"`
	// Schedule is when the budget becomes active, in UTC unless timeZone says otherwise: five fields as in cron
	// (minute, hour, day of month, month, day of week), or @hourly, @daily, @midnight, @weekly, @monthly, @yearly,
	// @annually. Without it, and without duration, the budget is always active.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^\s*(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|[0-9A-Za-z*?,/-]+(\s+[0-9A-Za-z*?,/-]+){4})\s*$`
	Schedule *string `json:"schedule,omitempty"`
	// TimeZone is where the clock of schedule stands, by its name in the IANA database, such as Europe/Berlin, with
	// its summer time. A time that a clock set forward leaves out is no time of the schedule. Karpenter does not know
	// the field.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,2}$`
	TimeZone *string `json:"timeZone,omitempty"`
	// Duration is how long the budget stays active after each time of the schedule: whole numbers with
	// the units m and h, for example 8h or 1h30m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+[mh])+(0s)?$`
	Duration *Duration `json:"duration,omitempty"`
}

// DisruptionReason is a cause of disruption that a budget can name.
//
// +kubebuilder:validation:Enum=Underutilized;Empty;Drifted;Expired;Unhealthy
type DisruptionReason string

// The reasons a budget can name.
const (
	DisruptionReasonUnderutilized DisruptionReason = "Underutilized"
	DisruptionReasonEmpty         DisruptionReason = "Empty"
	DisruptionReasonDrifted       DisruptionReason = "Drifted"
	// DisruptionReasonExpired restricts nothing by default: expiration is forceful (V-07, D-07).
	DisruptionReasonExpired   DisruptionReason = "Expired"
	DisruptionReasonUnhealthy DisruptionReason = "Unhealthy"
)

// DisruptionStatus says what the budgets of a pool allow now.
type DisruptionStatus struct {
	// Allowed says for each reason how many more nodes may be disrupted now.
	// +optional
	// +listType=map
	// +listMapKey=reason
	Allowed []AllowedDisruptions `json:"allowed,omitempty"`
	// NextChange is when a budget next begins or ends to be active by its schedule.
	// +optional
	NextChange *metav1.Time `json:"nextChange,omitempty"`
	// Paused says why nothing is disrupted at all, while voluntary disruption is paused for the whole cluster.
	// +optional
	Paused string `json:"paused,omitempty"`
}

// AllowedDisruptions is how many more nodes of a pool may be disrupted for a reason.
type AllowedDisruptions struct {
	// Reason is the cause of disruption.
	// +required
	Reason DisruptionReason `json:"reason"`
	// Nodes is how many more nodes may be disrupted: what the budget allows, less the nodes that are being
	// disrupted or not ready. It is absent when no budget is active for the reason.
	// +optional
	Nodes *int64 `json:"nodes,omitempty"`
	// Budget is the active budget that decides, such as spec.disruption.budgets[0].
	// +optional
	Budget string `json:"budget,omitempty"`
}
