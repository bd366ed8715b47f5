package evaluator

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
)

// Members says which nodes belong to a group: those with its labels, and those with one of its taints. Taints
// count because a kubelet may register its node with the taint, and another client may add the labels later.
type Members struct {
	selector labels.Selector
	taints   []v1alpha1.GroupTaint
}

// MembersOf returns the members of a group of the configuration, or an error if its selector is invalid.
func MembersOf(group *v1alpha1.SchedulingPolicyGroup) (Members, error) {
	selector, err := metav1.LabelSelectorAsSelector(&group.LabelSelector)
	return Members{selector: selector, taints: group.Taints}, err
}

// Tainted reports whether a node has a permanent taint that keeps pods off. On a member without such a taint, an
// unauthorized pod is refused only when it is bound. By then, the scheduler may have evicted other pods for it.
func Tainted(node *corev1.Node) bool {
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if (taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute) &&
			!strings.HasPrefix(taint.Key, conditionTaints) {
			return true
		}
	}
	return false
}

// Has reports whether a node belongs to the group.
func (m Members) Has(node *corev1.Node) bool {
	if m.selector.Matches(labels.Set(node.Labels)) {
		return true
	}
	for i := range node.Spec.Taints {
		for j := range m.taints {
			if node.Spec.Taints[i].Key == m.taints[j].Key && node.Spec.Taints[i].Effect == m.taints[j].Effect {
				return true
			}
		}
	}
	return false
}
