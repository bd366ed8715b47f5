package world

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// testOverlay gives what it is about, an instance type or a pool, a price and an amount of example.com/fuse, unless
// these are empty.
func testOverlay(name, uid string, version int, price, amount, about string) *karpenterv1alpha1.NodeOverlay {
	o := &karpenterv1alpha1.NodeOverlay{ObjectMeta: meta("", name, uid, version)}
	o.Generation = int64(version)
	key := "node.kubernetes.io/instance-type"
	if strings.HasPrefix(about, "pool") {
		key = karpenterv1.NodePoolLabelKey
	}
	o.Spec.Requirements = []karpenterv1alpha1.NodeSelectorRequirement{
		{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{about}},
	}
	if price != "" {
		o.Spec.Price = &price
	}
	if amount != "" {
		o.Spec.Capacity = quantities("example.com/fuse", amount)
	}
	return o
}

// prices returns what the first offers of each pool cost, as pool:type=price.
func prices(s *cluster.Snapshot) string {
	var parts []string
	for _, pool := range s.Pools {
		for _, o := range pool.Catalog.Offers {
			parts = append(parts, pool.Name+":"+pool.Catalog.Types[o.Type].Name+"="+o.Price.String())
		}
	}
	return strings.Join(parts, " ")
}

// P-11: an overlay that comes, changes or goes changes what pools are planned with, and what nodes and promises are
// worth.
func TestOverlaysChangeThePicture(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	_ = s.SetCatalog(testClass(), testCatalog(10_000))
	_, _ = s.Apply(testPool("pool-0", 1)), s.Apply(testPool("pool-1", 2))
	claim := testClaim("c1", "cu1", 3, "pool-0", "p1", "Launched", "Registered", "Initialized")
	claim.Labels["node.kubernetes.io/instance-type"], claim.Labels["topology.kubernetes.io/zone"],
		claim.Labels["karpenter.sh/capacity-type"] = "large", "a", "spot"
	_ = s.Apply(claim)
	plain := s.Snapshot().Pools[0].Catalog
	want := func(when, offers string, node resources.Money) {
		t.Helper()
		now := s.Snapshot()
		if got := prices(now); got != offers || now.Nodes[0].Price != node {
			t.Errorf("%s: %s, node %s; want %s, node %s", when, got, now.Nodes[0].Price, offers, node)
		}
	}
	want("without overlays", "pool-0:small=0.010 pool-0:large=0.040 pool-1:small=0.010 pool-1:large=0.040", 40_000)
	_ = s.Apply(testOverlay("o", "ou", 4, "0.005", "", "large"))
	if price, capacity := s.Overlaid(testPool("pool-0", 1).Spec.Template.Spec.NodeClassRef, "pool-0",
		[]string{"small"}); price || capacity {
		t.Errorf("another type: price %t, capacity %t; want none", price, capacity)
	}
	want("a type", "pool-0:large=0.005 pool-0:small=0.010 pool-1:large=0.005 pool-1:small=0.010", 5_000)
	if a, b := s.Snapshot().Pools[0].Catalog, s.Snapshot().Pools[1].Catalog; a != b {
		t.Error("pools that see the same have each a catalogue of their own")
	}
	_ = s.Apply(testOverlay("o", "ou", 5, "0.020", "", "pool-1"))
	want("another pool", "pool-0:small=0.010 pool-0:large=0.040 pool-1:large=0.020 pool-1:small=0.020", 40_000)
	_ = s.SetCatalog(testClass(), testCatalog(12_000))
	want("another catalogue", "pool-0:small=0.012 pool-0:large=0.048 pool-1:large=0.020 pool-1:small=0.020", 48_000)
	s.Remove(testOverlay("o", "ou", 6, "", "", "pool-1"))
	want("gone", "pool-0:small=0.012 pool-0:large=0.048 pool-1:small=0.012 pool-1:large=0.048", 48_000)
	_ = s.SetCatalog(testClass(), testCatalog(10_000))
	if s.Snapshot().Pools[0].Catalog == plain {
		t.Error("the catalogue of before is kept for ever")
	}
}

// P-11: a claim on its way promises the resources that an overlay adds, and whoever launches it sees what planning
// saw.
func TestOverlaysReachClaimsAndLaunches(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	_ = s.SetCatalog(testClass(), testCatalog(10))
	_ = s.Apply(testPool("pool-0", 1))
	_ = s.Apply(testClaim("c1", "cu1", 2, "pool-0", ""))
	_ = s.Apply(testOverlay("o", "ou", 3, "0.5", "4", "pool-0"))
	now := s.Snapshot()
	fuse := -1
	for i, name := range now.Names {
		if name == "example.com/fuse" {
			fuse = i
		}
	}
	if fuse < 0 || now.Nodes[0].Allocatable.At(fuse) != 4 {
		t.Fatalf("the claim promises %v of %v; want 4 of example.com/fuse", now.Nodes[0].Allocatable, now.Names)
	}
	for name, offered := range map[string]resources.Money{"the catalogue that is known": 10, "one that is newer": 11} {
		got := s.Corrected(testClaim("c1", "cu1", 2, "pool-0", ""), testCatalog(offered))
		if got.Types[0].Offerings[0].Price != 500_000 || got.Types[0].Capacity["example.com/fuse"] != 4 {
			t.Errorf("%s: launched from %+v; want the overlay in it", name, got.Types[0])
		}
	}
	if price, capacity := s.Overlaid(testPool("pool-0", 1).Spec.Template.Spec.NodeClassRef, "pool-0",
		[]string{"large"}); !price || !capacity {
		t.Errorf("an overlay of price and capacity: %t, %t; want both (K-47)", price, capacity)
	}
	if price, capacity := s.Overlaid(testPool("pool-0", 1).Spec.Template.Spec.NodeClassRef, "pool-9",
		[]string{"large"}); price || capacity {
		t.Errorf("another pool: price %t, capacity %t; want none", price, capacity)
	}
	if got := s.Corrected(testClaim("c2", "cu2", 4, "pool-9", ""),
		testCatalog(10)); got.Types[0].Offerings[0].Price != 10 {
		t.Errorf("a claim of another pool is launched from %+v; want it as it is", got.Types[0])
	}
}

// P-11: verdicts follow the overlays, the pools and the catalogues.
func TestOverlaysAreJudged(t *testing.T) {
	t.Parallel()
	s := newClock().store()
	verdict := func(name string) translate.Verdict {
		v, _, known := s.OverlayVerdict(name)
		if !known {
			t.Fatalf("overlay %s is not known", name)
		}
		return v
	}
	_ = s.SetCatalog(testClass(), testCatalog(10))
	_ = s.Apply(testOverlay("first", "ou1", 1, "1", "", "small"))
	_ = s.Apply(testOverlay("second", "ou2", 2, "2", "", "pool-0"))
	if v := verdict("second"); v.Reason != "" {
		t.Errorf("without a pool: %+v; want no conflict", v)
	}
	_ = s.Apply(testPool("pool-0", 3))
	if v := verdict("second"); v.Reason != translate.OverlayConflict {
		t.Errorf("with the pool that both are about: %+v; want a conflict", v)
	}
	bad := testOverlay("second", "ou2", 4, "-2", "", "pool-0")
	if err := s.Apply(bad); err == nil {
		t.Error("a bad overlay is not reported")
	}
	if v, generation, _ := s.OverlayVerdict("second"); v.Reason != translate.OverlayInvalid || generation != 4 ||
		!strings.Contains(v.Message, `spec.price is "-2"`) {
		t.Errorf("a bad overlay: %+v, generation %d; want it to be invalid, with its field", v, generation)
	}
	s.Remove(bad)
	if _, _, known := s.OverlayVerdict("second"); known {
		t.Error("an overlay that is gone is still known")
	}
}
