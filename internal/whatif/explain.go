package whatif

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// Explained is an explanation of one object. Its names in JSON are an API (U-29).
type Explained struct {
	APIVersion string `json:"apiVersion"` // APIVersion
	Kind       string `json:"kind"`       // "Explanation"
	About      About  `json:"about"`
	view.Explanation
	// NotChecked are kinds that could not be read: something of them may stand in the way.
	NotChecked []string `json:"notChecked,omitempty"`
}

// About names the object that is explained.
type About struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// ExplainPod says why a pod waits, or where it runs (U-04). The error says that there is no such pod.
func (w *World) ExplainPod(namespace, name string) (Explained, error) {
	e := Explained{APIVersion: APIVersion, Kind: "Explanation", About: About{Kind: "Pod", Namespace: namespace,
		Name: name}}
	pod := w.known[namespace+"/"+name]
	if pod == nil {
		return e, fmt.Errorf("there is no pod %s in namespace %s%s", name, namespace, w.like(namespace, name))
	}
	e.Explanation = w.explain(pod)
	return e, nil
}

// ExplainNode says why a node stays, or that it goes (U-04). The error says that there is no such node.
func (w *World) ExplainNode(name string) (Explained, error) {
	e := Explained{APIVersion: APIVersion, Kind: "Explanation", About: About{Kind: "Node", Name: name}}
	s := w.store.Snapshot()
	for _, node := range s.Nodes {
		if node.Name == name || node.Claim == name {
			terms, err := w.terms(s)
			e.Explanation = view.Standing(engine.Why(s, terms, node), node.Pool)
			if err != nil {
				e.NotChecked = append(e.NotChecked, err.Error())
			}
			return e, nil
		}
	}
	var names []string
	for _, node := range s.Nodes {
		names = append(names, node.Name, node.Claim)
	}
	return e, fmt.Errorf("there is no node and no NodeClaim %s%s", name, meant(name, names))
}

// terms are those of a controller with its default flags: budgets as they are now, and the least saving.
func (w *World) terms(s *cluster.Snapshot) (engine.Terms, error) {
	terms := engine.Terms{Now: w.now.Unix(), Budgets: map[string][]engine.Budget{},
		MinSavingPercent: engine.DefaultMinSavingPercent}
	sizes := engine.Sizes(s)
	var faults []error
	for _, o := range w.objects {
		if pool, isPool := o.Object.(*karpenterv1.NodePool); isPool {
			budgets, err := translate.ActiveBudgets(pool, w.now, sizes[pool.Name])
			terms.Budgets[pool.Name] = budgets
			if err != nil {
				faults = append(faults, fmt.Errorf("NodePool %s: a disruption budget cannot be read, and counts as 0: %w",
					pool.Name, err))
			}
		}
	}
	return terms, errors.Join(faults...)
}

// like names pods of that name in other namespaces, the nearest mistake, or else that of the namespace with the nearest
// name.
func (w *World) like(namespace, name string) string {
	var found, names []string
	for _, pod := range w.known {
		if pod.Namespace == namespace {
			names = append(names, pod.Name)
		}
		if pod.Name == name {
			found = append(found, pod.Namespace)
		}
	}
	if len(found) == 0 {
		return meant(name, names)
	}
	slices.Sort(found)
	return "; there is one in " + strings.Join(found, ", ")
}

func (w *World) explain(pod *corev1.Pod) view.Explanation {
	return w.explainWith(pod, func() plan.Plan { return engine.Launches(w.store.Snapshot()) })
}

// explainWith is explain with a plan for all pods that wait, which is asked for when it is needed.
func (w *World) explainWith(pod *corev1.Pod, planned func() plan.Plan) view.Explanation {
	switch {
	case translate.Finished(pod):
		return view.Stands("it has ended: " + string(pod.Status.Phase))
	case pod.DeletionTimestamp != nil:
		return view.Stands("it is being deleted")
	case pod.Spec.NodeName != "":
		return view.Stands("it is bound to node " + pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) > 0:
		gate := pod.Spec.SchedulingGates[0].Name
		return view.WaitsFor(cause.SchedulingGated, "it has the scheduling gate "+gate, gate, "")
	case pod.Status.NominatedNodeName != "":
		node := pod.Status.NominatedNodeName
		return view.WaitsFor(cause.WaitsForVictims, "kube-scheduler ends other pods on node "+node+" for it", node, "")
	}
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "DaemonSet" {
		return view.Stands("it is of DaemonSet " + owner.Name +
			" and runs on its own node or nowhere: no node is launched for it")
	}
	if !translate.Provisionable(pod) {
		return view.WaitsFor(cause.NotMarkedUnschedulable, "kube-scheduler has not called it unschedulable", "", "")
	}
	return w.placeOf(plan.PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}, planned())
}

// placeOf says what a plan for all waiting pods does with one of them.
func (w *World) placeOf(pod plan.PodRef, p plan.Plan) view.Explanation {
	for _, n := range p.Nominations {
		if n.Pod.UID != pod.UID {
			continue
		}
		if w.nodes[n.Node] {
			return view.WaitsFor(cause.NodeFits, "it should run on node "+n.Node+", which has room", n.Node, "")
		}
		return view.WaitsFor(cause.NodeOnTheWay, "it should run on the node of NodeClaim "+n.Node+", which is on its way",
			n.Node, "")
	}
	for _, l := range p.Launches {
		if slices.ContainsFunc(l.Pods, func(other plan.PodRef) bool { return other.UID == pod.UID }) {
			return view.WaitsFor(cause.LaunchPlanned, fmt.Sprintf("a node of pool %s would be launched for it: %s in %s", l.Pool,
				some(l.Types, typesShown), zones(l.Zones)), "", l.Pool)
		}
	}
	for _, u := range p.Unplaced {
		if u.Pod.UID == pod.UID {
			return view.NotPlaced(u)
		}
	}
	return view.WaitsFor(cause.NotMarkedUnschedulable, "no plan is made for it", "", "")
}

// Clean reports whether nothing is held.
func (e Explained) Clean() bool { return e.State != view.Held }

// WriteJSON writes the explanation for programs.
func (e Explained) WriteJSON(out io.Writer) error { return writeJSON(out, e) }

// WriteText writes the explanation for people. Its form may change.
func (e Explained) WriteText(out io.Writer) error {
	var b strings.Builder
	name, verb := e.About.Namespace+"/"+e.About.Name, "waits"
	if e.About.Kind == "Node" {
		name, verb = e.About.Name, "stays"
	}
	switch {
	case e.Cause == nil:
		fmt.Fprintf(&b, "%s: %s\n", name, e.Text)
	case e.Wanted != "":
		fmt.Fprintf(&b, "%s %s, although %s: %s\n", name, verb, e.Wanted, e.Cause.Code)
		writeCause(&b, *e.Cause, e.Pools)
	default:
		fmt.Fprintf(&b, "%s %s: %s\n", name, verb, e.Cause.Code)
		writeCause(&b, *e.Cause, e.Pools)
	}
	for _, kind := range e.NotChecked {
		fmt.Fprintf(&b, "  not checked: %s\n", kind)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
