package scenario

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

// Workload is a Deployment of the whole-system scenarios (B-10): its share of the pods, and what each asks for.
type Workload struct {
	Name                  string
	Percent               int
	MilliCores, Mebibytes int64
	Apart                 bool // its pods keep apart from each other by hostname
	Spread                bool // they are spread over hostnames, maxSkew 1
}

// Workloads are what system-N applies: four fifths of mixed sizes, and a fifth in five groups whose pods keep apart.
func Workloads() []Workload {
	return []Workload{
		{"tiny", 20, 250, 256, false, false},
		{"small", 20, 500, 1 << 10, false, false},
		{"medium", 20, 1000, 2 << 10, false, false},
		{"large", 12, 2000, 8 << 10, false, false},
		{"memory", 8, 500, 6 << 10, false, false},
		{"apart-0", 4, 250, 512, true, false},
		{"apart-1", 4, 250, 512, true, false},
		{"apart-2", 4, 500, 1 << 10, true, false},
		{"apart-3", 4, 500, 1 << 10, true, false},
		{"apart-4", 4, 1000, 2 << 10, true, false},
	}
}

// waves is what the whole-system scenarios plan first: their pods, on the default catalogue of the KWOK provider.
func waves(_ source, n int) (Scenario, error) {
	if n%50 != 0 {
		return Scenario{}, fmt.Errorf("%d pods; want a multiple of 50", n)
	}
	types, err := genericLinux()
	return Scenario{Catalog: types, OnDemandOnly: true, Pending: deployed(Workloads(), n)}, err
}

// mixed is like waves, but draws the workloads, their sizes and shares, and the catalogue.
func mixed(s source, n int) (Scenario, error) {
	types, err := genericLinux()
	if s.IntN(2) == 0 {
		types, err = aws()
	}
	apart := pick(s, []int{5, 10, 20, 40})
	workloads := drawn(s, "plain", 100-apart, 3+s.IntN(8))
	workloads = append(workloads, of(drawn(s, "apart", apart, 1+s.IntN(5)), func(w *Workload) { w.Apart = true })...)
	return Scenario{Catalog: types, OnDemandOnly: true, Pending: deployed(workloads, n)}, err
}

// hosts is like mixed, with workloads that are spread over hostnames: all of them, or a half or a fifth of the pods.
func hosts(s source, n int) (Scenario, error) {
	types, err := genericLinux()
	if s.IntN(2) == 0 {
		types, err = aws()
	}
	spread := pick(s, []int{20, 50, 100})
	workloads := of(drawn(s, "spread", spread, 1+s.IntN(4)), func(w *Workload) { w.Spread = true })
	if spread < 100 {
		workloads = append(workloads, drawn(s, "plain", 100-spread, 3+s.IntN(8))...)
	}
	return Scenario{Catalog: types, OnDemandOnly: true, Pending: deployed(workloads, n)}, err
}

// of changes each of the workloads.
func of(workloads []Workload, change func(*Workload)) []Workload {
	for i := range workloads {
		change(&workloads[i])
	}
	return workloads
}

// drawn returns a number of workloads, which together have this percentage of the pods.
func drawn(s source, name string, percent, number int) []Workload {
	var list []Workload
	for i := range number {
		cpu := pick(s, []int64{100, 250, 500, 750, 1000, 1500, 2000, 4000})
		share := max(1, percent/(number-i))
		percent -= share
		list = append(list, Workload{Name: fmt.Sprintf("%s-%d", name, i), Percent: share, MilliCores: cpu,
			Mebibytes: cpu * pick(s, []int64{1, 2, 4, 8}) * 512 / 1000})
	}
	return list
}

// deployed returns the pods of workloads, n in all, in the order in which they were made.
func deployed(workloads []Workload, n int) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, w := range workloads {
		for i := range n * w.Percent / 100 {
			labels := map[string]string{"app": w.Name}
			p := podSpec{name: numbered(w.Name, i), milliCores: w.MilliCores, mebibytes: w.Mebibytes, labels: labels,
				resourceRev: len(pods)}
			if w.Apart {
				p.affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
						TopologyKey: cluster.LabelHostname, LabelSelector: selector(labels),
					}},
				}}
			}
			if w.Spread {
				p.spread = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: cluster.LabelHostname,
					WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector(labels)}}
			}
			pod := p.pod()
			pod.CreationTimestamp = metav1.Unix(int64(len(pods)), 0)
			pods = append(pods, pod)
		}
	}
	return pods
}

// genericLinux returns the part of the default catalogue that the pool of the whole-system scenarios allows.
func genericLinux() (catalog.Catalog, error) {
	inventory, err := kwok.GenericInventory()
	if err != nil {
		return catalog.Catalog{}, err
	}
	c := catalog.Catalog{WellKnown: wellKnown()}
	allowed := requirement.NewSet(requirement.OneOf(labelArch, "amd64"), requirement.OneOf(labelOS, "linux"))
	for _, t := range inventory.Catalog().Types {
		t.Labels = requirement.NewSet(t.Labels.Get(labelArch), t.Labels.Get(labelOS))
		if !t.Labels.Get(labelArch).Has("amd64") || !t.Labels.Get(labelOS).Has("linux") {
			continue
		}
		t.Labels = allowed
		t.Offerings = slices.Clone(t.Offerings)
		for i := range t.Offerings {
			t.Offerings[i].Labels = requirement.Set{}
		}
		c.Types = append(c.Types, t)
	}
	return c, nil
}
