package bound

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file derives, from constraints between pods, how many of them a node can have in any valid plan. In a valid
// plan all nodes exist from the start, and the pods can be bound to them in some order that kube-scheduler's filters
// allow. That is what the oracle checks.
//
//   - Anti-affinity over hostnames whose selector matches the pods that have it: a node has at most one of them, in
//     any order.
//   - Spread over hostnames with maxSkew m whose selector matches the pods that have it. Consider the last of them
//     that is bound to a node, which then has c matching pods. kube-scheduler has seen c + 1 - min <= m, where min is
//     the least count of any node. Let T be the number of all pods that the selector matches. Counts only grow, and
//     over N nodes they add up to T - 1 at most, so min <= floor((T-1)/N). All nodes count, since pods with this
//     constraint have no node selection. So a node has at most m + floor((T-1)/N) pods of the group. N is unknown, but
//     no plan has fewer nodes than the largest apart group has pods. If N is greater, the limit is too high, but still
//     valid.
//   - Spread over hostnames whose selector does not match its own pods, as for most pods of diverse-N. It limits
//     neither how many of them a node has, nor how many matching pods come later. So it is ignored.
//   - Zones: pod affinity puts a group into one zone, and spread evens zones out. Each zone can have any number of
//     nodes of every type. Where prices are the same in all zones, as in diverse-N, this costs only the room that is
//     left over on one node for each group and zone. Elsewhere every node counts with the price of its cheapest zone.
//     Both constraints are ignored, which keeps the bound valid.

// group is a set of pods, and the most of them that a node can have.
type group struct {
	name string
	most int64
	has  func(*corev1.Pod) bool
	pods int
}

// apart returns the groups of pods whose anti-affinity keeps them on separate nodes.
func apart(pods []*corev1.Pod) []group {
	found := map[string]group{}
	for _, pod := range pods {
		for _, name := range refusals(pod) {
			g, known := found[name]
			if !known {
				g = group{name: name, most: 1, has: func(p *corev1.Pod) bool {
					return slices.Contains(refusals(p), name)
				}}
			}
			g.pods++
			found[name] = g
		}
	}
	return sorted(found)
}

func sorted(groups map[string]group) []group {
	return slices.SortedFunc(maps.Values(groups), func(a, b group) int { return strings.Compare(a.name, b.name) })
}

// refusals returns the names of the apart groups that a pod belongs to.
func refusals(pod *corev1.Pod) []string {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	var names []string
	for _, term := range pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		simple := len(term.Namespaces)+len(term.MatchLabelKeys)+len(term.MismatchLabelKeys) == 0 &&
			term.NamespaceSelector == nil
		if name := fmt.Sprintf("apart:%s:%v", pod.Namespace, labelsOf(term.LabelSelector)); simple &&
			term.TopologyKey == corev1.LabelHostname && matches(term.LabelSelector, pod) &&
			!slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// spread returns the groups of pods that spread over hostnames and match their own selector. nodes is a lower bound on
// the nodes of any plan.
func spread(pods []*corev1.Pod, nodes int) []group {
	found := map[string]group{}
	for _, pod := range pods {
		for name, c := range evened(pod) {
			g, known := found[name]
			if !known {
				total := 0
				for _, other := range pods {
					if other.Namespace == pod.Namespace && matches(c.LabelSelector, other) {
						total++
					}
				}
				g = group{name: name, most: int64(c.MaxSkew) + int64((total-1)/max(nodes, 1)),
					has: func(p *corev1.Pod) bool {
						_, member := evened(p)[name]
						return member
					}}
			}
			g.pods++
			found[name] = g
		}
	}
	return sorted(found)
}

// evened returns the spread constraints of a pod that limit its group on a node, by the name of the group.
func evened(pod *corev1.Pod) map[string]corev1.TopologySpreadConstraint {
	if len(pod.Spec.NodeSelector) > 0 || pod.Spec.Affinity != nil && pod.Spec.Affinity.NodeAffinity != nil {
		return nil // not all nodes count
	}
	var list map[string]corev1.TopologySpreadConstraint
	for _, c := range pod.Spec.TopologySpreadConstraints {
		simple := len(c.MatchLabelKeys) == 0 &&
			(c.NodeTaintsPolicy == nil || *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyIgnore)
		if simple && c.TopologyKey == corev1.LabelHostname && c.WhenUnsatisfiable == corev1.DoNotSchedule &&
			matches(c.LabelSelector, pod) {
			if list == nil {
				list = map[string]corev1.TopologySpreadConstraint{}
			}
			list[fmt.Sprintf("spread:%s:%v:%d", pod.Namespace, labelsOf(c.LabelSelector), c.MaxSkew)] = c
		}
	}
	return list
}

// matches reports whether a selector matches a pod. It understands labels only: with expressions it returns false.
func matches(s *metav1.LabelSelector, pod *corev1.Pod) bool {
	if s == nil || len(s.MatchLabels) == 0 || len(s.MatchExpressions) > 0 {
		return false
	}
	for key, value := range s.MatchLabels {
		if pod.Labels[key] != value {
			return false
		}
	}
	return true
}

func labelsOf(s *metav1.LabelSelector) map[string]string {
	if s == nil {
		return nil
	}
	return s.MatchLabels
}

// nodesFor returns a lower bound on the nodes of any plan: one for each pod of the largest apart group.
func nodesFor(groups []group) int {
	nodes := 1
	for _, g := range groups {
		nodes = max(nodes, g.pods)
	}
	return nodes
}
