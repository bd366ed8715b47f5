package pack

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/engine/script"
)

// manyPools is a cluster of 50 pools and 5,400 offerings, in which a pod waits that fits on a node. With partial, a
// daemon runs on half of the instance types.
func manyPools(tb testing.TB, partial bool) *cluster.Snapshot {
	tb.Helper()
	text := ""
	for i := range 50 {
		text += fmt.Sprintf("pool p%d\n", i)
	}
	for i := range 600 {
		text += fmt.Sprintf("type t%d cpu=%d mem=%dGi pods=110 zones=a,b,c,d,e,f,g,h,i od=%.3f arch=%s\n", i,
			1+i%96, 1+i*7%768, 0.04*float64(1+i%96)+0.001*float64(i), []string{"amd64", "arm64"}[i%2])
	}
	text += "daemon logs cpu=100m mem=100Mi\nnode n type=t99 zone=a pool=p0\npod w cpu=1 mem=1Gi\n"
	if partial {
		text += "daemon plugin cpu=100m mem=100Mi need=arch=arm64\n"
	}
	snapshot, err := script.Parse(text)
	if err != nil {
		tb.Fatal(err)
	}
	return snapshot
}

// BenchmarkFit measures the question of nearly every what-if, whether a pod fits on the nodes that there are.
func BenchmarkFit(b *testing.B) {
	for _, partial := range []bool{false, true} {
		snapshot := manyPools(b, partial)
		b.Run(fmt.Sprintf("partial=%t", partial), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, fits := Fit(snapshot, snapshot.Pending); !fits {
					b.Fatal("the pod fits on n")
				}
			}
		})
	}
}

// D-04: whether pods fit elsewhere is asked hundreds of times in a round. What new nodes would have room for is not
// worked out for that.
func TestFitLooksAtNoNewNode(t *testing.T) { // not parallel, since it counts allocations
	snapshot := manyPools(t, true)
	s := within(snapshot, snapshot.Pending)
	if len(s.failed) > 0 {
		t.Fatal("the pod fits on n")
	}
	for _, p := range s.pools {
		if p.some == nil {
			t.Fatalf("no daemon runs on some offers of %s only", p.Name)
		}
		if p.uneven != nil || p.rooms != nil {
			t.Fatalf("the room on new nodes of %s is worked out", p.Name)
		}
	}
	if allocs := testing.AllocsPerRun(1, func() { Fit(snapshot, snapshot.Pending) }); allocs > 5000 {
		t.Errorf("%.0f allocations for one pod at 50 pools, want a few for each pool", allocs)
	}
}

// P-06: what daemons leave of offers is what sorting all offers would say.
func TestUnevenRoomIsThatOfSortedOffers(t *testing.T) {
	t.Parallel()
	source := rand.New(rand.NewPCG(1, 2))
	amount := func() int64 { return source.Int64N(8) }
	for range 300 {
		var types []catalog.IndexedType
		var offers []catalog.Offer
		for i := range 1 + source.IntN(6) {
			types = append(types, catalog.IndexedType{Name: fmt.Sprint("t", i),
				Allocatable: resources.Vector{3 * amount(), 3 * amount()}[:source.IntN(3)]})
		}
		for range source.IntN(150) {
			offers = append(offers, catalog.Offer{Type: source.IntN(len(types))})
		}
		index := catalog.Compile(types, offers, nil)
		var some []partial
		for range 1 + source.IntN(4) {
			on := catalog.NewBits(len(offers))
			for i := range offers {
				if source.IntN(2) == 0 {
					on.Add(i)
				}
			}
			some = append(some, partial{on, resources.Vector{amount(), amount(), amount()}[:source.IntN(4)]})
		}
		p := &pool{Pool: &cluster.Pool{Catalog: index}, some: some}
		sorted := catalog.NewThresholds(len(offers), func(i int) resources.Vector {
			return types[offers[i].Type].Allocatable.Minus(p.daemonsOn(i))
		})
		for range 30 {
			component, amount := source.IntN(4), 1+source.Int64N(24)
			if got, want := p.roomFor(component, amount), sorted.AtLeast(component, amount); !slices.Equal(got, want) {
				t.Fatalf("%v less %v: at least %d of component %d have %v, want %v", types, some, amount, component,
					got, want)
			}
		}
	}
}
