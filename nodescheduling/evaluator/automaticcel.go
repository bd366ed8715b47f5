package evaluator

import "strconv"

// Placeholders in the expressions of [AutomaticConditions], for values of a policy. Each is replaced by JSON, which
// CEL can read. JSON cannot contain a placeholder: Go writes it without <.
const (
	// CELAllEntries stands for a list of the authorizedUsers lists of all groups.
	CELAllEntries = "<ALL>"
	// CELEntries stands for the authorizedUsers list of the group.
	CELEntries = "<ENTRIES>"
	// CELLabels stands for the matchLabels of the group if its labelSelector has nothing else, otherwise for labels
	// that no pod selects.
	CELLabels = "<LABELS>"
)

// The expressions of a MutatingAdmissionPolicy. It is evaluated for each node that the labelSelector of a group
// matches; params is the node. If every group is enforced, they hold only for pods on which [Policy.Automatic] writes
// the annotation too. They hold for fewer pods: they do not know the entries of the live source, or nodes that are
// members only by their taints. They leave alone a pod with required node affinity, or with a toleration that compares
// numbers.
const (
	celNoController = "!has(object.metadata.ownerReferences) || " +
		"!object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller)"

	// celPerson: a user name that looks like another form of entry counts only if the entry begins with user:.
	celPerson = "!" + celUser + ".startsWith('" + serviceAccountPrefix + "') && " + CELAllEntries + ".all(entries, " +
		"!" + celUser + ".contains('/') && !" + celUser + ".startsWith('" + userPrefix + "') && " +
		"!" + celUser + ".startsWith('" + groupPrefix + "') && !" + celUser + ".startsWith('" + namespacePrefix +
		"') && " + celUser + " in entries || '" + userPrefix + "' + " + celUser + " in entries || " +
		"has(request.userInfo.groups) && request.userInfo.groups.exists(g, '" + groupPrefix + "' + g in entries))"
	celUser = "request.userInfo.username"

	// celUnlisted: an entry counts for the namespace even if its UID is that of another one.
	celUnlisted = "!" + CELEntries + ".exists(e, e == '" + namespacePrefix + "' + request.namespace || " +
		"e.startsWith('" + namespacePrefix +
		"' + request.namespace + '@') || e.startsWith(request.namespace + '/') || " +
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

// AutomaticConditions returns the matchConditions of a MutatingAdmissionPolicy that writes the annotation of the
// override, for one group. All of them must hold.
func AutomaticConditions() []MatchCondition {
	return []MatchCondition{
		{Name: "has-no-override", Expression: "!(" + celCarries + ")"},
		{Name: "has-no-controller", Expression: celNoController},
		{Name: "comes-from-a-person-on-the-lists", Expression: celPerson},
		{Name: "namespace-is-not-authorized", Expression: celUnlisted},
		{Name: "aims-at-this-node", Expression: celAimsHere},
	}
}

// AutomaticMutation returns what that policy applies: the annotation, as [Policy.Automatic] returns it.
func AutomaticMutation() string {
	most := strconv.Itoa(maxAutomaticName)
	return "Object{metadata: Object.metadata{annotations: {'" + OverrideAnnotation + "': '" + automaticPrefix +
		"' + " + "(size(request.userInfo.username) > " + most + " ? request.userInfo.username.substring(0, " + most +
		") : request.userInfo.username)}}}"
}
