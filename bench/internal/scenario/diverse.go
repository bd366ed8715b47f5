package scenario

import (
	corev1 "k8s.io/api/core/v1"
)

// The sizes and label values of B-01, which are those of the peer's own scheduling benchmark.
func diverseCPUs() []int64     { return []int64{100, 250, 500, 1000, 1500} }
func diverseMemories() []int64 { return []int64{100, 256, 512, 1024, 2048, 4096} }
func diverseValues() []string  { return []string{"a", "b", "c", "d", "e", "f", "g"} }
func (s source) value() string { return pick(s, diverseValues()) }
func (s source) size(p *podSpec) {
	p.milliCores, p.mebibytes = pick(s, diverseCPUs()), pick(s, diverseMemories())
}

// diverse is B-01: a fifth each of plain pods, zone spread, hostname spread, zone self-affinity and hostname
// anti-affinity, the remainder plain. As in the peer's benchmark, the label that a spread constraint selects is drawn
// independently of the pod's own, and all pods with anti-affinity avoid each other.
func diverse(s source, n int) (Scenario, error) {
	fifth := n / 5
	var pods []*corev1.Pod
	add := func(kind string, count int, finish func(*podSpec)) {
		for i := range count {
			p := podSpec{name: numbered(kind, i), resourceRev: len(pods)}
			s.size(&p)
			finish(&p)
			pods = append(pods, p.pod())
		}
	}
	labelled := func(p *podSpec) { p.labels = map[string]string{"value": s.value()} }
	spread := func(key string) func(*podSpec) {
		return func(p *podSpec) {
			labelled(p)
			p.spread = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: selector(map[string]string{"value": s.value()}),
			}}
		}
	}
	add("plain", n-4*fifth, labelled)
	add("zone-spread", fifth, spread(corev1.LabelTopologyZone))
	add("host-spread", fifth, spread(corev1.LabelHostname))
	add("together", fifth, func(p *podSpec) {
		p.labels = map[string]string{"together": s.value()}
		p.affinity = &corev1.Affinity{
			PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: near(p.labels, corev1.LabelTopologyZone),
			},
		}
	})
	add("apart", fifth, func(p *podSpec) {
		p.labels = map[string]string{"app": "apart"}
		p.affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: near(p.labels, corev1.LabelHostname),
		}}
	})
	types, err := linear()
	return Scenario{Catalog: types, Pending: pods}, err
}

func near(labels map[string]string, key string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{LabelSelector: selector(labels), TopologyKey: key}}
}

// preferences is B-02: every pod prefers a zone. It also prefers to have no sibling in its zone, which soon becomes
// impossible, and, with less weight, none on its node, which takes a node for each pod.
func preferences(s source, n int) (Scenario, error) {
	labels := map[string]string{"app": "web"}
	var pods []*corev1.Pod
	for i := range n {
		p := podSpec{name: numbered("web", i), labels: labels, resourceRev: i}
		s.size(&p)
		p.affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
					Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
						Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn,
						Values: []string{linearZones()[0]},
					}}},
				}}},
			PodAntiAffinity: &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
					{Weight: 10, PodAffinityTerm: near(labels, corev1.LabelTopologyZone)[0]},
					{Weight: 1, PodAffinityTerm: near(labels, corev1.LabelHostname)[0]},
				}},
		}
		pods = append(pods, p.pod())
	}
	types, err := linear()
	return Scenario{Catalog: types, Pending: pods}, err
}
