package evaluator

import (
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// conditionTaints is the prefix of taints that say how a node is, not what it is for. Every pod tolerates some of them
// (N24).
const conditionTaints = "node.kubernetes.io/"

// target is one way in which a request aims at a group.
type target struct {
	reason      Reason
	node        string
	tolerations []corev1.Toleration // for Toleration: those that let the pod in
	why         string              // for OverrideMisused
	err         error               // for NodeUnreadable
}

// targets returns the ways in which a request aims at a group: none, one, or two for a pod that both tolerates and
// selects. For an authorized request, one is enough, and targets does not ask the API server for a node that the cache
// does not know.
func (e *evaluation) targets(g *group, authorized bool) []target {
	if e.placement.node != "" {
		return e.assignment(g, !authorized && !e.workload())
	}
	if !e.placement.selects && !e.placement.tolerates {
		return nil
	}
	required := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *e.placement.spec})
	var inside *corev1.Node
	var tolerated target
	for node := range e.members(g) {
		if !g.members.Has(node) || !fits(required, node) {
			continue
		}
		if inside == nil || node.Name < inside.Name { // so that the text does not depend on the order
			inside = node
		}
		if used := tolerates(e.placement.spec.Tolerations, node.Spec.Taints); len(used) > 0 &&
			(tolerated.node == "" || node.Name < tolerated.node) {
			tolerated = target{reason: Toleration, node: node.Name, tolerations: used}
		}
	}
	var found []target
	if tolerated.node != "" {
		found = append(found, tolerated)
	}
	if len(found) > 0 && (authorized || e.request.ofDaemonSet()) {
		return found
	}
	if inside != nil && e.placement.selects && !e.fitsOutside(g, required) {
		found = append(found, target{reason: Selector, node: inside.Name})
	}
	return found
}

// ofDaemonSet reports whether the pod's controller is a DaemonSet, which chooses the node itself (F11). Users cannot
// change that.
func (r *Request) ofDaemonSet() bool {
	if r.Pod == nil {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(r.Pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

// members yields the nodes of a group, and possibly others.
func (e *evaluation) members(g *group) iter.Seq[*corev1.Node] {
	if e.cluster.Members != nil {
		return e.cluster.Members(g.name)
	}
	return e.cluster.Nodes.All()
}

// fitsOutside reports whether the pod may also go to a node outside of the group. It is called only if a node of the
// group fits. It looks at nodes only if the pod alone does not decide; most selectors do.
func (e *evaluation) fitsOutside(g *group, required nodeaffinity.RequiredNodeAffinity) bool {
	if g.contains(e.placement.spec) {
		return false
	}
	if names := onlyNames(e.placement.spec); names != nil {
		return slices.ContainsFunc(names, func(name string) bool {
			node, found := e.cluster.Nodes.Get(name)
			return found && !g.members.Has(node) && fits(required, node)
		})
	}
	for node := range e.cluster.Nodes.All() {
		if !g.members.Has(node) && fits(required, node) {
			return true
		}
	}
	return false
}

// contains reports whether every node that matches the pod's node selector must be of the group, whatever nodes exist:
// the node selector has each label of the group's selector, with a value that the group accepts.
func (g *group) contains(spec *corev1.PodSpec) bool {
	wanted, selectable := g.members.selector.Requirements()
	if !selectable || len(wanted) == 0 {
		return false
	}
	given := labels.Set(spec.NodeSelector)
	for i := range wanted {
		// A label that the pod does not name may have any value.
		if !given.Has(wanted[i].Key()) || !wanted[i].Matches(given) {
			return false
		}
	}
	return true
}

// onlyNames returns the names of the nodes that a required affinity allows, if each of its terms names nodes;
// otherwise nil. Pods of DaemonSets have such an affinity.
func onlyNames(spec *corev1.PodSpec) []string {
	affinity := requiredAffinity(spec)
	if affinity == nil {
		return nil
	}
	var names []string
	for _, term := range affinity.NodeSelectorTerms {
		at := slices.IndexFunc(term.MatchFields, func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == metav1.ObjectNameField && r.Operator == corev1.NodeSelectorOpIn
		})
		if at < 0 {
			return nil
		}
		names = append(names, term.MatchFields[at].Values...)
	}
	return names
}

// fits reports whether a node matches. An invalid affinity matches no node, as in the scheduler.
func fits(required nodeaffinity.RequiredNodeAffinity, node *corev1.Node) bool {
	matches, err := required.Match(node)
	return err == nil && matches
}

// counts reports whether a toleration is about more than a node's condition.
func counts(t corev1.Toleration) bool {
	return t.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(t.Key, conditionTaints)
}

// tolerates returns the tolerations that let a pod onto a node in spite of its taints. It returns nil if a taint keeps
// the pod off, or no taint would.
func tolerates(tolerations []corev1.Toleration, taints []corev1.Taint) []corev1.Toleration {
	var used []corev1.Toleration
	for i := range taints {
		taint := &taints[i]
		if taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute ||
			strings.HasPrefix(taint.Key, conditionTaints) {
			continue
		}
		tolerated := false
		for j := range tolerations {
			if !toleratesTaint(&tolerations[j], taint) {
				continue
			}
			tolerated = true
			if !slices.ContainsFunc(used, func(u corev1.Toleration) bool {
				return u.MatchToleration(&tolerations[j])
			}) {
				used = append(used, tolerations[j])
			}
		}
		if !tolerated {
			return nil
		}
	}
	return used
}

// assigned is the node that a request names, after the lookup.
type assigned struct {
	node  *corev1.Node
	asked bool // the API server was asked
	err   error
}

// assignment returns how a request that names a node aims at a group. live allows it to ask the API server.
func (e *evaluation) assignment(g *group, live bool) []target {
	e.lookUp(live)
	t := target{reason: NodeName, node: e.placement.node}
	if e.subject == binding {
		t.reason = Binding
	}
	switch {
	case e.assigned.node != nil:
		if !g.members.Has(e.assigned.node) {
			return nil
		}
	case !live:
		return nil
	case e.assigned.err != nil:
		t.reason, t.err = NodeUnreadable, e.assigned.err
	default:
		t.reason = UnknownNode
	}
	return []target{t}
}

// lookUp looks for the node in the cache. If it is not there and live is set, lookUp asks the API server, once for all
// groups.
func (e *evaluation) lookUp(live bool) {
	if e.assigned.node == nil {
		e.assigned.node, _ = e.cluster.Nodes.Get(e.placement.node)
	}
	if e.assigned.node != nil || !live || e.assigned.asked || e.cluster.LiveNode == nil {
		return
	}
	e.assigned.asked = true
	e.assigned.node, e.assigned.err = e.cluster.LiveNode(e.placement.node)
}
