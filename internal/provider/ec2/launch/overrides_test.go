package launch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launch"
)

func family(kind string) string { name, _, _ := strings.Cut(kind, "."); return name }

// E-28: the most expensive offers are cut, but no zone and no minimum is lost.
func TestTheDearEndIsCut(t *testing.T) {
	t.Parallel()
	at := func(kind, zone string, price resources.Money) launch.Override {
		return launch.Override{Type: kind, Zone: zone, Subnet: "subnet-" + zone, Image: "ami-1", Price: price}
	}
	all := []launch.Override{at("m5.large", "a", 5), at("m5.large", "b", 6), at("c5.large", "a", 1),
		at("c5.large", "b", 2), at("r5.large", "a", 3), at("x1.large", "c", 99)}
	wide := launch.Bounds{Types: 60, Overrides: 300, Bytes: 1 << 20}
	for name, c := range map[string]struct {
		bounds launch.Bounds
		minima []launch.Least
		want   string
	}{
		"all, cheapest first": {
			bounds: wide, want: "c5.large/a c5.large/b r5.large/a m5.large/a m5.large/b x1.large/c",
		},
		"four overrides": {bounds: launch.Bounds{Types: 60, Overrides: 4, Bytes: 1 << 20},
			want: "c5.large/a c5.large/b r5.large/a x1.large/c"},
		"two types": {bounds: launch.Bounds{Types: 2, Overrides: 300, Bytes: 1 << 20},
			want: "c5.large/a c5.large/b x1.large/c"},
		"fewer than there are zones": {bounds: launch.Bounds{Types: 1, Overrides: 1, Bytes: 1},
			want: "c5.large/a c5.large/b x1.large/c"},
		"four families": {bounds: launch.Bounds{Types: 2, Overrides: 300, Bytes: 1 << 20},
			minima: []launch.Least{{Value: family, Least: 4}},
			want:   "c5.large/a c5.large/b r5.large/a m5.large/a m5.large/b x1.large/c"},
		"three families, few overrides": {bounds: launch.Bounds{Types: 60, Overrides: 3, Bytes: 1 << 20},
			minima: []launch.Least{{Value: family, Least: 3}}, want: "c5.large/b r5.large/a x1.large/c"},
		"bytes": {bounds: launch.Bounds{Types: 60, Overrides: 300, Bytes: 4 * at("c5.large", "a", 1).Size()},
			want: "c5.large/a c5.large/b r5.large/a x1.large/c"},
	} {
		var got []string
		for _, o := range launch.Cut(all, c.bounds, c.minima) {
			got = append(got, o.Type+"/"+o.Zone)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, " "), c.want)
		}
	}
	double := launch.Cut([]launch.Override{{Type: "m5.large", Zone: "a", Subnet: "first"},
		{Type: "m5.large", Zone: "a", Subnet: "second"}}, wide, nil)
	if len(double) != 1 || double[0].Subnet != "first" {
		t.Errorf("two subnets for one type and zone: %v, want the first", double)
	}
}

// E-28, as a law: cutting keeps zones and minima, keeps the bounds where possible, and never drops a pool for a more
// expensive one without need.
func TestACutKeepsZonesAndMinima(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var all []launch.Override
		for i := range rapid.IntRange(1, 40).Draw(t, "overrides") {
			all = append(all, launch.Override{
				Type: fmt.Sprintf("f%d.s%d", rapid.IntRange(0, 5).Draw(t, "family"),
					rapid.IntRange(0, 4).Draw(t, "size")),
				Zone:  fmt.Sprint("z", rapid.IntRange(0, 3).Draw(t, "zone")),
				Price: resources.Money(rapid.IntRange(1, 9).Draw(t, "price")), Subnet: fmt.Sprint(i),
			})
		}
		bounds := launch.Bounds{Types: rapid.IntRange(1, 12).Draw(t, "types"),
			Overrides: rapid.IntRange(1, 20).Draw(t, "most"), Bytes: 1 << 20}
		least := rapid.IntRange(0, 6).Draw(t, "least")
		got := launch.Cut(all, bounds, []launch.Least{{Value: family, Least: least}})
		count := func(list []launch.Override, of func(launch.Override) string) int {
			seen := map[string]bool{}
			for _, o := range list {
				seen[of(o)] = true
			}
			return len(seen)
		}
		zone := func(o launch.Override) string { return o.Zone }
		kind := func(o launch.Override) string { return o.Type }
		ofFamily := func(o launch.Override) string { return family(o.Type) }
		if count(got, zone) != count(all, zone) {
			t.Fatalf("zones were lost: %v", got)
		}
		if count(got, ofFamily) < min(least, count(all, ofFamily)) {
			t.Fatalf("fewer than %d families: %v", least, got)
		}
		if !slices.IsSortedFunc(got, func(a, b launch.Override) int { return int(a.Price - b.Price) }) {
			t.Fatalf("not cheapest first: %v", got)
		}
		needed := count(all, zone) + min(least, count(all, ofFamily)) // overrides that may have to stay
		if len(got) > max(bounds.Overrides, needed) || count(got, kind) > max(bounds.Types, needed) {
			t.Fatalf("%d overrides of %d types, bounds %+v, %d needed", len(got), count(got, kind), bounds, needed)
		}
	})
}
