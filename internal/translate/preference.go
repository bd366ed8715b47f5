package translate

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// preferences converts what the pod only prefers (P-05): spread constraints with ScheduleAnyway, and preferred terms
// of node affinity and of pod affinity and anti-affinity. A term that cannot be understood is left out: it could not
// keep the pod from any place.
func preferences(pod *corev1.Pod) (soft []cluster.Spread, wishes []cluster.Wish) {
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.ScheduleAnyway {
			if converted, err := spread(pod, c); err == nil {
				soft = append(soft, converted)
			}
		}
	}
	if pod.Spec.Affinity == nil {
		return soft, nil
	}
	if from := pod.Spec.Affinity.NodeAffinity; from != nil {
		for _, term := range from.PreferredDuringSchedulingIgnoredDuringExecution {
			converted, err := nodeTerm(term.Preference)
			if err == nil && converted.Labels.Len() > 0 {
				wishes = append(wishes, cluster.Wish{Weight: term.Weight, Labels: converted.Labels})
			}
		}
	}
	if from := pod.Spec.Affinity.PodAffinity; from != nil {
		wishes = append(wishes, podWishes(pod, from.PreferredDuringSchedulingIgnoredDuringExecution, false)...)
	}
	if from := pod.Spec.Affinity.PodAntiAffinity; from != nil {
		wishes = append(wishes, podWishes(pod, from.PreferredDuringSchedulingIgnoredDuringExecution, true)...)
	}
	return soft, wishes
}

func podWishes(pod *corev1.Pod, from []corev1.WeightedPodAffinityTerm, apart bool) []cluster.Wish {
	var wishes []cluster.Wish
	for _, term := range from {
		converted, err := affinityTerms(pod, "preferred", []corev1.PodAffinityTerm{term.PodAffinityTerm})
		if err == nil && len(converted) == 1 {
			wishes = append(wishes, cluster.Wish{Weight: term.Weight, Labels: requirement.NewSet(), Term: converted[0],
				Apart: apart})
		}
	}
	return wishes
}
