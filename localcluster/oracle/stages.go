package oracle

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// stages splits a plan in two if some pods wait while others run on nodes that go. The waiting pods are bound first,
// beside the running ones, which kube-scheduler counts as long as they run. Then these leave, all at once, and are
// bound in the second stage. A node with only DaemonSet pods and pods that end anyway will soon be gone; it counts in
// neither.
func stages(before Cluster, p Plan) (first, second Plan, then Cluster, staged bool) {
	standing := map[string]bool{}
	for _, pod := range before.Pods {
		if slices.Contains(p.Gone, pod.Spec.NodeName) && hasToMove(pod) {
			standing[pod.Spec.NodeName] = true
		}
	}
	first = Plan{Launched: p.Launched, Order: p.Order, Placed: map[types.NamespacedName]string{}}
	second = Plan{Launched: p.Launched, Order: p.Order, Gone: p.Gone, Placed: maps.Clone(p.Placed)}
	then = before
	then.Pods = slices.Clone(before.Pods)
	for i, pod := range before.Pods {
		name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
		target, planned := p.Placed[name]
		if slices.Contains(p.Gone, target) {
			return first, second, before, false // an invalid plan, which is reported
		}
		if planned && pod.Spec.NodeName == "" {
			first.Placed[name] = target
			delete(second.Placed, name)
			bound := pod.DeepCopy()
			bound.Spec.NodeName = target
			then.Pods[i] = bound
		}
	}
	for _, name := range p.Gone {
		if !standing[name] {
			first.Gone = append(first.Gone, name)
		}
	}
	return first, second, then, len(standing) > 0 && len(first.Placed) > 0
}

// hasToMove reports whether a pod keeps a node that goes: it runs, and was not created by a DaemonSet or kubelet.
func hasToMove(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded ||
		pod.Status.Phase == corev1.PodFailed {
		return false
	}
	for _, owner := range pod.OwnerReferences {
		if owner.Kind == "DaemonSet" || owner.Kind == "Node" {
			return false
		}
	}
	return pod.Annotations[corev1.MirrorPodAnnotationKey] == ""
}
