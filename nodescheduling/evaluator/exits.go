package evaluator

import (
	"strings"
)

// exit lets a request pass that concerns no group, before the evaluator asks anything of the cluster.
//
// Each exit has a second form outside of Go: a CEL condition, or a field of the webhook's configuration. It saves the
// API server from calling a webhook for requests that take the exit. The conditions of the chart, of the user's page
// and of the manifest in files are made from these forms. A test fails if an exit has no form, or if its form
// lets a request pass that Go would judge.
type exit struct {
	name string
	// needsObject says that the exit reads the object: a request without one is refused first.
	needsObject bool
	leaves      func(*Policy, *Request, subject) bool
	// condition is the CEL expression of a matchCondition: false only for requests that take the exit. field is the
	// field of the configuration that replaces it.
	condition, field string
}

// exits are all exits, in the order in which they are tried.
var exits = []exit{
	{name: "what-places-no-pod", field: "rules", leaves: func(_ *Policy, _ *Request, s subject) bool {
		return s == nothing
	}},
	{name: "own-namespace", field: "namespaceSelector", leaves: func(p *Policy, r *Request, _ subject) bool {
		return p.self != "" && r.Namespace == p.self
	}},
	{name: "mirrors-of-a-node", needsObject: true, condition: celNoMirror,
		leaves: func(_ *Policy, r *Request, s subject) bool {
			return s == createdPod && r.isOwnMirror()
		}},
	{name: "aims-at-nothing", needsObject: true, condition: concerned(),
		leaves: func(p *Policy, r *Request, s subject) bool {
			for i := range concerns {
				if concerns[i].holds(p, r, s) {
					return false
				}
			}
			return true
		}},
}

// concern is a reason to judge a request, in Go and in CEL. The expression holds whenever the function does, and may
// hold for more.
type concern struct {
	holds func(*Policy, *Request, subject) bool
	cel   string
}

// concerns are all reasons to judge a request.
var concerns = []concern{
	{holds: func(_ *Policy, r *Request, s subject) bool { return r.placement(s).aims() }, cel: celAims},
	{holds: bringsOverride, cel: celBrings},
	{holds: touchesOverride, cel: celTouches},
	{holds: func(p *Policy, _ *Request, s subject) bool { return p.override && s == connection }, cel: celConnects},
}

// The expressions. An API server omits empty fields, so a field that is present is not empty. The annotation is
// compared by its value: an unchanged one is no concern.
const (
	celCreated = "request.operation == 'CREATE'"
	celUpdated = "request.operation == 'UPDATE'"
	celPod     = "request.resource.resource == 'pods' && (!has(request.subResource) || request.subResource == '')"
	celBinding = "request.resource.resource == 'bindings' || has(request.subResource) && request.subResource == 'binding'"

	celCarries = "has(object.metadata.annotations) && '" + OverrideAnnotation + "' in object.metadata.annotations"
	celCarried = "has(oldObject.metadata.annotations) && '" + OverrideAnnotation +
		"' in oldObject.metadata.annotations"
	celSame = "object.metadata.annotations['" + OverrideAnnotation + "'] == oldObject.metadata.annotations['" +
		OverrideAnnotation + "']"

	celTolerates = "has(object.spec.tolerations) && object.spec.tolerations.exists(t, " +
		"!has(t.key) || !t.key.startsWith('" + conditionTaints + "'))"
	celRequires = "has(object.spec.affinity) && has(object.spec.affinity.nodeAffinity) && " +
		"has(object.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution)"

	// celAims: bindings, and pods that are new or have no node yet, and that name, select or tolerate something.
	celAims = celBinding + " || " + celPod + " && (" + celCreated + " || " + celUpdated +
		" && !has(oldObject.spec.nodeName)) && " +
		"(has(object.spec.nodeName) || has(object.spec.nodeSelector) || " + celRequires + " || " + celTolerates + ")"
	celBrings = celCreated + " && " + celCarries + " || " + celUpdated + " && " + celCarries + " && !(" + celCarried +
		" && " + celSame + ")"
	celTouches = celUpdated + " && " + celCarried + " && (!(" + celCarries + ") || object.spec != oldObject.spec)"
	// celConnects: the object of such a request says nothing about the pod.
	celConnects = "request.operation == 'CONNECT'"

	// celNoMirror: a mirror pod that its own kubelet creates needs no call.
	celNoMirror = "!(" + celPod + " && " + celCreated +
		" && has(object.metadata.annotations) && 'kubernetes.io/config.mirror' in object.metadata.annotations && " +
		"has(object.spec.nodeName) && request.userInfo.username == 'system:node:' + object.spec.nodeName && " +
		"has(request.userInfo.groups) && 'system:nodes' in request.userInfo.groups)"
)

// concerned joins the expressions of all concerns.
func concerned() string {
	expressions := make([]string, len(concerns))
	for i := range concerns {
		expressions[i] = "(" + concerns[i].cel + ")"
	}
	return strings.Join(expressions, " || ")
}

// MatchCondition is a matchCondition of a webhook: the API server need not call the webhook if it is false.
type MatchCondition struct{ Name, Expression string }

// MatchConditions returns the conditions of the exits, for the webhook that judges pods and bindings. An API server
// calls that webhook if all of them hold.
func MatchConditions() []MatchCondition {
	var conditions []MatchCondition
	for _, e := range exits {
		if e.condition != "" {
			conditions = append(conditions, MatchCondition{Name: e.name, Expression: e.condition})
		}
	}
	return conditions
}
