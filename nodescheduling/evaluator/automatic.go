package evaluator

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// automaticPrefix begins a reason that nobody wrote by hand. The name of the pod's creator follows, so that pod
	// and audit log say the same.
	automaticPrefix = "automatic: "
	// maxAutomaticName is how many characters of that name it has. Each has at most four bytes, so maxOverride is
	// never exceeded.
	maxAutomaticName = 120
)

// automaticReason returns the reason that a door writes for a user. The policy outside of Go writes the same: see
// [AutomaticMutation].
func automaticReason(user string) string {
	if name := []rune(user); len(name) > maxAutomaticName {
		user = string(name[:maxAutomaticName])
	}
	return automaticPrefix + user
}

// Automatic returns the value of the override annotation for a pod that is about to be created, "" for none. A
// door that can change objects writes it, and then calls [Policy.Evaluate], which judges it like one written by hand.
// So it does not matter who wrote it.
//
// A pod gets it only if it helps: no controller makes the pod, the pod aims at a node of a group that does not
// authorize its namespace, and its creator has an entry for a user or a group in every group of the policy. Otherwise
// the annotation would be refused or useless.
func (p *Policy) Automatic(request *Request, cluster Cluster) string {
	if !p.Automates() {
		return ""
	}
	subject := request.subject()
	if subject != createdPod || request.Pod == nil || bringsOverride(p, request, subject) ||
		metav1.GetControllerOfNoCopy(request.Pod) != nil {
		return ""
	}
	if slices.ContainsFunc(exits, func(e exit) bool { return e.leaves(p, request, subject) }) {
		return ""
	}
	e := evaluation{policy: p, request: request, cluster: cluster, subject: subject,
		placement: request.placement(subject)}
	if !e.personEverywhere() {
		return ""
	}
	if slices.ContainsFunc(p.groups, func(g group) bool { return e.needsOverride(&g) }) {
		return automaticReason(request.User.Name)
	}
	return ""
}

// Automates reports whether [Policy.Automatic] may return an annotation for any request.
func (p *Policy) Automates() bool { return p != nil && p.automatic && len(p.groups) > 0 }

// personEverywhere reports whether the sender has an entry for a user or a group in every group. Otherwise the
// annotation is refused, whatever group the pod aims at. It restores stale, since entries of other groups are no part
// of a finding about one.
func (e *evaluation) personEverywhere() bool {
	noted := e.stale
	defer func() { e.stale = noted }()
	for i := range e.policy.all {
		if e.person(&e.policy.all[i]) == "" {
			return false
		}
	}
	return true
}

// needsOverride reports whether the pod aims at a known node of the group, and its namespace is not authorized.
func (e *evaluation) needsOverride(g *group) bool {
	f := e.halves(g)
	if f.NamespaceAuthorized || !e.ready(g) {
		return false
	}
	known := func(t target) bool { return t.reason == NodeName || t.reason == Toleration || t.reason == Selector }
	if !slices.ContainsFunc(e.targets(g, false), known) {
		return false
	}
	_ = e.askAuthorizer(g, &f) // without an answer nothing is authorized
	return !f.NamespaceAuthorized
}
