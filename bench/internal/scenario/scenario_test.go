package scenario

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestScenariosAreAFunctionOfNameAndSeed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"diverse-100", "preferences-50", "plain-1k", "one-more-pod-10", "consolidate-20",
		"drift-20", "hosts-50", "apps-50", "shops-50", "thinned-10"} {
		first, err := Make(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		second, _ := Make(name, 1)
		other, _ := Make(name, 2)
		if !reflect.DeepEqual(first.Pending, second.Pending) || !reflect.DeepEqual(first.Nodes, second.Nodes) {
			t.Errorf("%s differs from itself", name)
		}
		if reflect.DeepEqual(first.Pending, other.Pending) && reflect.DeepEqual(first.Nodes, other.Nodes) {
			t.Errorf("%s is the same for another seed", name)
		}
		if err := first.Catalog.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDiverseIsAFifthOfEachKind(t *testing.T) { // B-01
	t.Parallel()
	s, err := Make("diverse-103", 1)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, pod := range s.Pending {
		kind := "plain"
		switch a := pod.Spec.Affinity; {
		case len(pod.Spec.TopologySpreadConstraints) > 0:
			kind = pod.Spec.TopologySpreadConstraints[0].TopologyKey
		case a != nil && a.PodAffinity != nil:
			kind = "together"
		case a != nil && a.PodAntiAffinity != nil:
			kind = "apart"
		}
		count[kind]++
	}
	want := map[string]int{"plain": 23, corev1.LabelTopologyZone: 20, corev1.LabelHostname: 20, "together": 20,
		"apart": 20}
	if !reflect.DeepEqual(count, want) || len(s.Catalog.Types) != 400 {
		t.Errorf("%d types, kinds %v; want %v", len(s.Catalog.Types), count, want)
	}
}

func TestPlainHas300Shapes(t *testing.T) { // B-03
	t.Parallel()
	s, err := Make("plain-20k", 1)
	if err != nil {
		t.Fatal(err)
	}
	shapes := map[string]bool{}
	for _, pod := range s.Pending {
		shapes[pod.Labels["app"]] = true
	}
	offerings := 0
	for _, o := range s.Catalog.Types {
		offerings = max(offerings, len(o.Offerings))
	}
	if len(shapes) != 300 || offerings != 6 {
		t.Errorf("%d shapes, %d offerings of a type; want 300 and 6", len(shapes), offerings)
	}
}

// The nodes are full, and no two pods that keep apart share one. When the workload has fallen, about a tenth is left.
func TestFallenClusters(t *testing.T) { // B-05, B-06
	t.Parallel()
	before, err := Make("drift-100", 1)
	if err != nil {
		t.Fatal(err)
	}
	all, spread, apart := 0, 0, 0
	for _, n := range before.Nodes {
		seen := map[string]bool{}
		for _, pod := range n.Pods {
			all++
			if len(pod.Spec.TopologySpreadConstraints) > 0 {
				spread++
			}
			if pod.Spec.Affinity == nil {
				continue
			}
			if apart++; seen[pod.Labels["app"]] {
				t.Errorf("two pods of %s on %s", pod.Labels["app"], n.Name)
			}
			seen[pod.Labels["app"]] = true
		}
		if _, err := n.Price(before.Offered()); err != nil {
			t.Error(err)
		}
	}
	if all < 10*len(before.Nodes) || spread < all/20 || apart < all/20 {
		t.Errorf("%d pods on %d nodes, %d spread, %d apart", all, len(before.Nodes), spread, apart)
	}
	after, err := Make("consolidate-100", 1)
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, n := range after.Nodes {
		left += len(n.Pods)
	}
	if left < all/15 || left > all/7 {
		t.Errorf("%d pods are left of about %d", left, all)
	}
	if Budget(1) != 1 || Budget(20) != 2 || Budget(21) != 3 {
		t.Error("budgets are not rounded up")
	}
}

func TestBadNamesAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "diverse", "diverse-", "diverse-0", "diverse-x", "plain--5", "other-5",
		"plain-99999999"} {
		if _, err := Make(name, 1); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%q: error %v", name, err)
		}
	}
}
