package whatif

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/nearest"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// Picture returns the cluster as the engine sees it, and the terms of planning (U-06). The error says which budgets
// cannot be read, and count as 0.
func (w *World) Picture() (*cluster.Snapshot, engine.Terms, error) {
	s := w.store.Snapshot()
	terms, err := w.terms(s)
	return s, terms, err
}

// ExplainIn returns the engine's explanation of a pod or node in a snapshot without objects. what is
// pod/NAMESPACE/NAME or node/NAME.
func ExplainIn(s *cluster.Snapshot, terms engine.Terms, what string) (Explained, error) {
	parts := strings.Split(what, "/")
	switch {
	case len(parts) == 3 && parts[0] == "pod":
		return explainPodIn(s, About{Kind: "Pod", Namespace: parts[1], Name: parts[2]})
	case len(parts) == 2 && parts[0] == "node":
		return explainNodeIn(s, terms, parts[1])
	}
	return Explained{}, fmt.Errorf("%q is explained; want pod/NAMESPACE/NAME or node/NAME", what)
}

func explained(about About) Explained {
	return Explained{APIVersion: APIVersion, Kind: "Explanation", About: about}
}

func explainPodIn(s *cluster.Snapshot, about About) (Explained, error) {
	e := explained(about)
	var names []string
	is := func(pod *cluster.Pod) bool {
		if pod.Namespace == about.Namespace {
			names = append(names, pod.Name)
		}
		return pod.Namespace == about.Namespace && pod.Name == about.Name
	}
	for _, pod := range s.Pending {
		if is(pod) {
			onNode := func(name string) bool {
				return slices.ContainsFunc(s.Nodes, func(n *cluster.Node) bool { return n.Name == name })
			}
			ref := plan.PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
			e.Explanation = view.Placed(engine.Launches(s), ref, false, onNode)
			return e, nil
		}
	}
	for _, node := range slices.Concat(s.Nodes, s.Leaving, s.Closed) {
		if slices.ContainsFunc(node.Pods, is) {
			e.Explanation = view.Stands("it is bound to node " + node.ID())
			return e, nil
		}
	}
	return e, fmt.Errorf("there is no pod %s in namespace %s%s", about.Name, about.Namespace,
		nearest.Ask(about.Name, names))
}

func explainNodeIn(s *cluster.Snapshot, terms engine.Terms, name string) (Explained, error) {
	e := explained(About{Kind: "Node", Name: name})
	var names []string
	for _, node := range s.Nodes {
		if node.Name == name || node.Claim == name {
			e.Explanation = view.Standings([]engine.Standing{engine.Why(s, terms, node)}, node.Pool)
			return e, nil
		}
		names = append(names, node.Name, node.Claim)
	}
	return e, fmt.Errorf("there is no node and no NodeClaim %s%s", name, nearest.Ask(name, names))
}
