package evaluator

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// automaticPrefix begins the reason that nobody wrote by hand. The name of whoever creates the pod follows, so
	// that the audit log says what the pod says.
	automaticPrefix = "automatic: "
	// maxAutomaticName is how much of that name is in it, in characters: at most four bytes each, so that maxOverride
	// holds.
	maxAutomaticName = 120
)

// automaticReason is what a door writes for a user. The policy outside of Go says the same: see [AutomaticValue].
func automaticReason(user string) string {
	if name := []rune(user); len(name) > maxAutomaticName {
		user = string(name[:maxAutomaticName])
	}
	return automaticPrefix + user
}

// Automatic is what the annotation of the override has to say on a pod that is about to be created, "" if it is to
// have none. A door that can change objects writes it before it asks [Policy.Evaluate], which judges it like
// one that was written by hand: so it is no matter who wrote it.
//
// A pod gets it where that helps and nothing else is touched by it: no controller makes the pod, it aims at a node of
// a group in a namespace that the group does not authorize, and whoever creates it has an entry for a user or a group
// in every group of the policy. With less than that the annotation would only be refused.
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

// Automates says whether [Policy.Automatic] may have anything to say, whatever the request.
func (p *Policy) Automates() bool { return p != nil && p.automatic && len(p.groups) > 0 }

// personEverywhere says whether whoever sends the request has an entry for a user or a group in every group: without
// that the annotation is refused, whatever group the pod aims at. What is noted about entries of other groups is no part
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

// needsOverride says whether the pod aims at a node that is known to be of the group, and its namespace keeps it off.
func (e *evaluation) needsOverride(g *group) bool {
	f := e.halves(g)
	if f.NamespaceAuthorized || !e.ready(g) {
		return false
	}
	known := func(t target) bool { return t.reason == NodeName || t.reason == Toleration || t.reason == Selector }
	if !slices.ContainsFunc(e.targets(g, false), known) {
		return false
	}
	_ = e.askAuthorizer(g, &f) // who gives no answer authorizes nothing
	return !f.NamespaceAuthorized
}
