package evaluator

import "strconv"

// What stands in the expressions of [AutomaticConditions] for what a policy says. Each is replaced by JSON, which CEL
// reads, and in which none of them can stand: it has no < as it is written here.
const (
	// CELAllEntries is a list of the lists authorizedUsers of all groups.
	CELAllEntries = "<ALL>"
	// CELEntries is the list of the group.
	CELEntries = "<ENTRIES>"
	// CELLabels are the matchLabels of the group, if its labelSelector has nothing else; otherwise labels that no pod
	// selects.
	CELLabels = "<LABELS>"
)

// The expressions of a MutatingAdmissionPolicy that is evaluated for each node that the labelSelector of a group
// chooses: params is the node. They hold for nothing for which [Policy.Automatic] does not write the annotation too,
// if every group is enforced. They hold for less: of Scheduler's entries they know nothing, nor of nodes that only
// their taints make members, and a pod with required node affinity, or with a toleration that compares numbers, is
// left alone.
const (
	celNoController = "!has(object.metadata.ownerReferences) || " +
		"!object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller)"

	// celPerson: names that look like another form of entries count only where they are spelled with user:.
	celPerson = "!" + celUser + ".startsWith('" + serviceAccountPrefix + "') && " + CELAllEntries + ".all(entries, " +
		"!" + celUser + ".contains('/') && !" + celUser + ".startsWith('" + userPrefix + "') && " +
		"!" + celUser + ".startsWith('" + groupPrefix + "') && !" + celUser + ".startsWith('" + namespacePrefix + "') && " +
		celUser + " in entries || '" + userPrefix + "' + " + celUser + " in entries || " +
		"has(request.userInfo.groups) && request.userInfo.groups.exists(g, '" + groupPrefix + "' + g in entries))"
	celUser = "request.userInfo.username"

	// celUnlisted: an entry with the UID of another namespace counts as one of this.
	celUnlisted = "!" + CELEntries + ".exists(e, e == '" + namespacePrefix + "' + request.namespace || " +
		"e.startsWith('" + namespacePrefix + "' + request.namespace + '@') || e.startsWith(request.namespace + '/') || " +
		"e.startsWith('" + serviceAccountPrefix + "' + request.namespace + ':'))"

	celAimsHere = "has(object.spec.nodeName) ? object.spec.nodeName == params.metadata.name : " +
		"!(" + celRequires + ") && (" + celFits + ") && (" + celContains + " || " + celTaintsTolerated + ")"
	celFits = "!has(object.spec.nodeSelector) || object.spec.nodeSelector.all(k, has(params.metadata.labels) && " +
		"k in params.metadata.labels && params.metadata.labels[k] == object.spec.nodeSelector[k])"
	celContains = CELLabels + ".all(k, has(object.spec.nodeSelector) && k in object.spec.nodeSelector && " +
		"object.spec.nodeSelector[k] == " + CELLabels + "[k])"

	celCounts          = "t.effect in ['NoSchedule', 'NoExecute'] && !t.key.startsWith('" + conditionTaints + "')"
	celTaintsTolerated = "has(params.spec.taints) && params.spec.taints.exists(t, " + celCounts + ") && " +
		"params.spec.taints.all(t, !(" + celCounts + ") || " +
		"has(object.spec.tolerations) && object.spec.tolerations.exists(o, " + celOneTolerates + "))"
	celOneTolerates = "(!has(o.effect) || o.effect == t.effect) && (!has(o.key) || o.key == t.key) && " +
		"(has(o.operator) && o.operator == 'Exists' || (!has(o.operator) || o.operator == 'Equal') && " +
		"(has(o.value) ? o.value : '') == (has(t.value) ? t.value : ''))"
)

// AutomaticConditions are the matchConditions of such a policy, for one group. All of them must hold.
func AutomaticConditions() []MatchCondition {
	return []MatchCondition{
		{Name: "has-no-override", Expression: "!(" + celCarries + ")"},
		{Name: "has-no-controller", Expression: celNoController},
		{Name: "comes-from-a-person-on-the-lists", Expression: celPerson},
		{Name: "namespace-is-not-authorized", Expression: celUnlisted},
		{Name: "aims-at-this-node", Expression: celAimsHere},
	}
}

// AutomaticMutation is what such a policy applies: the annotation as [Policy.Automatic] has it.
func AutomaticMutation() string {
	most := strconv.Itoa(maxAutomaticName)
	return "Object{metadata: Object.metadata{annotations: {'" + OverrideAnnotation + "': '" + automaticPrefix + "' + " +
		"(size(request.userInfo.username) > " + most + " ? request.userInfo.username.substring(0, " + most +
		") : request.userInfo.username)}}}"
}
