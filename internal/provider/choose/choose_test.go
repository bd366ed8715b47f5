package choose_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/choose"
)

// sold is an offering for tests, with its price in micro-dollars per hour.
func sold(zone, capacityType string, price resources.Money, available bool) catalog.Offering {
	return catalog.Offering{Zone: zone, CapacityType: capacityType, Price: price, Available: available}
}

// machine is a type for tests with that many cores.
func machine(name string, cores int64, offerings ...catalog.Offering) catalog.Type {
	return catalog.Type{Name: name, Capacity: resources.Amounts{"cpu": 1000 * cores},
		Overhead: resources.Amounts{"cpu": 100}, Offerings: offerings}
}

// texts prints choices as type/zone/capacity type.
func texts(list []choose.Choice) string {
	var names []string
	for _, c := range list {
		names = append(names, choose.Name(c.Type, c.Offering).String())
	}
	return strings.Join(names, " ")
}

// P-11: reserved offerings come first, then the cheapest; at equal prices spot comes before on-demand, then types are
// ordered by name. Offerings that are sold out, too small, or in another zone than requested are left out.
func TestOfferingsInOrder(t *testing.T) {
	t.Parallel()
	c := catalog.Catalog{Types: []catalog.Type{
		machine("b", 4, sold("a", catalog.OnDemand, 50, true), sold("a", catalog.Spot, 50, true),
			sold("a", catalog.Reserved, 90, true)),
		machine("a", 4, sold("a", catalog.OnDemand, 50, true), sold("b", catalog.OnDemand, 1, true),
			sold("a", catalog.Spot, 2, false)),
		machine("small", 1, sold("a", catalog.OnDemand, 3, true)),
	}}
	d := choose.Demand{Requirements: requirement.NewSet(requirement.OneOf(catalog.LabelZone, "a")),
		Requests: resources.Amounts{"cpu": 2000}}
	list, err := d.All(c)
	const want = "b/a/reserved b/a/spot a/a/on-demand b/a/on-demand"
	if got := texts(list); got != want || err != nil {
		t.Errorf("in order %s, error %v; want %s", got, err, want)
	}
}

// The best offering is the first of all offerings. Without one the error is the same: it says what was requested, and
// what is sold out or otherwise what comes closest.
func TestTheBestIsTheFirst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var c catalog.Catalog
		for i := range rapid.IntRange(0, 4).Draw(t, "types") {
			kind := machine(fmt.Sprintf("t%d", i), rapid.Int64Range(1, 4).Draw(t, "cores"))
			for range rapid.IntRange(0, 4).Draw(t, "offerings") {
				kind.Offerings = append(kind.Offerings, sold(
					rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone"),
					rapid.SampledFrom([]string{catalog.Spot, catalog.OnDemand, catalog.Reserved}).Draw(t,
						"capacity type"),
					resources.Money(rapid.IntRange(1, 3).Draw(t, "price")), rapid.Bool().Draw(t, "available")))
			}
			c.Types = append(c.Types, kind)
		}
		zones := rapid.SampledFrom([][]string{{"a"}, {"b"}, {"a", "b"}}).Draw(t, "zones")
		d := choose.Demand{
			Requirements: requirement.NewSet(requirement.OneOf(catalog.LabelZone, zones...)),
			Requests:     resources.Amounts{"cpu": 1000 * rapid.Int64Range(0, 3).Draw(t, "request")}, Tie: "claim",
		}
		best, one := d.Best(c)
		all, several := d.All(c)
		if fmt.Sprint(one) != fmt.Sprint(several) || (one == nil) != (len(all) > 0) {
			t.Fatalf("the best: %v; all: %v, error %v", one, texts(all), several)
		}
		var failure *provider.InsufficientCapacityError
		if one != nil {
			if !errors.As(one, &failure) || len(failure.Tried) == 0 && failure.Conflict == "" {
				t.Fatalf("error %v, want what was tried or what comes closest", one)
			}
			return
		}
		if texts(all[:1]) != texts([]choose.Choice{best}) {
			t.Fatalf("the best is %s, the first %s", texts([]choose.Choice{best}), texts(all))
		}
		if !slices.IsSortedFunc(all, func(a, b choose.Choice) int {
			return d.Compare(a.Type, a.Offering, b.Type, b.Offering)
		}) {
			t.Fatalf("not in order: %s", texts(all))
		}
	})
}
