package scenario

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// apps draws workloads, each with one of the constraints that people write, on one of the catalogues. It helps to find
// kinds of workloads for which a side's plan is more expensive than necessary.
func apps(s source, n int) (Scenario, error) { return appsOf(s, n, 1+s.IntN(8)) }

// shops is apps with more workloads, each with fewer pods.
func shops(s source, n int) (Scenario, error) { return appsOf(s, n, 8+s.IntN(18)) }

func appsOf(s source, n, workloads int) (Scenario, error) {
	types, err := genericLinux()
	if s.IntN(2) == 0 {
		types, err = aws()
	}
	if err != nil {
		return Scenario{}, err
	}
	kinds := appKinds(types.Types[0].Offerings[0].Zone)
	var pods []*corev1.Pod
	for _, w := range drawn(s, "app", 100, workloads) {
		kind := pick(s, kinds)
		for i := range n * w.Percent / 100 {
			p := podSpec{name: numbered(w.Name+"-"+kind.name, i), milliCores: w.MilliCores, mebibytes: w.Mebibytes,
				labels: map[string]string{"app": w.Name}, resourceRev: len(pods)}
			kind.finish(&p)
			pod := p.pod()
			pod.CreationTimestamp = metav1.Unix(int64(len(pods)), 0)
			pods = append(pods, pod)
		}
	}
	return Scenario{Catalog: types, OnDemandOnly: s.IntN(2) == 0, Pending: pods}, nil
}

// appKind is a constraint by a short name.
type appKind struct {
	name   string
	finish func(*podSpec)
}

func appKinds(zone string) []appKind {
	spread := func(key string, skew int32, when corev1.UnsatisfiableConstraintAction) func(*podSpec) {
		return func(p *podSpec) {
			p.spread = append(p.spread, corev1.TopologySpreadConstraint{MaxSkew: skew, TopologyKey: key,
				WhenUnsatisfiable: when, LabelSelector: selector(p.labels)})
		}
	}
	both := func(first, second func(*podSpec)) func(*podSpec) { return func(p *podSpec) { first(p); second(p) } }
	apart := func(key string) func(*podSpec) {
		return func(p *podSpec) {
			terms := near(p.labels, key)
			p.affinity = &corev1.Affinity{
				PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms},
			}
		}
	}
	ratherApart := func(p *podSpec) {
		term := corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: near(p.labels, corev1.LabelHostname)[0]}
		p.affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{term},
		}}
	}
	together := func(key string) func(*podSpec) {
		return func(p *podSpec) {
			terms := near(p.labels, key)
			p.affinity = &corev1.Affinity{
				PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms},
			}
		}
	}
	const hard, soft, host, zones = corev1.DoNotSchedule, corev1.ScheduleAnyway, corev1.LabelHostname,
		corev1.LabelTopologyZone
	return []appKind{
		{"plain", func(*podSpec) {}}, {"plain", func(*podSpec) {}},
		{"zones", spread(zones, 1, hard)},
		{"hosts", spread(host, 1, hard)},
		{"hosts5", spread(host, 5, hard)},
		{"zones-hosts", both(spread(zones, 1, hard), spread(host, 1, hard))},
		{"rather-zones", spread(zones, 1, soft)},
		{"rather-hosts", both(spread(zones, 1, soft), spread(host, 1, soft))},
		{"zones-rather-hosts", both(spread(zones, 1, hard), spread(host, 1, soft))},
		{"apart", apart(host)},
		{"rather-apart", ratherApart},
		{"zones-apart", both(apart(host), spread(zones, 1, hard))},
		{"together-zone", together(zones)},
		{"in-zone", func(p *podSpec) { p.nodeSelector = map[string]string{zones: zone} }},
		{"amd64", func(p *podSpec) { p.nodeSelector = map[string]string{corev1.LabelArchStable: "amd64"} }},
	}
}

// thinned returns nodes that were full of the workloads of apps. Of each workload's pods, a tenth to four tenths are
// left. Their places were drawn too, so that spread ones are no longer even.
func thinned(s source, nodes int) (Scenario, error) {
	catalogue, err := aws()
	if err != nil {
		return Scenario{}, err
	}
	zones := []string{"us-east-1a", "us-east-1b", "us-east-1c"}
	kinds := appKinds(zones[0])
	type app struct {
		podSpec
		kind string
		left int // percent
	}
	var list []app
	for _, w := range drawn(s, "app", 100, 5+s.IntN(20)) {
		kind := pick(s, kinds)
		p := podSpec{name: w.Name + "-" + kind.name, milliCores: w.MilliCores, mebibytes: w.Mebibytes,
			labels: map[string]string{"app": w.Name}}
		own := app{p, kind.name, 10 + s.IntN(31)}
		kind.finish(&own.podSpec)
		list = append(list, own)
	}
	scenario := Scenario{Catalog: catalogue, OnDemandOnly: true, Disrupt: Consolidate}
	version := 0
	for i := range nodes {
		node := Node{Name: numbered("node", i), Type: pick(s, fullTypes()), Zone: pick(s, zones),
			CapacityType: catalog.OnDemand}
		at := slices.IndexFunc(catalogue.Types, func(t catalog.Type) bool { return t.Name == node.Type })
		room, there := Allocatable(catalogue.Types[at]), map[string]int{}
		for vain := 0; vain < vainDraws; {
			own := pick(s, list)
			p := own.podSpec
			inZone := strings.Contains(own.kind, "together") || own.kind == "in-zone"
			alone := strings.Contains(own.kind, "hosts") || strings.Contains(own.kind, "apart")
			if memory := p.mebibytes << 20; p.milliCores > room[resources.NameCPU] ||
				memory > room[resources.NameMemory] ||
				inZone && node.Zone != zones[0] || alone && there[own.name] > 0 {
				vain++
				continue
			}
			room[resources.NameCPU] -= p.milliCores
			room[resources.NameMemory] -= p.mebibytes << 20
			there[own.name]++
			if s.IntN(100) < own.left {
				version++
				p.name, p.node, p.resourceRev = numbered(p.name, version), node.Name, version
				node.Pods = append(node.Pods, p.pod())
			}
		}
		scenario.Nodes = append(scenario.Nodes, node)
	}
	return scenario, nil
}
