package enginetest

import (
	"maps"
	"slices"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// Inventory is what nodes have of devices, and which claims there are, all in the namespace "default".
type Inventory struct {
	Nodes  map[string]map[string]int64 // by name: devices by kind, those of allocated claims not counted
	Claims map[string]ClaimOf          // by name
}

// ClaimOf is a ResourceClaim for so many devices of each kind; On is the node on which it is allocated.
type ClaimOf struct {
	Kinds map[string]int64
	On    string
}

// Asking returns the shape of a pod with these claims.
func Asking(claims ...string) *cluster.Shape {
	shape := &cluster.Shape{Namespace: "default"}
	for _, claim := range claims {
		shape.Claims = append(shape.Claims, cluster.DeviceClaim{Name: claim, Object: claim})
	}
	return shape
}

// node is an existing node of this name.
func node(name string) *cluster.Node {
	return &cluster.Node{Name: name, Initialized: true, Labels: map[string]string{cluster.LabelHostname: name}}
}

// Serving returns those of the nodes on which a pod with these claims gets its devices.
func Serving(d cluster.Devices, nodes []string, claims ...string) []string {
	return slices.DeleteFunc(slices.Clone(nodes), func(name string) bool {
		left, _ := d.Place(Asking(claims...), node(name))
		return left == nil
	})
}

// Devices tests what every implementation of [cluster.Devices] keeps (K-42).
func Devices(t *testing.T, make func(t *testing.T, inventory Inventory) cluster.Devices) {
	one, two := map[string]int64{"gpu": 1}, map[string]int64{"gpu": 2}
	inventory := Inventory{
		Nodes: map[string]map[string]int64{"n1": {"gpu": 1, "nic": 1}, "n2": {"gpu": 2}, "n3": {}},
		Claims: map[string]ClaimOf{"a": {Kinds: one}, "b": {Kinds: one}, "c": {Kinds: one}, "two": {Kinds: two},
			"d":    {Kinds: two},
			"both": {Kinds: map[string]int64{"gpu": 1, "nic": 1}}, "held": {Kinds: one, On: "n3"},
			"odd": {Kinds: map[string]int64{"fpga": 1}}},
	}
	nodes := slices.Sorted(maps.Keys(inventory.Nodes))
	check := func(t *testing.T, d cluster.Devices, want []string, claims ...string) {
		t.Helper()
		if got := Serving(d, nodes, claims...); !slices.Equal(got, want) {
			t.Errorf("nodes for %q: %q, want %q", claims, got, want)
		}
	}
	place := func(t *testing.T, d cluster.Devices, on string, claims ...string) cluster.Devices {
		t.Helper()
		left, why := d.Place(Asking(claims...), node(on))
		if left == nil {
			t.Fatalf("%q are not allocated on %s: %s", claims, on, why)
		}
		return left
	}
	t.Run("counts", func(t *testing.T) {
		d := make(t, inventory)
		check(t, d, []string{"n1", "n2"}, "a")
		check(t, d, []string{"n2"}, "two")
		check(t, d, []string{"n1"}, "both")
		check(t, d, []string{"n2"}, "a", "b")
		check(t, d, nil, "a", "two")
		check(t, d, nodes)
	})
	t.Run("what is given is gone, in that branch only", func(t *testing.T) {
		d := make(t, inventory)
		left := place(t, d, "n2", "a")
		other := place(t, d, "n1", "b")
		check(t, left, []string{"n1", "n2"}, "b")
		check(t, left, nil, "two")
		check(t, place(t, left, "n2", "b"), []string{"n1"}, "c")
		check(t, other, []string{"n2"}, "two")
		check(t, d, []string{"n2"}, "two")
	})
	t.Run("a claim keeps its pods together, and is counted once", func(t *testing.T) {
		d := make(t, inventory)
		check(t, d, []string{"n3"}, "held")
		check(t, d, nil, "held", "a")
		left := place(t, d, "n1", "a")
		check(t, left, []string{"n1"}, "a")
		check(t, place(t, left, "n1", "a"), []string{"n2"}, "b")
	})
	t.Run("problems", func(t *testing.T) {
		d := make(t, inventory)
		for claims, want := range map[string]cause.Code{"none": cause.DeviceClaimMissing, "odd": cause.DevicesNotFound,
			"a": "", "two": ""} {
			code, text := d.Problem(Asking(claims))
			if code != want || (text == "") != (want == "") {
				t.Errorf("claim %s: problem %q %q, want %q", claims, code, text, want)
			}
		}
		check(t, d, nil, "none")
		check(t, d, nil, "a", "odd")
		if d.Wanted(Asking("two")) == "" {
			t.Error("what is wanted has no words")
		}
	})
}
