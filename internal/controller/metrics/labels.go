package metrics

import (
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// Values of the label consolidation_type: what a search looks for. Joiner looks for any number of nodes at a time, so
// a search has the type [Multi]. A command has [Multi] or [Single], by the number of nodes that go.
const (
	Multi  = "multi"
	Single = "single"
	Empty  = "empty"
)

// Values of the label decision.
const (
	Replace        = "replace"
	Delete         = "delete"
	TerminateFirst = "terminate-first"
	DecisionReboot = "reboot"
	Approved       = "approved" // of a move
)

// Controllers that plan, as the label controller names them.
const (
	Provisioner = "provisioner"
	Disrupter   = "disruption"
	Static      = "static.provisioning"
)

// ForcefulTermination is the reason of drained pods without a disruption reason.
const ForcefulTermination = "Forceful Termination"

// Provisioned is the reason of NodeClaims created for pods or for the replicas of a static pool.
const Provisioned = "provisioned"

// Other stands for a value outside the closed set of a label.
const Other = "other"

// reasons maps why a NodeClaim goes to the value of the label reason (K-09): Karpenter's values, then Joiner's own.
func reasons() map[string]string {
	return map[string]string{
		"Empty": "empty", "Underutilized": "underutilized", "Drifted": "drifted", "Expired": "expired",
		"Unhealthy":    "unhealthy",
		"InstanceGone": "garbage_collected", "InsufficientCapacity": "insufficient_capacity",
		"NodeClassNotReady": "nodeclass_not_ready",
		"LaunchTimeout":     "launch_timeout", "RegistrationTimeout": "registration_timeout",
		"InitializationTimeout": "initialization_timeout", "LaunchFailed": "launch_failed",
		"NodePoolGone": "nodepool_gone", "NodeGone": "node_gone",
		"NodeLimitExceeded": "node_limit_exceeded", "ReplicasExceeded": "replicas_exceeded",
		"ReplacementAbandoned": "replacement_abandoned", "NodeLimitReached": "node_limit_reached",
		"SpotInterrupted":                        "spot_interrupted",
		"CapacityReservationInstanceInterrupted": "capacity_reservation_interrupted",
		"CapacityBlockExpiring":                  "capacity_block_expiring",
		"SpotRebalanceRecommendation":            "rebalance_recommendation", "InstanceStopping": "instance_stopped",
		"InstanceTerminating": "instance_terminated", "InstanceUnhealthy": "instance_unhealthy",
	}
}

// Reason returns the value of the label reason for why a NodeClaim is created or goes, Other for an unknown reason.
func Reason(reason string) string {
	if value := reasons()[reason]; value != "" {
		return value
	}
	return Other
}

// TerminationMode returns how bounded the drain of a claim is: graceful without a terminationGracePeriod, forceful if
// it is zero, otherwise eventual (K-09).
func TerminationMode(claim *karpenterv1.NodeClaim) string {
	switch grace := claim.Spec.TerminationGracePeriod; {
	case grace == nil:
		return "graceful"
	case grace.Duration > 0:
		return "eventual"
	}
	return "forceful"
}

// ConsolidationType returns the type of a command that removes this many nodes for a reason; "" for other commands
// than consolidation.
func ConsolidationType(reason string, nodes int) string {
	switch {
	case reason == "Empty":
		return Empty
	case reason != "Underutilized":
		return ""
	case nodes > 1:
		return Multi
	}
	return Single
}

// ResourceType returns the value of the label resource_type for a resource.
func ResourceType(resource string) string {
	return strings.ReplaceAll(strings.ToLower(resource), "-", "_")
}

// Snake converts a CamelCase name to a label value: MemoryPressure becomes memory_pressure.
func Snake(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 &&
			(unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// NodeLabels returns the label keys of nodes that are also labels of their series, with every provider. A provider
// adds its own.
func NodeLabels() []string {
	return []string{karpenterv1.NodePoolLabelKey, karpenterv1.CapacityTypeLabelKey, corev1.LabelTopologyZone,
		corev1.LabelTopologyRegion,
		corev1.LabelInstanceTypeStable, corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelWindowsBuild}
}
