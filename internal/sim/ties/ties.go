// Package ties decides where kube-scheduler admits pods that are tied to others: required pod affinity and
// anti-affinity, and topology spread with DoNotSchedule. It reads API objects and shares no code with the engine.
// localcluster/oracle/cases compares it with kube-scheduler's own filter plugins. It leaves out matchLabelKeys, which
// the API server merges into the selectors.
package ties

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Cluster is a set of nodes and the pods bound to them. Use [New].
type Cluster struct {
	nodes      []*corev1.Node
	byName     map[string]*corev1.Node
	namespaces map[string]map[string]string
	pods       []*corev1.Pod // at has the node of each
	at         []*corev1.Node
	repelling  int // number of pods with required anti-affinity
}

// New returns a cluster of these nodes without pods. namespaces maps names to labels.
func New(nodes []*corev1.Node, namespaces map[string]map[string]string) *Cluster {
	c := &Cluster{nodes: nodes, byName: map[string]*corev1.Node{}, namespaces: namespaces}
	for _, node := range nodes {
		c.byName[node.Name] = node
	}
	return c
}

// Bind counts a pod on a node. Finished pods and unknown nodes are ignored.
func (c *Cluster) Bind(pod *corev1.Pod, node string) {
	at := c.byName[node]
	if at == nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	c.pods, c.at = append(c.pods, pod), append(c.at, at)
	if len(antiOf(pod)) > 0 {
		c.repelling++
	}
}

// Refusal returns the name of the kube-scheduler plugin that refuses the pod on the node, "" for none.
func (c *Cluster) Refusal(pod *corev1.Pod, node *corev1.Node) string {
	if len(spreadOf(pod)) > 0 && !c.spreads(pod, node) {
		return "PodTopologySpread"
	}
	if c.repels(pod, node) || c.refusedByAnti(pod, node) || !c.finds(pod, node) {
		return "InterPodAffinity"
	}
	return ""
}

func spreadOf(pod *corev1.Pod) []corev1.TopologySpreadConstraint {
	var list []corev1.TopologySpreadConstraint
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			list = append(list, c)
		}
	}
	return list
}

func affinityOf(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func antiOf(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// chooses reports whether a term of owner selects the other pod.
func (c *Cluster) chooses(owner *corev1.Pod, term corev1.PodAffinityTerm, other *corev1.Pod) bool {
	in := slices.Contains(term.Namespaces, other.Namespace)
	if len(term.Namespaces) == 0 && term.NamespaceSelector == nil {
		in = other.Namespace == owner.Namespace
	}
	if selector, err := metav1.LabelSelectorAsSelector(term.NamespaceSelector); err == nil &&
		term.NamespaceSelector != nil {
		in = in || selector.Matches(labels.Set(c.namespaces[other.Namespace]))
	}
	return in && matches(term.LabelSelector, other)
}

func matches(by *metav1.LabelSelector, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(by)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

// everybody reports whether a selector is {}. A spread constraint with it counts no pods.
func everybody(by *metav1.LabelSelector) bool {
	return by != nil && len(by.MatchLabels)+len(by.MatchExpressions) == 0
}

func together(key string, a, b *corev1.Node) bool {
	x, has := a.Labels[key]
	y, too := b.Labels[key]
	return has && too && x == y
}

// repels reports whether the anti-affinity of a bound pod keeps the pod off the node.
func (c *Cluster) repels(pod *corev1.Pod, node *corev1.Node) bool {
	if c.repelling == 0 {
		return false
	}
	for i, other := range c.pods {
		for _, term := range antiOf(other) {
			if together(term.TopologyKey, node, c.at[i]) && c.chooses(other, term, pod) {
				return true
			}
		}
	}
	return false
}

// refusedByAnti reports whether the pod's own anti-affinity keeps it off the node.
func (c *Cluster) refusedByAnti(pod *corev1.Pod, node *corev1.Node) bool {
	for _, term := range antiOf(pod) {
		for i, other := range c.pods {
			if together(term.TopologyKey, node, c.at[i]) && c.chooses(pod, term, other) {
				return true
			}
		}
	}
	return false
}

// finds reports whether each term of the pod's affinity has, in the node's domain, a pod that all terms select. If no
// domain has one, a pod that its own terms select may be the first.
func (c *Cluster) finds(pod *corev1.Pod, node *corev1.Node) bool {
	terms := affinityOf(pod)
	if len(terms) == 0 {
		return true
	}
	anywhere, near := false, make([]bool, len(terms))
	for i, other := range c.pods {
		if !c.choosesAll(pod, terms, other) {
			continue
		}
		for k, term := range terms {
			_, has := c.at[i].Labels[term.TopologyKey]
			anywhere = anywhere || has
			near[k] = near[k] || together(term.TopologyKey, node, c.at[i])
		}
	}
	for k, term := range terms {
		if _, has := node.Labels[term.TopologyKey]; !has || !near[k] && (anywhere || !c.choosesAll(pod, terms, pod)) {
			return false
		}
	}
	return true
}

func (c *Cluster) choosesAll(owner *corev1.Pod, terms []corev1.PodAffinityTerm, other *corev1.Pod) bool {
	return !slices.ContainsFunc(terms, func(term corev1.PodAffinityTerm) bool {
		return !c.chooses(owner, term, other)
	})
}

// spreads reports whether all spread constraints of the pod allow the node.
func (c *Cluster) spreads(pod *corev1.Pod, node *corev1.Node) bool {
	all := spreadOf(pod)
	for _, constraint := range all {
		value, has := node.Labels[constraint.TopologyKey]
		if !has {
			return false
		}
		counts := c.counted(pod, all, constraint)
		lowest := 0
		if constraint.MinDomains == nil || len(counts) >= int(*constraint.MinDomains) {
			lowest = least(counts)
		}
		self := 0
		if matches(constraint.LabelSelector, pod) {
			self = 1
		}
		if counts[value]+self-lowest > int(constraint.MaxSkew) {
			return false
		}
	}
	return true
}

// counted returns, for each domain, the number of pods that a constraint counts.
func (c *Cluster) counted(pod *corev1.Pod, all []corev1.TopologySpreadConstraint,
	constraint corev1.TopologySpreadConstraint) map[string]int {
	counts, eligible := map[string]int{}, map[*corev1.Node]bool{}
	for _, node := range c.nodes {
		if hasKeys(node, all) && included(pod, node, constraint) {
			eligible[node] = true
			counts[node.Labels[constraint.TopologyKey]] += 0
		}
	}
	for i, other := range c.pods {
		if eligible[c.at[i]] && other.Namespace == pod.Namespace && other.DeletionTimestamp == nil &&
			!everybody(constraint.LabelSelector) && matches(constraint.LabelSelector, other) {
			counts[c.at[i].Labels[constraint.TopologyKey]]++
		}
	}
	return counts
}

func hasKeys(node *corev1.Node, all []corev1.TopologySpreadConstraint) bool {
	return !slices.ContainsFunc(all, func(c corev1.TopologySpreadConstraint) bool {
		_, has := node.Labels[c.TopologyKey]
		return !has
	})
}

// included applies the node inclusion policies of a constraint.
func included(pod *corev1.Pod, node *corev1.Node, c corev1.TopologySpreadConstraint) bool {
	if c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor {
		if fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !fits {
			return false
		}
	}
	return c.NodeTaintsPolicy == nil || *c.NodeTaintsPolicy != corev1.NodeInclusionPolicyHonor || Tolerates(pod, node)
}

// Tolerates reports whether the pod tolerates all taints of the node that keep pods away.
func Tolerates(pod *corev1.Pod, node *corev1.Node) bool {
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect != corev1.TaintEffectPreferNoSchedule &&
			!slices.ContainsFunc(pod.Spec.Tolerations,
				func(t corev1.Toleration) bool { return tolerates(t, taint) }) {
			return false
		}
	}
	return true
}

func tolerates(t corev1.Toleration, taint *corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	return t.Operator == corev1.TolerationOpExists || t.Key != "" && t.Value == taint.Value
}

func least(counts map[string]int) int {
	lowest, first := 0, true
	for _, n := range counts {
		if first || n < lowest {
			lowest, first = n, false
		}
	}
	return lowest
}
