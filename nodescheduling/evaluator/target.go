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

// conditionTaints say how a node is, not what it is for: every pod tolerates some of them (N24).
const conditionTaints = "node.kubernetes.io/"

// target is one way in which a request aims at a group.
type target struct {
	reason      Reason
	node        string
	tolerations []corev1.Toleration // for Toleration: those that let the pod in
	why         string              // for OverrideMisused
	err         error               // for NodeUnreadable
}

// targets finds how a request aims at a group: nothing, one way, or for a pod that tolerates and selects two. For one that
// is authorized one way is enough, and the API server is not asked for a node that the cache does not know.
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
		if inside == nil || node.Name < inside.Name { // the same words whatever the order of the nodes
			inside = node
		}
		if used := tolerates(e.placement.spec.Tolerations, node.Spec.Taints); len(used) > 0 && (tolerated.node == "" || node.Name < tolerated.node) {
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

// ofDaemonSet holds for a pod whose controller chose its node itself (F11): its user can do nothing about that.
func (r *Request) ofDaemonSet() bool {
	if r.Pod == nil {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(r.Pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

// members yields the nodes of a group, and maybe others.
func (e *evaluation) members(g *group) iter.Seq[*corev1.Node] {
	if e.cluster.Members != nil {
		return e.cluster.Members(g.name)
	}
	return e.cluster.Nodes.All()
}

// fitsOutside says whether the pod may also go to a node that is not of the group. It is asked only when one of the
// group fits, and looks at nodes only if the pod itself does not say it: most selectors never get there.
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

// contains says that every node which a pod's node selector fits is of the group, whatever nodes there are: the node selector
// gives each label that the group is chosen by, with a value that the group wants.
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

// onlyNames are the nodes that a required affinity leaves, if each of its terms names one; nil if not. Pods of DaemonSets have
// such an affinity.
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

// fits: an affinity that cannot be read fits no node, as for the scheduler.
func fits(required nodeaffinity.RequiredNodeAffinity, node *corev1.Node) bool {
	matches, err := required.Match(node)
	return err == nil && matches
}

// counts says whether a toleration is about more than a node's condition.
func counts(t corev1.Toleration) bool {
	return t.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(t.Key, conditionTaints)
}

// tolerates returns the tolerations that let a pod onto a node in spite of its taints, nil if a taint keeps it off or
// the node has none that would.
func tolerates(tolerations []corev1.Toleration, taints []corev1.Taint) []corev1.Toleration {
	var used []corev1.Toleration
	for i := range taints {
		taint := &taints[i]
		if taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute || strings.HasPrefix(taint.Key, conditionTaints) {
			continue
		}
		tolerated := false
		for j := range tolerations {
			if !toleratesTaint(&tolerations[j], taint) {
				continue
			}
			tolerated = true
			if !slices.ContainsFunc(used, func(u corev1.Toleration) bool { return u.MatchToleration(&tolerations[j]) }) {
				used = append(used, tolerations[j])
			}
		}
		if !tolerated {
			return nil
		}
	}
	return used
}

// assigned is the node that a request names, once it was looked up.
type assigned struct {
	node  *corev1.Node
	asked bool // the API server was asked
	err   error
}

// assignment says how a request that names a node aims at a group.
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

// lookUp finds the node in the cache, and if it is not there and live allows it, asks the API server, once for all groups.
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
