package evaluator

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
)

// Decision is the outcome for one group.
type Decision string

// The decisions, the weightiest first.
const (
	// Deny refuses the request.
	Deny Decision = "deny"
	// InformOnly lets a request pass that Enable would refuse.
	InformOnly Decision = "inform"
	// Warn lets a workload pass although its pods will be refused, or would be if the mode were Enable.
	Warn Decision = "warn"
	// Overridden lets a pod pass whose namespace is not authorized, for a reason that the pod states (H7).
	Overridden Decision = "override"
	// Authorized lets a pod pass to a protected node.
	Authorized Decision = "authorized"
)

// Reason is why a request concerns a group. The set is closed: metrics have it as a label.
type Reason string

// The reasons.
const (
	// NodeName: the pod names a node of the group.
	NodeName Reason = "NodeName"
	// Binding: the pod is bound to a node of the group.
	Binding Reason = "Binding"
	// UnknownNode: the pod names, or is bound to, a node that does not exist. It may turn out to be of the group
	// (F10).
	UnknownNode Reason = "UnknownNode"
	// NodeUnreadable: the node could not be read, so it is not known whether it exists.
	NodeUnreadable Reason = "NodeUnreadable"
	// Toleration: the pod tolerates the taints of a node of the group.
	Toleration Reason = "Toleration"
	// Selector: the pod's node selector and required affinity match only nodes of the group.
	Selector Reason = "Selector"
	// NamespaceReplaced: an entry would authorize the request, but its UID is that of an earlier namespace of that
	// name.
	NamespaceReplaced Reason = "NamespaceReplaced"
	// NodesNotReady: the nodes or the live source are not known yet (N60).
	NodesNotReady Reason = "NodesNotReady"
	// OverrideMisused: the request brings the annotation of the emergency override, and may not.
	OverrideMisused Reason = "OverrideMisused"
	// OverrideTampered: an unauthorized user changes or enters a pod with the emergency override.
	OverrideTampered Reason = "OverrideTampered"
	// Malformed: the request has no object to judge.
	Malformed Reason = "Malformed"
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{NodeName, Binding, UnknownNode, NodeUnreadable, Toleration, Selector, NamespaceReplaced,
		NodesNotReady, OverrideMisused, OverrideTampered, Malformed}
}

// places reports whether the reason is a way to aim at a group.
func (r Reason) places() bool {
	switch r {
	case NodeName, Binding, UnknownNode, NodeUnreadable, Toleration, Selector:
		return true
	}
	return false
}

// Finding is the result for one group that the request concerns.
type Finding struct {
	Group    string
	Mode     configv1.GroupMode
	Decision Decision
	// Reason is the first reason. If a pod both tolerates and selects, the text says both.
	Reason Reason
	// Node is the node that the request names, or an example of those that it aims at, or "".
	Node string
	// ActorAuthorized and NamespaceAuthorized are the two halves. For a workload, only the second is asked.
	ActorAuthorized, NamespaceAuthorized bool
	// ActorEntry and NamespaceEntry are the entries of the lists that authorize the halves, or "". They help to find
	// entries that nobody uses (H19).
	ActorEntry, NamespaceEntry string
	// Override is the reason that the pod states for the emergency override.
	Override string
	// Text tells the user what is wrong, which half is not authorized, and what to do. It is empty for Authorized.
	Text string
}

// Event is a Kubernetes event of type Warning. A door may write it, at a limited rate (N67).
type Event struct {
	// Regarding is the controller that owns the pod, or its namespace if there is none.
	Regarding corev1.ObjectReference
	Reason    EventReason
	Note      string
}

// EventReason is the reason of an [Event].
type EventReason string

const (
	// EventInform: Enable would have refused the request.
	EventInform EventReason = "NodeSchedulingPolicyInform"
	// EventOverride: the emergency override was used.
	EventOverride EventReason = "NodeSchedulingPolicyOverride"
)

// Sample holds the metric labels of one finding (N66, N36). Every value is from a closed set, or a name in the
// configuration.
type Sample struct {
	Group, Mode, Decision, Resource, Reason string
	DryRun                                  bool
}

// Verdict is the answer. The zero Verdict denies, so a door that forgets to ask denies.
type Verdict struct {
	Allowed bool
	// Message says why the request is denied. It is empty if Allowed.
	Message string
	// Findings are the groups that the request concerns, in the order of the configuration. Most requests have none.
	Findings []Finding
	// Warnings go to the client.
	Warnings []string
	// Events are the events to write; none in a dry run.
	Events []Event
	// Samples are the metric samples to count.
	Samples []Sample
	// Uses are the entries that let the request pass. Count each once. There are none in a dry run.
	Uses []Use
}

// Use says that an entry let a request pass (H19). If several entries authorize the same, only the first counts as
// used.
type Use struct {
	Group, Entry string
}

// AuditPrefix is the prefix, before a slash, of the keys of [Verdict.Audit] in the audit log of a plugin. A webhook
// leaves it out: the API server adds the webhook's name instead.
const AuditPrefix = "nodeschedulingpolicy.scheduling.openshift.io"

// The keys of [Verdict.Audit] (N65).
const (
	AuditDecision = "decision"
	AuditGroup    = "group"
	AuditReason   = "reason"
	AuditActor    = "actor-authorized"
	AuditPod      = "pod-authorized"
	AuditOverride = "override"
)

// Audit returns the annotations for the audit log, or nil if the request concerns no group. If it concerns several
// groups, values are joined by commas, in the order of the groups.
func (v Verdict) Audit() map[string]string {
	if len(v.Findings) == 0 {
		return nil
	}
	values := map[string][]string{}
	for _, f := range v.Findings {
		for key, value := range map[string]string{
			AuditDecision: string(f.Decision), AuditGroup: f.Group, AuditReason: string(f.Reason),
			AuditActor: strconv.FormatBool(f.ActorAuthorized), AuditPod: strconv.FormatBool(f.NamespaceAuthorized),
		} {
			values[key] = append(values[key], value)
		}
		if f.Override != "" {
			values[AuditOverride] = []string{f.Override} // the pod states one
		}
	}
	audit := make(map[string]string, len(values))
	for key, list := range values {
		audit[key] = strings.Join(list, ",")
	}
	return audit
}
