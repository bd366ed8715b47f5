package bound

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// wish is a small pod: its requests, and its conditions on others on its node.
type wish struct {
	cores, memory int64
	label         string
	spread        string // the value that its spread over hostnames selects; "": none
	skew          int32
	apart         string // the value that its anti-affinity over hostnames selects; "": none
}

func (w wish) pod(i int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint(i),
		Labels: map[string]string{"value": w.label}}}
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(w.cores, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(w.memory, resource.DecimalSI),
	}}}}
	of := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"value": value}}
	}
	if w.spread != "" {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: w.skew, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: of(w.spread),
		}}
	}
	if w.apart != "" {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: corev1.LabelHostname, LabelSelector: of(w.apart)}},
		}}
	}
	return p
}

func types(list ...[3]int64) catalog.Catalog { // cores, memory, price
	var c catalog.Catalog
	for i, t := range list {
		c.Types = append(c.Types, catalog.Type{
			Name: fmt.Sprintf("t%d", i),
			Capacity: resources.Amounts{resources.NameCPU: 1000 * t[0], resources.NameMemory: t[1],
				resources.NamePods: 10},
			Offerings: []catalog.Offering{
				{Zone: "a", CapacityType: catalog.OnDemand, Price: resources.Money(t[2]) * 1_000_000, Available: true},
			},
		})
	}
	return c
}

func problemOf(wishes []wish, c catalog.Catalog) scenario.Scenario {
	s := scenario.Scenario{Catalog: c}
	for i, w := range wishes {
		s.Pending = append(s.Pending, w.pod(i))
	}
	return s
}

func boundsOf(s scenario.Scenario) map[string]float64 {
	bounds := map[string]float64{}
	for _, b := range Of(s) {
		bounds[b.Kind] = b.Dollars
	}
	return bounds
}

// Four small pods that keep apart want a node each. So four others that spread over nodes and count themselves go to
// one each, too. Without the spread, three of the cheapest nodes and one large one would do.
func TestSpreadPodsGetTheirShareOfTheNodes(t *testing.T) {
	t.Parallel()
	var wishes []wish
	for range 4 {
		wishes = append(wishes, wish{cores: 1, memory: 1, label: "db", apart: "db"},
			wish{cores: 4, memory: 4, label: "web", spread: "web", skew: 1})
	}
	c := types([3]int64{1, 1, 1}, [3]int64{5, 5, 8}, [3]int64{17, 17, 12})
	bounds := boundsOf(problemOf(wishes, c))
	if bounds[Configuration] > 15+1e-6 || math.Abs(bounds[Constrained]-32) > 0.02 {
		t.Errorf("bounds %v; want at most 15 without and 32 with the constraint", bounds)
	}
	for i := range wishes {
		if wishes[i].spread != "" {
			wishes[i].label = "other" // its spread no longer counts this label
		}
	}
	if bounds := boundsOf(problemOf(wishes, c)); bounds[Constrained] != 0 {
		t.Errorf("bounds %v; pods that do not count themselves may share a node", bounds)
	}
}

// No bound is above the price of the cheapest plan, which a search of everything finds.
func TestNoPlanIsBelowABound(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(1, 30))
	tight, matters := 0, 0
	for range 400 {
		var wishes []wish
		pick := func(from ...string) string { return from[dice.IntN(len(from))] }
		for range 2 + dice.IntN(4) {
			w := wish{cores: 1 + dice.Int64N(4), memory: 1 + dice.Int64N(4), label: pick("a", "b")}
			switch dice.IntN(3) {
			case 0:
				w.spread, w.skew = pick("a", "b"), 1+dice.Int32N(2)
			case 1:
				w.apart = pick("a", "b")
			}
			wishes = append(wishes, w)
		}
		c := types([3]int64{4, 4, 4 + dice.Int64N(3)}, [3]int64{6, 9, 6 + dice.Int64N(4)},
			[3]int64{12, 12, 8 + dice.Int64N(6)})
		least := cheapest(wishes, c)
		bounds := boundsOf(problemOf(wishes, c))
		for kind, bound := range bounds {
			if bound > least*(1+1e-9) {
				t.Fatalf("%+v: the %s bound is %v, a plan costs %v", wishes, kind, bound, least)
			}
			if bound > least*0.999 {
				tight++
			}
		}
		if bounds[Constrained] > bounds[Configuration]*1.001 {
			matters++
		}
	}
	if tight == 0 || matters == 0 {
		t.Errorf("%d bounds are reached, %d times spread raises one: the law says little", tight, matters)
	}
}

// cheapest tries every partition of the pods and every order of binding.
func cheapest(wishes []wish, c catalog.Catalog) float64 {
	least := math.Inf(1)
	node := make([]int, len(wishes))
	var assign func(i, nodes int)
	assign = func(i, nodes int) {
		if i == len(wishes) {
			if price := priced(wishes, node, nodes, c); price < least && bindable(wishes, node, nodes, 0) {
				least = price
			}
			return
		}
		for n := range nodes + 1 {
			node[i] = n
			assign(i+1, max(nodes, n+1))
		}
	}
	assign(0, 0)
	return least
}

func priced(wishes []wish, node []int, nodes int, c catalog.Catalog) float64 {
	sum := 0.0
	for n := range nodes {
		var cores, memory, pods int64
		for i, w := range wishes {
			if node[i] == n {
				cores, memory, pods = cores+w.cores, memory+w.memory, pods+1
			}
		}
		least := math.Inf(1)
		for _, t := range c.Types {
			has := scenario.Allocatable(t)
			if cores*1000 <= has[resources.NameCPU] && memory <= has[resources.NameMemory] &&
				pods <= has[resources.NamePods] {
				least = min(least, t.Offerings[0].Price.Dollars())
			}
		}
		sum += least
	}
	return sum
}

// bindable reports whether the unbound pods can be bound, one after the other.
func bindable(wishes []wish, node []int, nodes int, bound uint) bool {
	if bound == 1<<len(wishes)-1 {
		return true
	}
	for i := range wishes {
		if bound&(1<<i) == 0 && admitted(wishes, node, nodes, bound, i) && bindable(wishes, node, nodes, bound|1<<i) {
			return true
		}
	}
	return false
}

func admitted(wishes []wish, node []int, nodes int, bound uint, pod int) bool {
	w, counts := wishes[pod], make([]int, nodes)
	for i, other := range wishes {
		if bound&(1<<i) == 0 {
			continue
		}
		if node[i] == node[pod] && (w.apart == other.label || other.apart == w.label) {
			return false
		}
		if w.spread == other.label {
			counts[node[i]]++
		}
	}
	if w.spread == "" {
		return true
	}
	here, least := counts[node[pod]], counts[0]
	for _, count := range counts {
		least = min(least, count)
	}
	if w.spread == w.label {
		here++
	}
	return here-least <= int(w.skew)
}
