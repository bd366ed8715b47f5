package translate_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// choosing builds one condition of an overlay.
func choosing(key string, operator corev1.NodeSelectorOperator,
	values ...string) karpenterv1alpha1.NodeSelectorRequirement {
	return karpenterv1alpha1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
}

func overlay(name string, change func(*karpenterv1alpha1.NodeOverlaySpec),
	requirements ...karpenterv1alpha1.NodeSelectorRequirement) *karpenterv1alpha1.NodeOverlay {
	o := &karpenterv1alpha1.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: karpenterv1alpha1.NodeOverlaySpec{Requirements: requirements}}
	change(&o.Spec)
	return o
}

func priced(price string) func(*karpenterv1alpha1.NodeOverlaySpec) {
	return func(s *karpenterv1alpha1.NodeOverlaySpec) { s.Price = &price }
}

func adjusted(by string) func(*karpenterv1alpha1.NodeOverlaySpec) {
	return func(s *karpenterv1alpha1.NodeOverlaySpec) { s.PriceAdjustment = &by }
}

func having(name, amount string) func(*karpenterv1alpha1.NodeOverlaySpec) {
	return func(s *karpenterv1alpha1.NodeOverlaySpec) {
		s.Capacity = corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(amount)}
	}
}

func weighing(weight int32, change func(*karpenterv1alpha1.NodeOverlaySpec)) func(*karpenterv1alpha1.NodeOverlaySpec) {
	return func(s *karpenterv1alpha1.NodeOverlaySpec) { change(s); s.Weight = &weight }
}

// twoTypes offers each in two zones on demand for 0.100 and as spot for 0.040.
func twoTypes() catalog.Catalog {
	c := catalog.Catalog{WellKnown: map[requirement.Key]bool{catalog.LabelInstanceType: true, catalog.LabelZone: true,
		catalog.LabelCapacityType: true, "family": true}}
	for name, family := range map[string]string{"m5.large": "m5", "c5.large": "c5"} {
		t := catalog.Type{Name: name, Labels: requirement.FromLabels(map[string]string{"family": family}),
			Capacity: resources.Amounts{"cpu": 2000, "example.com/old": 3}}
		for _, zone := range []string{"a", "b"} {
			t.Offerings = append(t.Offerings,
				catalog.Offering{Zone: zone, CapacityType: catalog.OnDemand, Price: 100_000, Available: true},
				catalog.Offering{Zone: zone, CapacityType: catalog.Spot, Price: 40_000, Available: true})
		}
		c.Types = append(c.Types, t)
	}
	return c
}

func compiled(t *testing.T, objects ...*karpenterv1alpha1.NodeOverlay) []translate.Overlay {
	t.Helper()
	var list []translate.Overlay
	for _, object := range objects {
		o, err := translate.NewOverlay(object)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, o)
	}
	return list
}

// priceIn returns the price of an offering in a catalogue.
func priceIn(c catalog.Catalog, name, zone, capacityType string) resources.Money {
	for _, kind := range c.Types {
		for _, o := range kind.Offerings {
			if kind.Name == name && o.Zone == zone && o.CapacityType == capacityType {
				return o.Price
			}
		}
	}
	return resources.Unpriced
}

// P-11: an overlay changes prices of the offerings that it selects.
func TestAnOverlayChangesPrices(t *testing.T) {
	t.Parallel()
	spot := choosing("karpenter.sh/capacity-type", corev1.NodeSelectorOpIn, "spot")
	for name, row := range map[string]struct {
		change   func(*karpenterv1alpha1.NodeOverlaySpec)
		spot, od resources.Money
	}{
		"a price":                   {priced("0.25"), 250_000, 100_000},
		"a percentage more":         {adjusted("+10%"), 44_000, 100_000},
		"a percentage less":         {adjusted("-12.5%"), 35_000, 100_000},
		"an amount more":            {adjusted("+0.002"), 42_000, 100_000},
		"an amount less":            {adjusted("-.01"), 30_000, 100_000},
		"never below nothing":       {adjusted("-3"), 0, 100_000},
		"all of it":                 {adjusted("-100%"), 0, 100_000},
		"nothing but the resources": {having("example.com/new", "1"), 40_000, 100_000},
		"a large percentage":        {adjusted("+1000000%"), 400_040_000, 100_000},
		// Such offerings are the last choice, and the first to be replaced. Nobody says that the price is unknown.
		"never a million":           {priced("1000000"), resources.MaxPrice - 1, 100_000},
		"nor more":                  {priced("5000000"), resources.MaxPrice - 1, 100_000},
		"nor anything endless":      {priced(strings.Repeat("9", 400)), resources.MaxPrice - 1, 100_000},
		"an amount up to a million": {adjusted("+1000000"), resources.MaxPrice - 1, 100_000},
		"an amount above it":        {adjusted("+99999999"), resources.MaxPrice - 1, 100_000},
		"a percentage above it":     {adjusted("+5000000000%"), resources.MaxPrice - 1, 100_000},
		"an endless percentage": {
			adjusted("+" + strings.Repeat("9", 400) + "%"), resources.MaxPrice - 1, 100_000,
		},
		"a large amount less": {adjusted("-99999999"), 0, 100_000},
	} {
		got := translate.Correct(twoTypes(), compiled(t, overlay("o", row.change, spot)))
		if s, od := priceIn(got, "m5.large", "a", "spot"), priceIn(got, "m5.large", "a", "on-demand"); s != row.spot ||
			od != row.od {
			t.Errorf("%s: spot %s, on-demand %s; want %s and %s", name, s, od, row.spot, row.od)
		}
	}
	unknown := twoTypes()
	for i := range unknown.Types {
		for j := range unknown.Types[i].Offerings {
			unknown.Types[i].Offerings[j].Price = resources.MaxPrice
		}
	}
	for by, want := range map[string]resources.Money{"-12.5%": resources.MaxPrice, "-0.5": resources.MaxPrice,
		"+99999999": resources.MaxPrice, "": 250_000} {
		change := priced("0.25")
		if by != "" {
			change = adjusted(by)
		}
		if got := priceIn(translate.Correct(unknown, compiled(t, overlay("o", change, spot))), "m5.large", "a",
			"spot"); got != want {
			t.Errorf("a price that nobody knows becomes %s by %q; want %s", got, by, want)
		}
	}
	before := twoTypes()
	translate.Correct(before, compiled(t, overlay("o", priced("9"))))
	if priceIn(before, "m5.large", "a", "spot") != 40_000 {
		t.Error("the catalogue that was handed in is another one now; catalogues are never changed")
	}
}

// P-11: an overlay selects by labels of the type, of the offering, and of the pool.
func TestAnOverlayChoosesByLabels(t *testing.T) {
	t.Parallel()
	c := twoTypes()
	pool := requirement.FromLabels(map[string]string{"karpenter.sh/nodepool": "default", "team": "red"})
	for name, row := range map[string]struct {
		requirement karpenterv1alpha1.NodeSelectorRequirement
		changed     int // of 8 offerings
	}{
		"instance type": {
			choosing("node.kubernetes.io/instance-type", corev1.NodeSelectorOpIn, "m5.large"), 4,
		},
		"by its old name": {choosing("beta.kubernetes.io/instance-type", corev1.NodeSelectorOpNotIn,
			"m5.large"), 4},
		"zone": {
			choosing("topology.kubernetes.io/zone", corev1.NodeSelectorOpIn, "b", "c"), 4,
		},
		"another label of the type":        {choosing("family", corev1.NodeSelectorOpIn, "c5"), 4},
		"a label that no type lacks":       {choosing("family", corev1.NodeSelectorOpDoesNotExist), 0},
		"the pool":                         {choosing("karpenter.sh/nodepool", corev1.NodeSelectorOpIn, "default"), 8},
		"another pool":                     {choosing("karpenter.sh/nodepool", corev1.NodeSelectorOpIn, "other"), 0},
		"a label of the pool":              {choosing("team", corev1.NodeSelectorOpExists), 8},
		"a label that the pool has not":    {choosing("rack", corev1.NodeSelectorOpExists), 0},
		"a label that the pool may not be": {choosing("team", corev1.NodeSelectorOpNotIn, "red"), 0},
	} {
		o := compiled(t, overlay("o", priced("7"), row.requirement))
		got := 0
		if o[0].Concerns(c, pool) {
			for _, kind := range translate.Correct(c, o).Types {
				for _, offering := range kind.Offerings {
					if offering.Price == 7*resources.Dollar {
						got++
					}
				}
			}
		}
		if got != row.changed {
			t.Errorf("%s: %d offerings changed; want %d", name, got, row.changed)
		}
	}
	open := requirement.NewSet(requirement.Present("team"))
	if o := compiled(t, overlay("o", priced("7"), choosing("team", corev1.NodeSelectorOpIn, "red"))); o[0].Concerns(c,
		open) {
		t.Error("a pool that leaves the label to its pods is changed; it is not sure to have it")
	}
}

// P-11: capacity adds extended resources, or replaces them.
func TestAnOverlayChangesCapacity(t *testing.T) {
	t.Parallel()
	got := translate.Correct(twoTypes(), compiled(t,
		overlay("new", having("example.com/new", "2"), choosing("family", corev1.NodeSelectorOpIn, "m5")),
		overlay("old", having("example.com/old", "9"))))
	for _, kind := range got.Types {
		want := map[string]int64{"m5.large": 2, "c5.large": 0}[kind.Name]
		if kind.Capacity["example.com/new"] != want || kind.Capacity["example.com/old"] != 9 ||
			kind.Capacity["cpu"] != 2000 {
			t.Errorf("%s has %v; want %d of the new, 9 of the old, and its cores", kind.Name, kind.Capacity, want)
		}
	}
}

// P-11: of overlays that change the same value, the one with the higher weight applies, for each value separately.
func TestTheHeavierOverlayHolds(t *testing.T) {
	t.Parallel()
	list := compiled(t, overlay("light", priced("1")),
		overlay("heavy", weighing(10, priced("2")), choosing("family", corev1.NodeSelectorOpIn, "m5")),
		overlay("heaviest", weighing(20, having("example.com/new", "1"))))
	accepted, verdicts := translate.JudgeOverlays(list, []translate.View{{Catalog: twoTypes()}})
	got := translate.Correct(twoTypes(), accepted)
	if m, c := priceIn(got, "m5.large", "a", "spot"), priceIn(got, "c5.large", "a", "spot"); m != 2*resources.Dollar ||
		c != resources.Dollar || got.Types[0].Capacity["example.com/new"] != 1 {
		t.Errorf("prices %s and %s, capacity %v; want 2, 1, and the resource of the heaviest; verdicts %v", m, c,
			got.Types[0].Capacity, verdicts)
	}
}

// P-11: equal weights that change the same value are a conflict: the first by name applies. The other names the one it
// conflicts with, and has no effect anywhere.
func TestOverlaysOfOneWeightConflict(t *testing.T) {
	t.Parallel()
	m5 := choosing("family", corev1.NodeSelectorOpIn, "m5")
	pools := []translate.View{{Catalog: twoTypes()}}
	for name, row := range map[string]struct {
		second *karpenterv1alpha1.NodeOverlay
		what   string // "" for no conflict
	}{
		"the same price": {overlay("second", priced("2")), "the price of instance type m5.large"},
		"another type": {
			overlay("second", priced("2"), choosing("family", corev1.NodeSelectorOpIn, "c5")), "",
		},
		"another weight":         {overlay("second", weighing(1, priced("2"))), ""},
		"price against resource": {overlay("second", having("example.com/other", "1")), ""},
		"the same resource": {overlay("second", having("example.com/new", "1")),
			"example.com/new of instance type m5.large"},
		"another capacity type too": {
			overlay("second", adjusted("+1%"), choosing("karpenter.sh/capacity-type", corev1.NodeSelectorOpIn,
				"spot")), "the price",
		},
	} {
		first := overlay("first", func(s *karpenterv1alpha1.NodeOverlaySpec) {
			priced("1")(s)
			having("example.com/new", "1")(s)
		}, m5)
		accepted, verdicts := translate.JudgeOverlays(compiled(t, row.second, first), pools)
		verdict := verdicts["second"]
		if verdicts["first"].Reason != "" || (verdict.Reason == translate.OverlayConflict) != (row.what != "") ||
			!strings.Contains(verdict.Message, row.what) {
			t.Errorf("%s: verdicts %+v; want a conflict over %q for the second", name, verdicts, row.what)
		}
		if want := map[bool]int{true: 1, false: 2}[row.what != ""]; len(accepted) != want {
			t.Errorf("%s: %d overlays in effect; want %d", name, len(accepted), want)
		}
	}
}

// K-46: capacity applies to the whole type, even if an overlay selects only some of its offerings; the overlay says
// so. One that selects nothing says so, too.
func TestK46_CapacityOfSomeOfferingsIsTheWholeTypes(t *testing.T) {
	t.Parallel()
	zone := choosing("topology.kubernetes.io/zone", corev1.NodeSelectorOpIn, "a")
	accepted, verdicts := translate.JudgeOverlays(compiled(t, overlay("part", having("example.com/new", "1"), zone),
		overlay("none", priced("1"), choosing("family", corev1.NodeSelectorOpIn, "x9"))),
		[]translate.View{{Catalog: twoTypes()}})
	if v := verdicts["part"]; v.Reason != "" || !v.Whole ||
		!strings.Contains(v.Message, "choose 2 of the 4 offerings of instance type") {
		t.Errorf("an overlay of the capacity of some offerings: %+v", v)
	}
	for _, changed := range translate.Correct(twoTypes(), accepted).Types {
		if got := changed.Capacity["example.com/new"]; got != 1 {
			t.Errorf("instance type %s has %d of the resource, want 1", changed.Name, got)
		}
	}
	if v := verdicts["none"]; v.Reason != "" || !strings.Contains(v.Message, "choose no instance type") {
		t.Errorf("an overlay that chooses nothing: %+v", v)
	}
}

// K-46: huge pages that an overlay adds are taken off the memory for pods, as kubelets do it. A pod that has no room
// beside them gets a larger type.
func TestK46_HugePagesAreTakenOffMemory(t *testing.T) {
	t.Parallel()
	const gi = int64(1) << 30
	own := catalog.Catalog{WellKnown: map[requirement.Key]bool{catalog.LabelInstanceType: true}}
	for name, size := range map[string]int64{"medium": 16, "large": 32} {
		own.Types = append(own.Types, catalog.Type{Name: name,
			Capacity: resources.Amounts{"cpu": 8000, "memory": size * gi, "pods": 110, "hugepages-1Gi": 2 * gi},
			Overhead: resources.Amounts{"memory": gi},
			Offerings: []catalog.Offering{{Zone: "a", CapacityType: catalog.OnDemand, Available: true,
				Price: resources.Money(size) * 10_000}}})
	}
	for name, row := range map[string]struct {
		capacity map[string]string
		medium   int64 // bytes of memory for pods
		gets     string
	}{
		"nothing huge":           {map[string]string{"example.com/new": "3"}, 15 * gi, "medium"},
		"huge pages":             {map[string]string{"hugepages-2Mi": "8Gi"}, 7 * gi, "large"},
		"of two sizes":           {map[string]string{"hugepages-2Mi": "2Gi", "hugepages-1Gi": "5Gi"}, 10 * gi, "medium"},
		"what it has anyway":     {map[string]string{"hugepages-1Gi": "2Gi"}, 15 * gi, "medium"},
		"less than it has":       {map[string]string{"hugepages-1Gi": "1Gi"}, 15 * gi, "medium"},
		"more than it has of it": {map[string]string{"hugepages-2Mi": "20Gi"}, 0, "large"},
		"endless":                {map[string]string{"hugepages-2Mi": "1Ei", "hugepages-1Gi": "1Ei"}, 0, ""},
	} {
		o := overlay("o", func(s *karpenterv1alpha1.NodeOverlaySpec) {
			s.Capacity = corev1.ResourceList{}
			for resourceName, amount := range row.capacity {
				s.Capacity[corev1.ResourceName(resourceName)] = resource.MustParse(amount)
			}
		})
		got := translate.Correct(own, compiled(t, o))
		space := resources.NewSpace()
		index := catalog.NewIndex(got, space)
		for _, kind := range index.Types {
			if left := kind.Allocatable.At(resources.Memory); kind.Name == "medium" && left != row.medium {
				t.Errorf("%s: %d bytes are left to pods, want %d", name, left, row.medium)
			}
		}
		web := &cluster.Pod{Namespace: "default", Name: "web", UID: "1", Shape: cluster.NewShapes().Intern(
			&cluster.Shape{Requests: space.Vector(resources.Amounts{"cpu": 1000, "memory": 10 * gi})})}
		p := engine.Provision(cluster.New(cluster.Snapshot{Names: space.Names(), Pending: []*cluster.Pod{web},
			Pools: []*cluster.Pool{{Name: "default", UID: "2", Catalog: index,
				Limits: limit.Unlimited()}}}))
		gets := ""
		if len(p.Launches) == 1 {
			gets = p.Launches[0].Types[0]
		}
		if gets != row.gets {
			t.Errorf("%s: the pod gets %q, want %q", name, gets, row.gets)
		}
	}
	if own.Types[0].Overhead["memory"] != gi {
		t.Error("the catalogue that was handed in is another one now; catalogues are never changed")
	}
}

// P-11, V-02: the error for an invalid value names field, value and what is allowed, even if the CRD accepted it.
func TestABadOverlayNamesItsField(t *testing.T) {
	t.Parallel()
	both := func(s *karpenterv1alpha1.NodeOverlaySpec) { priced("1")(s); adjusted("+1")(s) }
	for _, row := range []struct {
		object *karpenterv1alpha1.NodeOverlay
		want   string
	}{
		{overlay("o", priced("-1")),
			`spec.price is "-1": want a decimal number of dollars per hour, 0 or more, for example 0.25`},
		{overlay("o", priced("1e3")), `spec.price is "1e3"`},
		{overlay("o", priced("NaN")), `spec.price is "NaN"`},
		{overlay("o", both), `spec.price and spec.priceAdjustment exclude each other`},
		{overlay("o", adjusted("5%")), `spec.priceAdjustment is "5%": want a signed number`},
		{overlay("o", adjusted("-101%")), `not below -100%`},
		{overlay("o", adjusted("+")), `spec.priceAdjustment is "+"`},
		{overlay("o", adjusted("")), `spec.priceAdjustment is ""`},
		{overlay("o", adjusted("+1e9%")), `spec.priceAdjustment is "+1e9%"`},
		{overlay("o", having("cpu", "1")), `spec.capacity[cpu]: only extended resources can be changed`},
		{overlay("o", having("example.com/new", "-1")), `spec.capacity[example.com/new] is -1: want 0 or more`},
		{overlay("o", priced("1"), choosing("zone", corev1.NodeSelectorOpIn)), `spec.requirements[0]: `},
		{overlay("o", priced("1"), choosing("zone", "Near", "a")), `spec.requirements[0]: `},
		{overlay("o", priced("1"), choosing("zone", corev1.NodeSelectorOpIn, "a"),
			choosing("zone", corev1.NodeSelectorOpIn, "b")), `those on zone contradict each other`},
	} {
		if _, err := translate.NewOverlay(row.object); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("error %v; want %q in it", err, row.want)
		}
	}
}
