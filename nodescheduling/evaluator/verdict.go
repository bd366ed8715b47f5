package evaluator

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
)

// Decision is what came of one group.
type Decision string

// The decisions, the weightiest first.
const (
	// Deny refuses the request.
	Deny Decision = "deny"
	// InformOnly lets pass what Enable would refuse.
	InformOnly Decision = "inform"
	// Warn lets a workload pass whose pods will be refused, or would be if the mode were Enable.
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
	// UnknownNode: the pod names, or is bound to, a node that does not exist, so it may turn out to be of the group (F10).
	UnknownNode Reason = "UnknownNode"
	// NodeUnreadable: whether that node exists could not be found out.
	NodeUnreadable Reason = "NodeUnreadable"
	// Toleration: the pod tolerates the taints of a node of the group.
	Toleration Reason = "Toleration"
	// Selector: the pod's node selector and affinity leave it nodes of the group only.
	Selector Reason = "Selector"
	// NamespaceReplaced: an entry would authorize the request, but for another namespace of that name.
	NamespaceReplaced Reason = "NamespaceReplaced"
	// NodesNotReady: the nodes are not known yet (N60).
	NodesNotReady Reason = "NodesNotReady"
	// OverrideMisused: the annotation of the emergency override stands where it may not.
	OverrideMisused Reason = "OverrideMisused"
	// OverrideTampered: somebody who may not changes or enters a pod that the emergency override placed.
	OverrideTampered Reason = "OverrideTampered"
	// Malformed: the request has no object to judge.
	Malformed Reason = "Malformed"
)

// Reasons lists them all.
func Reasons() []Reason {
	return []Reason{NodeName, Binding, UnknownNode, NodeUnreadable, Toleration, Selector, NamespaceReplaced, NodesNotReady, OverrideMisused, OverrideTampered, Malformed}
}

// places says whether the reason is how a pod aims at a group.
func (r Reason) places() bool {
	switch r {
	case NodeName, Binding, UnknownNode, NodeUnreadable, Toleration, Selector:
		return true
	}
	return false
}

// Finding is what came of one group that the request concerns.
type Finding struct {
	Group    string
	Mode     configv1.GroupMode
	Decision Decision
	// Reason is the first reason; where a pod both tolerates and selects, the text says both.
	Reason Reason
	// Node is the node that shows it, or "".
	Node string
	// ActorAuthorized and NamespaceAuthorized are the two halves. Of a workload only the second is asked.
	ActorAuthorized, NamespaceAuthorized bool
	// ActorEntry and NamespaceEntry are the entries of the lists that authorize, or "": those that nobody ever uses can
	// be found so (H19).
	ActorEntry, NamespaceEntry string
	// Override is the reason that the pod states for the emergency override.
	Override string
	// Text is for the user: what is wrong, which half is not authorized, and what to do. It is empty for Authorized.
	Text string
}

// Event is a Kubernetes event of type Warning that a door may write, at a limited rate (N67).
type Event struct {
	// Regarding is the controller that owns the pod, or else its namespace.
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

// Sample counts one finding (N66, N36). Every value is of a closed set or a name of the configuration.
type Sample struct {
	Group, Mode, Decision, Resource, Reason string
	DryRun                                  bool
}

// Verdict is the answer. The zero Verdict denies, so that a door that forgets to ask denies.
type Verdict struct {
	Allowed bool
	// Message says why not. It is empty for what is allowed.
	Message string
	// Findings are the groups that the request concerns, in the order of the configuration. Most requests have none.
	Findings []Finding
	// Warnings go to the client.
	Warnings []string
	// Events are to be written, none in a dry run.
	Events []Event
	// Samples are to be counted.
	Samples []Sample
	// Uses are the entries that let the request pass, to be counted, each once; none in a dry run.
	Uses []Use
}

// Use says that an entry let a request pass (H19). Where several entries authorize the same, only the first of them is used.
type Use struct {
	Group, Entry string
}

// AuditPrefix stands before the keys of [Verdict.Audit] in the audit log of a plugin, with a slash between. A webhook
// leaves it out: the API server puts the webhook's name there.
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

// Audit returns the annotations for the audit log, nil if the request concerns no group. Where it concerns several, each
// value lists them, in the order of the groups.
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
