package launch_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launch"
)

// offers reads "spot m5.large a 5": the capacity type (res, block and int for reservations, which are named after
// their place), type, zone and price. A type of family g is exotic; "-" before it says that it is not available.
func offers(lines ...string) []launch.Offer {
	var list []launch.Offer
	for i, line := range lines {
		var o launch.Offer
		var capacity string
		rest, gone := strings.CutPrefix(line, "-")
		if n, err := fmt.Sscan(rest, &capacity, &o.Type, &o.Zone, &o.Price); err != nil {
			panic(fmt.Sprint(line, n, err))
		}
		o.Available, o.Exotic = !gone, strings.HasPrefix(o.Type, "g")
		o.CapacityType = map[string]string{"spot": catalog.Spot, "od": catalog.OnDemand}[capacity]
		if kind, reserved := map[string]launch.Kind{"res": launch.Plain, "block": launch.Block,
			"int": launch.Interruptible}[capacity]; reserved {
			o.CapacityType = catalog.Reserved
			o.Reservation = launch.Reservation{ID: fmt.Sprint("cr-", i), Kind: kind, Left: i}
		}
		list = append(list, o)
	}
	return list
}

func shown(c launch.Choice) string {
	words := []string{strings.TrimSpace(c.CapacityType+" "+string(c.Kind)) + ":"}
	for _, o := range c.Offers {
		words = append(words, strings.TrimSuffix(o.Type+"/"+o.Zone+"/"+o.Reservation.ID, "/"))
	}
	return strings.Join(words, " ")
}

// E-27: one capacity type, and what is left out of it.
func TestWhatALaunchAsksFor(t *testing.T) {
	t.Parallel()
	families := func(least int) []launch.Least { return []launch.Least{{Value: family, Least: least}} }
	for name, c := range map[string]struct {
		offers []launch.Offer
		minima []launch.Least
		want   string
	}{
		"nothing":           {nil, nil, ":"},
		"nothing available": {offers("-od m5.x a 1"), nil, ":"},
		"spot before on-demand": {offers("od m5.x a 9", "spot m5.x a 3", "spot c5.x b 2"), nil,
			"spot: c5.x/b m5.x/a"},
		"reserved before spot": {offers("spot m5.x a 1", "res m5.x a 0", "res c5.x b 0"), nil,
			"reserved default: c5.x/b/cr-2 m5.x/a/cr-1"},
		"what is not available counts for nothing": {offers("-res m5.x a 0", "-spot m5.x a 1", "od m5.x a 9"), nil,
			"on-demand: m5.x/a"},
		"dear spot stays out": {offers("od m5.x a 5", "spot m5.x a 5", "spot c5.x a 6", "spot r5.x a 4"), nil,
			"spot: r5.x/a m5.x/a"},
		"dear spot where on-demand is not allowed": {offers("spot m5.x a 5", "spot c5.x a 6"), nil,
			"spot: m5.x/a c5.x/a"},
		"all spot is dear": {offers("od m5.x a 5", "od c5.x b 7", "spot m5.x a 6"), nil,
			"on-demand: m5.x/a c5.x/b"},
		"on-demand that cannot be had is no bound": {offers("-od m5.x a 1", "spot m5.x a 6"), nil, "spot: m5.x/a"},
		"exotic stays out":                         {offers("spot g5.x a 1", "spot m5.x a 2"), nil, "spot: m5.x/a"},
		"exotic where nothing is plain":            {offers("spot g5.x a 1", "od g5.x a 2"), nil, "spot: g5.x/a"},
		"plain on-demand before exotic spot": {offers("spot g5.x a 1", "od m5.x a 2"), nil,
			"on-demand: m5.x/a"},
		"reserved exotic before plain": {offers("res g5.x a 0", "spot m5.x a 1"), nil,
			"reserved default: g5.x/a/cr-0"},
		"reserved exotic beside reserved plain": {offers("res g5.x a 0", "res m5.x a 0"), nil,
			"reserved default: m5.x/a/cr-1"},
		"of two reservations the fuller": {offers("res m5.x a 0", "res m5.x a 0"), nil,
			"reserved default: m5.x/a/cr-1 m5.x/a/cr-0"},
		"one block": {offers("block g5.x a 0", "block g6.x a 0", "int g6.x b 0"), nil,
			"reserved capacity-block: g5.x/a/cr-0"},
		"default before block": {offers("block m5.x a 0", "int m5.x a 0", "res m5.x a 0"), nil,
			"reserved default: m5.x/a/cr-2"},
		"interruptible": {offers("int m5.x a 0"), nil,
			"reserved interruptible: m5.x/a/cr-0"},
		"a minimum brings dear spot back": {offers("od m5.x a 5", "spot m5.x a 4", "spot m6.x a 7", "spot c5.x a 6",
			"spot c5.x b 9"),
			families(2), "spot: m5.x/a c5.x/a"},
		"plain and dear before exotic": {offers("od m5.x a 5", "spot m5.x a 4", "spot g5.x a 3", "spot c5.x a 6"),
			families(2), "spot: m5.x/a c5.x/a"},
		"exotic when a minimum needs it": {offers("od m5.x a 5", "od g5.x a 9", "od g5.x b 9"), families(2),
			"on-demand: m5.x/a g5.x/a"},
		"a minimum that nothing meets": {offers("od m5.x a 5", "od g5.x a 9"), families(9),
			"on-demand: m5.x/a g5.x/a"},
	} {
		if got := shown(launch.Choose(c.offers, c.minima)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// E-27, as laws: the order of the input does not matter. The result has one capacity type and only available offers,
// ordered by price, and fulfils minima as far as the capacity type can.
func TestChoicesFollowTheRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var lines []string
		for range rapid.IntRange(0, 12).Draw(t, "offers") {
			lines = append(lines,
				fmt.Sprintf("%s%s %s5.x %s %d", rapid.SampledFrom([]string{"", "", "-"}).Draw(t, "gone"),
					rapid.SampledFrom([]string{"spot", "od", "spot", "od", "res"}).Draw(t, "capacity"),
					rapid.SampledFrom([]string{"m", "c", "r", "g", "gr"}).Draw(t, "family"),
					rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone"), rapid.IntRange(1, 5).Draw(t, "price")))
		}
		all := offers(lines...)
		least := rapid.IntRange(0, 5).Draw(t, "least")
		minima := []launch.Least{{Value: family, Least: least}}
		got := launch.Choose(all, minima)
		if other := launch.Choose(rapid.Permutation(all).Draw(t, "order"), minima); shown(other) != shown(got) {
			t.Fatalf("%s, in another order %s", shown(got), shown(other))
		}
		families := func(list []launch.Offer) int {
			seen := map[string]bool{}
			for _, o := range list {
				if o.CapacityType == got.CapacityType && o.Available {
					seen[family(o.Type)] = true
				}
			}
			return len(seen)
		}
		available := false
		for _, o := range all {
			available = available || o.Available
		}
		if available != (len(got.Offers) > 0) || families(got.Offers) < min(least, families(all)) {
			t.Fatalf("%s of %v, at least %d families", shown(got), lines, least)
		}
		last := resources.Money(0)
		for _, o := range got.Offers {
			if !o.Available || o.CapacityType != got.CapacityType || o.Price < last {
				t.Fatalf("%s of %v", shown(got), lines)
			}
			last = o.Price
		}
	})
}

// E-27: which types few pods need.
func TestExoticTypes(t *testing.T) {
	t.Parallel()
	types := ec2test.Types(t)
	for kind, want := range map[string]bool{"m5.large": false, "m7g.xlarge": false, "i4i.large": false,
		"m5.metal":  true,
		"g5.xlarge": true, "p4d.24xlarge": true, "inf2.xlarge": true, "trn1.2xlarge": true, "f2.6xlarge": true,
		"vt1.3xlarge": true} {
		info, known := types[kind]
		if !known {
			t.Errorf("%s is not in the data", kind)
		}
		if got := launch.Exotic(&info); got != want {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
}
