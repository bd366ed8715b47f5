package bound

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file says what constraints between pods mean for a node of every valid plan. A plan is valid if all its nodes
// stand there and its pods can be bound to them in some order, as kube-scheduler's filters allow; that is what the
// oracle checks.
//
//   - Anti-affinity over hostnames that chooses the pods that have it: a node has one of them at most, whatever the
//     order.
//   - Spread over hostnames with maxSkew m that counts the pods that have it (the selector matches their own labels).
//     When the last of them is bound to a node, c matching pods being there already, kube-scheduler has seen c + 1 -
//     min <= m. min is the least count of any node. Counts only grow, and over N nodes sum to T - 1 at most, T being
//     all pods that the selector matches, so min <= floor((T-1)/N). All nodes count, since pods with this constraint
//     have no node selection. So a node has m + floor((T-1)/N) pods of the group at most. N is unknown, but no plan
//     has fewer nodes than the largest group that keeps apart has pods. Fewer nodes would only raise the bound on a
//     node's pods.
//   - Spread over hostnames that does not count its own pods (the selector of most pods of diverse-N) says nothing
//     about how many of them a node has, nor how many matching ones come after them. Nothing is taken from it.
//   - Zones: pod affinity puts a group into one zone, and spread evens zones out. Each zone may have as many nodes of
//     every type as wanted. Where prices are the same in all zones, as in diverse-N, it costs nothing but what is left
//     over on one node for each group and zone. Elsewhere every node is taken to have the price of its cheapest zone.
//     Nothing is taken from either, which keeps the bound valid.

// group is pods of which a node has so many at most.
type group struct {
	name string
	most int64
	has  func(*corev1.Pod) bool
	pods int
}

// apart returns the groups of pods that refuse each other on a node.
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

// refusals names the groups of pods that refuse each other and that a pod belongs to.
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

// spread returns the groups of pods that spread over hostnames and count themselves, on at least so many nodes.
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

// evened returns the constraints of a pod that bound how many pods like it a node has, by the name of their group.
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

// matches reports whether a selector by labels alone surely chooses a pod.
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

// nodesFor returns a number of nodes than which no plan has fewer: one for each pod of the largest group that keeps
// apart.
func nodesFor(groups []group) int {
	nodes := 1
	for _, g := range groups {
		nodes = max(nodes, g.pods)
	}
	return nodes
}
