package mix

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// problems draws random items and bins of two or three resources. Some bins are closed to some items.
func problems(t *rapid.T, kinds, most int) ([]Item, []Bin) {
	resources := rapid.IntRange(1, 3).Draw(t, "resources")
	var items []Item
	for range rapid.IntRange(1, kinds).Draw(t, "items") {
		item := Item{Count: rapid.IntRange(0, most).Draw(t, "count")}
		for r := range resources {
			least := int64(0)
			if r == 0 {
				least = 1
			}
			item.Amounts = append(item.Amounts, rapid.Int64Range(least, 40).Draw(t, "amount"))
		}
		items = append(items, item)
	}
	var bins []Bin
	for range rapid.IntRange(0, 5).Draw(t, "bins") {
		bin := Bin{Price: rapid.Int64Range(1, 100).Draw(t, "price")}
		for range resources {
			bin.Room = append(bin.Room, rapid.Int64Range(-5, 100).Draw(t, "room"))
		}
		if rapid.Bool().Draw(t, "choosy") {
			for range items {
				bin.Takes = append(bin.Takes, rapid.Bool().Draw(t, "takes"))
			}
		}
		bins = append(bins, bin)
	}
	return items, bins
}

// P-22: whatever is asked, patterns are valid, and each pod that fits somewhere is in one.
func TestEveryPodOnceAndNoNodeTooFull(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items, bins := problems(t, 6, 30)
		fewer := func(items []Item, bins []Bin) []Pattern { return Fewer(Solve, items, bins, 0.2) }
		solve := rapid.SampledFrom([]Way{Solve, Sketch, Careful, Draft, fewer}).Draw(t, "solve")
		left := make([]int, len(items))
		for i, item := range items {
			left[i] = item.Count
			if !slices.ContainsFunc(bins, func(b Bin) bool { return holdsAll(b, items, one(len(items), i)) }) {
				left[i] = 0
			}
		}
		for _, found := range solve(items, bins) {
			if found.Times < 1 || !holdsAll(bins[found.Bin], items, found.Counts) {
				t.Fatalf("pattern %+v does not fit into %+v", found, bins[found.Bin])
			}
			for i, n := range found.Counts {
				left[i] -= n * found.Times
			}
		}
		for i, n := range left {
			if n != 0 {
				t.Fatalf("item %d: %d pods too few, or too many when below 0", i, n)
			}
		}
	})
}

// More passes never cost more, and cost less for some problems of few pods.
func TestCareIsNeverDearer(t *testing.T) {
	t.Parallel()
	drawn := rapid.Custom(func(t *rapid.T) *problem {
		items, bins := problems(t, 12, 6)
		p := newProblem(items, bins)
		if p == nil {
			return nil
		}
		careful, sketch := p.price(Careful(items, bins)), p.price(Sketch(items, bins))
		if careful > sketch {
			t.Fatalf("careful %v, in fewer passes %v", careful, sketch)
		}
		if careful < sketch {
			return p
		}
		return nil
	})
	cheaper := 0
	for seed := range 1000 {
		if drawn.Example(seed) != nil {
			cheaper++
		}
	}
	if cheaper == 0 {
		t.Error("no problem got cheaper nodes by more passes")
	}
}

func one(n, at int) []int {
	counts := make([]int, n)
	counts[at] = 1
	return counts
}

func holdsAll(bin Bin, items []Item, counts []int) bool {
	total := make([]int64, len(bin.Room))
	for i, n := range counts {
		if n > 0 && bin.Takes != nil && !bin.Takes[i] {
			return false
		}
		for r, amount := range items[i].Amounts {
			total[r] += amount * int64(n)
		}
	}
	for r := range total {
		if total[r] > max(bin.Room[r], 0) {
			return false
		}
	}
	return true
}

// P-22: for few pods, trying everything finds the least price. On average the result is within half a percent of it,
// and never more than a third above.
func TestCloseToTheLeastPrice(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	sum, cases := 0.0, 0
	for range 300 {
		items, bins := small(r)
		least := exhaustive(items, bins)
		if math.IsInf(least, 0) || least == 0 {
			continue
		}
		price := 0.0
		for _, found := range Solve(items, bins) {
			price += float64(bins[found.Bin].Price) * float64(found.Times)
		}
		if price > least*4/3 {
			t.Errorf("price %v, least %v, for %+v on %+v", price, least, items, bins)
		}
		sum, cases = sum+price/least, cases+1
	}
	if mean := sum / float64(cases); cases < 200 || mean > 1.005 {
		t.Errorf("%d cases, on average %.4f of the least price", cases, mean)
	}
}

// small draws a problem with at most seven pods.
func small(r *rand.Rand) ([]Item, []Bin) {
	var items []Item
	for range 3 {
		items = append(items, Item{Amounts: []int64{1 + r.Int64N(8), 1 + r.Int64N(8)}, Count: r.IntN(4)})
	}
	var bins []Bin
	for size := int64(4); size <= 16; size *= 2 {
		for range 2 {
			bins = append(bins, Bin{Room: []int64{size, size/2 + r.Int64N(2*size)}, Price: size*8 + r.Int64N(5*size)})
		}
	}
	return items, bins
}

// exhaustive returns the least price by dynamic programming over all multisets of pods.
func exhaustive(items []Item, bins []Bin) float64 {
	known := map[[3]int]float64{{}: 0}
	var least func(left [3]int) float64
	least = func(left [3]int) float64 {
		if price, found := known[left]; found {
			return price
		}
		best := math.Inf(1)
		for a := range left[0] + 1 {
			for b := range left[1] + 1 {
				for c := range left[2] + 1 {
					if a+b+c == 0 {
						continue
					}
					for _, bin := range bins {
						if holdsAll(bin, items, []int{a, b, c}) {
							best = min(best, float64(bin.Price)+least([3]int{left[0] - a, left[1] - b, left[2] - c}))
						}
					}
				}
			}
		}
		known[left] = best
		return best
	}
	return least([3]int{items[0].Count, items[1].Count, items[2].Count})
}

// P-20: the same problem gives the same nodes.
func TestSameProblemSameNodes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items, bins := problems(t, 12, 50)
		if a, b := Solve(items, bins), Solve(items, bins); !reflect.DeepEqual(a, b) {
			t.Fatalf("first %+v, then %+v", a, b)
		}
	})
}

// P-22: of mixes that cost the same the one with fewer nodes is taken.
func TestFewerNodesAtTheSamePrice(t *testing.T) {
	t.Parallel()
	items := []Item{{Amounts: []int64{1}, Count: 8}}
	bins := []Bin{{Room: []int64{2}, Price: 20}, {Room: []int64{8}, Price: 80}}
	found := Solve(items, bins)
	if len(found) != 1 || found[0].Bin != 1 || found[0].Times != 1 {
		t.Errorf("%+v: want one large node", found)
	}
}

// P-22: a tolerance brings no more nodes than the cheapest way has, and they cost no more than it allows.
func TestFewerNodesKeepToTheTolerance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items, bins := problems(t, 12, 60)
		way := rapid.SampledFrom([]Way{Solve, Sketch}).Draw(t, "way")
		tolerance := rapid.SampledFrom([]float64{0, 0.05, 0.5}).Draw(t, "tolerance")
		cheapest, found := way(items, bins), Fewer(way, items, bins, tolerance)
		if was, is := priceOf(cheapest, bins), priceOf(found, bins); is > was*(1+tolerance) {
			t.Fatalf("%v dollars, the cheapest %v: more than %v above", is, was, tolerance)
		}
		if Nodes(found) > Nodes(cheapest) {
			t.Fatalf("%d nodes, the cheapest way has %d", Nodes(found), Nodes(cheapest))
		}
		if tolerance == 0 && !reflect.DeepEqual(found, cheapest) {
			t.Fatalf("without a tolerance %+v, want %+v", found, cheapest)
		}
	})
}

// B-20: an overhead for each node never brings more nodes than the prices alone do, nor a higher cost in all. An
// overhead of 0 changes nothing. Overheads are only compared with none: from one to a higher one this need not hold.
func TestWhatANodeCostsBesideItsPriceNeverBringsMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items, bins := problems(t, 12, 60)
		way := rapid.SampledFrom([]Way{Solve, Sketch}).Draw(t, "way")
		overhead := rapid.SampledFrom([]int64{0, 1, 5, 50, 1000}).Draw(t, "overhead")
		all := dearer(bins, overhead)
		alone, found := way(items, bins), Beside(way, overhead)(items, all)
		if Nodes(found) > Nodes(alone) || priceOf(found, all) > priceOf(alone, all) {
			t.Fatalf("%d nodes for %v in all, without an overhead %d for %v", Nodes(found), priceOf(found, all),
				Nodes(alone), priceOf(alone, all))
		}
		if overhead == 0 && !reflect.DeepEqual(found, alone) {
			t.Fatalf("without an overhead %+v, want %+v", found, alone)
		}
	})
}

// B-20: a large node in place of eight small ones costs 160 more, and saves seven nodes.
func TestWhatANodeCostsBesideItsPriceBringsFewer(t *testing.T) {
	t.Parallel()
	items := []Item{{Amounts: []int64{1}, Count: 16}}
	bins := []Bin{{Room: []int64{2}, Price: 100}, {Room: []int64{16}, Price: 960}}
	for overhead, want := range map[int64]int{0: 8, 20: 8, 30: 1} {
		if found := Beside(Solve, overhead)(items, dearer(bins, overhead)); Nodes(found) != want {
			t.Errorf("overhead %d: %d nodes, want %d", overhead, Nodes(found), want)
		}
	}
}

// P-22: the money that a tolerance allows is spent. A large node for eight small ones costs 0.16 more, so a tenth of
// 1.60 pays for one.
func TestAToleranceSavesNodes(t *testing.T) {
	t.Parallel()
	items := []Item{{Amounts: []int64{1}, Count: 32}}
	bins := []Bin{{Room: []int64{2}, Price: 100}, {Room: []int64{16}, Price: 960}}
	for tolerance, want := range map[float64]int{0: 16, 0.05: 16, 0.1: 9, 0.2: 2} {
		if found := Fewer(Solve, items, bins, tolerance); Nodes(found) != want {
			t.Errorf("tolerance %v: %d nodes, want %d", tolerance, Nodes(found), want)
		}
	}
}
