package whatif

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/nearest"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// Explained is an explanation of one object. Its names in JSON are an API (U-29).
type Explained struct {
	APIVersion string `json:"apiVersion"` // APIVersion
	Kind       string `json:"kind"`       // "Explanation"
	About      About  `json:"about"`
	view.Explanation
	// Pool, Claim and Workload say more of such an object.
	Pool     *PoolFacts     `json:"pool,omitempty"`
	Claim    *ClaimFacts    `json:"claim,omitempty"`
	Workload *WorkloadFacts `json:"workload,omitempty"`
	// Ignored is what of a pod without a node counts for nothing (U-42).
	Ignored []string `json:"ignored,omitempty"`
	// Daemons are the pods on a node whose DaemonSet asks for other amounts elsewhere (K-33).
	Daemons []DaemonFacts `json:"daemons,omitempty"`
	// Decides says who decides here, where that is not Joiner.
	Decides *Decides `json:"decides,omitempty"`
	// Tries are the single changes that would place a pod, cheapest first, and Tried how many were tried; where that
	// was asked for.
	Tries []Try `json:"tries,omitempty"`
	Tried int   `json:"tried,omitempty"`
	// NotChecked are kinds that could not be read: something of them may stand in the way.
	NotChecked []string `json:"notChecked,omitempty"`

	all   bool // everything was requested, not only the binding causes
	tried []Try
}

// About names the object that is explained.
type About struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// ExplainPod returns why a pod waits, or where it runs (U-04); with all, also what each pool says. The error says that
// the pod does not exist.
func (w *World) ExplainPod(namespace, name string, all bool) (Explained, error) {
	e := Explained{APIVersion: APIVersion, Kind: "Explanation", About: About{Kind: "Pod", Namespace: namespace,
		Name: name}}
	pod := w.known[namespace+"/"+name]
	if pod == nil {
		return e, fmt.Errorf("there is no pod %s in namespace %s%s", name, namespace, w.like(namespace, name))
	}
	e.Explanation, e.all = w.explain(pod, all), all
	if err := translate.Ignored(pod); err != nil && pod.Spec.NodeName == "" {
		e.Ignored = strings.Split(err.Error(), "\n")
	}
	return e, nil
}

// ExplainNode returns why a node stays, or that it goes (U-04); with all, everything that keeps it. The error says
// that the node does not exist.
func (w *World) ExplainNode(name string, all bool) (Explained, error) {
	e := Explained{APIVersion: APIVersion, Kind: "Explanation", About: About{Kind: "Node", Name: name}, all: all}
	s := w.store.Snapshot()
	var names []string
	for _, node := range s.Nodes {
		if node.Name != name && node.Claim != name {
			names = append(names, node.Name, node.Claim)
			continue
		}
		terms, err := w.terms(s)
		standings := []engine.Standing{engine.Why(s, terms, node)}
		if all {
			standings = engine.WhyAll(s, terms, node)
		}
		e.Explanation = view.Standings(w.remembered(node.Pool, standings), node.Pool)
		if err != nil {
			e.NotChecked = append(e.NotChecked, err.Error())
		}
		e.Daemons = daemonFacts(s, node)
		return e, nil
	}
	return e, fmt.Errorf("there is no node and no NodeClaim %s%s", name, nearest.Ask(name, names))
}

// remembered adds to a node's standings what a controller has recorded on its pool.
func (w *World) remembered(pool string, standings []engine.Standing) []engine.Standing {
	object := w.pool(pool)
	m := view.Memory{}
	m.Paused, m.PauseEnds = w.paused(object)
	if object != nil {
		m.BacksOffUntil = translate.BacksOffUntil(object, w.now)
		m.Held = translate.PoolPauseOf(object).Holds(pool)
	}
	return view.Remembered(pool, standings, m)
}

// pool returns the NodePool of that name, or nil.
func (w *World) pool(name string) *karpenterv1.NodePool {
	for _, o := range w.objects {
		if pool, isPool := o.Object.(*karpenterv1.NodePool); isPool && pool.Name == name {
			return pool
		}
	}
	return nil
}

// terms returns the terms of a controller with the gates of the input and otherwise default flags: the current budgets
// and the default minimum saving.
func (w *World) terms(s *cluster.Snapshot) (engine.Terms, error) {
	terms := engine.Terms{Now: w.now.Unix(), Budgets: map[string][]engine.Budget{},
		MinSavingPercent: engine.DefaultMinSavingPercent, SpotToSpot: w.spotToSpot}
	sizes := engine.Sizes(s)
	var faults []error
	for _, o := range w.objects {
		if pool, isPool := o.Object.(*karpenterv1.NodePool); isPool {
			budgets, err := translate.ActiveBudgets(pool, w.now, sizes[pool.Name])
			terms.Budgets[pool.Name] = budgets
			if err != nil {
				faults = append(faults,
					fmt.Errorf("NodePool %s: a disruption budget cannot be read, and counts as 0: %w",
						pool.Name, err))
			}
		}
	}
	return terms, errors.Join(faults...)
}

// like returns a hint: the namespaces that have a pod of that name, the most likely mistake. Otherwise it names the
// most similar pod of the namespace.
func (w *World) like(namespace, name string) string {
	var found, names []string
	for _, pod := range w.known {
		if pod.Name == name {
			found = append(found, pod.Namespace)
		}
		if pod.Namespace == namespace {
			names = append(names, pod.Name)
		}
	}
	if len(found) == 0 {
		return nearest.Ask(name, names)
	}
	slices.Sort(found)
	return "; there is one in " + strings.Join(found, ", ")
}

func (w *World) explain(pod *corev1.Pod, all bool) view.Explanation {
	inVain := w.store.PreemptsInVain(pod)
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
	case pod.Status.NominatedNodeName != translate.KeptOn(pod) && !inVain:
		return w.chosen(pod)
	}
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "DaemonSet" {
		return view.Stands("it is of DaemonSet " + owner.Name +
			" and runs on its own node or nowhere: no node is launched for it")
	}
	if planned, _ := w.store.Untried(pod); !planned && !translate.Provisionable(pod) && !inVain {
		return view.WaitsFor(cause.NotMarkedUnschedulable, "kube-scheduler has not marked it unschedulable", "", "")
	}
	return w.placeOf(plan.PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}, all)
}

// chosen explains a pod for which kube-scheduler has chosen a node. It may be about to be bound: its volumes and
// devices can take a while.
func (w *World) chosen(pod *corev1.Pod) view.Explanation {
	node := pod.Status.NominatedNodeName
	if w.store.HasVictims(pod) {
		return view.WaitsFor(cause.WaitsForVictims, "kube-scheduler preempts other pods on node "+node+" for it", node,
			"")
	}
	return view.WaitsFor(cause.NodeFits, "kube-scheduler is about to bind it to node "+node, node, "")
}

// placeOf returns what a plan for all waiting pods does with one of them.
func (w *World) placeOf(pod plan.PodRef, all bool) view.Explanation {
	return view.Placed(w.planned(), pod, all, func(name string) bool { return w.nodes[name] })
}

// planned returns the plan for all waiting pods, which is made once.
func (w *World) planned() plan.Plan {
	if w.plan == nil {
		p := engine.Launches(w.store.Snapshot())
		w.plan = &p
	}
	return *w.plan
}

// Clean reports whether nothing is held.
func (e Explained) Clean() bool { return e.State != view.Held }

// Open reports whether no cause was found but a check was left out, so that there may be one (U-19). A pod that runs
// or has ended needs no checks.
func (e Explained) Open() bool {
	return e.Clean() && len(e.NotChecked) > 0 && !(e.About.Kind == "Pod" && e.State == view.Settled)
}
