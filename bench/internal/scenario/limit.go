package scenario

import (
	corev1 "k8s.io/api/core/v1"
)

// limited is one batch of pods that need a node each, in a pool that may have three (L-11): how many NodeClaims does
// each side ask for?
func limited(s source, n int) (Scenario, error) {
	var pods []*corev1.Pod
	for i := range n {
		p := podSpec{name: numbered("apart", i), resourceRev: i, labels: map[string]string{"app": "apart"}}
		s.size(&p)
		p.affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: near(p.labels, corev1.LabelHostname),
		}}
		pods = append(pods, p.pod())
	}
	types, err := linear()
	return Scenario{Catalog: types, Pending: pods, NodeLimit: 3}, err
}
