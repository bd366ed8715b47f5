package translate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Overlay is a NodeOverlay as planning sees it (P-11): which offerings it changes, and how. It is immutable.
type Overlay struct {
	Name string
	// Weight decides between overlays that change the same thing: the highest wins. 0 when not given.
	Weight int32
	// Requirements choose offerings by their labels. Labels that the provider does not decide choose pools.
	Requirements requirement.Set
	// Price is the change of the price; nil for none.
	Price *PriceChange
	// Capacity are the extended resources that a type has with the overlay, in base units.
	Capacity resources.Amounts
}

// PriceChange turns a price into Keep times the price, plus Add.
type PriceChange struct {
	Keep float64
	Add  resources.Money // per hour; may be negative
}

// of returns the new price, between 0 and resources.MostKnown. An unknown price stays unknown, unless the change
// replaces it.
func (p PriceChange) of(price resources.Money) resources.Money {
	if p.Keep != 0 && price.OfNode() == resources.Unpriced {
		return price
	}
	changed := math.Round(float64(price)*p.Keep) + float64(p.Add)
	return resources.Money(min(max(changed, 0), float64(resources.MostKnown)))
}

// NewOverlay converts a NodeOverlay. The error names every field that cannot be understood, its value and what is
// allowed; the overlay then has no effect. The CRD refuses such values, but an older or changed CRD may not.
func NewOverlay(from *karpenterv1alpha1.NodeOverlay) (Overlay, error) {
	o := Overlay{Name: from.Name, Capacity: resources.Amounts{}}
	if from.Spec.Weight != nil {
		o.Weight = *from.Spec.Weight
	}
	var faults []error
	var parsed []requirement.Requirement
	for i, entry := range from.Spec.Requirements {
		r, err := requirement.New(Key(entry.Key), requirement.Operator(entry.Operator), entry.Values...)
		if err != nil {
			faults = append(faults, fmt.Errorf("spec.requirements[%d]: %w", i, err))
			continue
		}
		parsed = append(parsed, r)
	}
	o.Requirements = requirement.NewSet(parsed...)
	for _, key := range o.Requirements.EmptyKeys() {
		faults = append(faults, fmt.Errorf("spec.requirements: those on %s contradict each other", key))
	}
	var err error
	if o.Price, err = priceChange(from.Spec); err != nil {
		faults = append(faults, err)
	}
	if err := o.addCapacity(from.Spec.Capacity); err != nil {
		faults = append(faults, err)
	}
	return o, errors.Join(faults...)
}

// priceChange reads spec.price or spec.priceAdjustment.
func priceChange(spec karpenterv1alpha1.NodeOverlaySpec) (*PriceChange, error) {
	switch {
	case spec.Price != nil && spec.PriceAdjustment != nil:
		return nil, errors.New("spec.price and spec.priceAdjustment exclude each other: give one of them")
	case spec.Price != nil:
		if !decimal.MatchString(*spec.Price) {
			return nil,
				fmt.Errorf("spec.price is %q: want a decimal number of dollars per hour, 0 or more, for example 0.25",
					*spec.Price)
		}
		return &PriceChange{Add: money(*spec.Price)}, nil
	case spec.PriceAdjustment != nil:
		return adjustment(*spec.PriceAdjustment)
	}
	return nil, nil
}

// adjustment reads +10%, -5.5%, +0.02 or -0.02.
func adjustment(text string) (*PriceChange, error) {
	bad := fmt.Errorf(
		"spec.priceAdjustment is %q: want a signed number of dollars such as -0.05, or a signed percentage such as "+
			"+10%%, not below -100%%",
		text)
	number, percent := strings.CutSuffix(text, "%")
	if number == "" || number[0] != '+' && number[0] != '-' || !decimal.MatchString(number[1:]) {
		return nil, bad
	}
	sign := map[byte]float64{'+': 1, '-': -1}[number[0]]
	if !percent {
		return &PriceChange{Keep: 1, Add: resources.Money(sign) * money(number[1:])}, nil
	}
	points := parse(number[1:])
	if sign*points < -100 {
		return nil, bad
	}
	return &PriceChange{Keep: 1 + sign*points/100}, nil
}

// decimal is a number without sign and exponent.
var decimal = regexp.MustCompile(`^([0-9]+([.][0-9]+)?|[.][0-9]+)$`)

// parse reads a decimal. The only fault can be that it is too large: then it is the largest number.
func parse(text string) float64 {
	number, _ := strconv.ParseFloat(text, 64)
	return min(number, math.MaxFloat64)
}

// money reads a decimal number of dollars. Very high ones mean "last of all", and are cut to what orders so.
func money(text string) resources.Money {
	return resources.Money(math.Round(min(parse(text), resources.MostKnown.Dollars()) * float64(resources.Dollar)))
}

func (o *Overlay) addCapacity(list corev1.ResourceList) error {
	var faults []error
	for name, quantity := range list {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
			faults = append(faults, fmt.Errorf("spec.capacity[%s]: only extended resources can be changed", name))
			continue
		}
		if quantity.Sign() < 0 {
			faults = append(faults, fmt.Errorf("spec.capacity[%s] is %s: want 0 or more", name, quantity.String()))
			continue
		}
		o.Capacity[string(name)] = amountDown(name, quantity)
	}
	slices.SortFunc(faults, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(faults...)
}

// Concerns reports whether the overlay applies to a pool with these requirements. It looks only at labels that the
// catalogue's provider does not decide: the pool must be certain to satisfy them.
func (o Overlay) Concerns(c catalog.Catalog, pool requirement.Set) bool {
	for r := range o.Requirements.All() {
		if decides(c, r.Key()) {
			continue
		}
		if !pool.Holds(r.Key()) {
			if !r.AllowsAbsent() {
				return false
			}
			continue
		}
		if own := pool.Get(r.Key()); !own.And(r).Equal(own) {
			return false
		}
	}
	return true
}

func decides(c catalog.Catalog, key requirement.Key) bool {
	return c.WellKnown[key] || key == catalog.LabelInstanceType || key == catalog.LabelZone ||
		key == catalog.LabelCapacityType
}

// chooses returns which of a type's offerings the overlay changes, by position, and how many.
func (o Overlay) chooses(c catalog.Catalog, t catalog.Type) ([]bool, int) {
	chosen, n := make([]bool, len(t.Offerings)), 0
	for i, offering := range t.Offerings {
		chosen[i] = true
		for r := range o.Requirements.All() {
			if decides(c, r.Key()) && !allows(r, t, offering) {
				chosen[i] = false
				break
			}
		}
		if chosen[i] {
			n++
		}
	}
	return chosen, n
}

// allows reports whether an offering may satisfy r.
func allows(r requirement.Requirement, t catalog.Type, o catalog.Offering) bool {
	switch {
	case r.Key() == catalog.LabelInstanceType:
		return r.Has(t.Name)
	case r.Key() == catalog.LabelZone:
		return r.Has(o.Zone)
	case r.Key() == catalog.LabelCapacityType:
		return r.Has(o.CapacityType)
	case o.Labels.Holds(r.Key()):
		return o.Labels.Get(r.Key()).Intersects(r)
	case t.Labels.Holds(r.Key()):
		return t.Labels.Get(r.Key()).Intersects(r)
	}
	return r.AllowsAbsent()
}

// byWeight orders overlays by weight, highest first, and then by name.
func byWeight(a, b Overlay) int {
	return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(a.Name, b.Name))
}

// Correct returns the catalogue with the changes of the overlays, which must all concern its pool. If several change
// the same thing, the one with the highest weight wins, then the first by name. Capacity belongs to the whole type: an
// overlay that chooses any offering of the type changes it (K-46). c is not changed.
func Correct(c catalog.Catalog, overlays []Overlay) catalog.Catalog {
	ordered := slices.SortedFunc(slices.Values(overlays), byWeight)
	corrected := c
	corrected.Types = slices.Clone(c.Types)
	for i := range corrected.Types {
		correctType(c, &corrected.Types[i], ordered)
	}
	return corrected
}

func correctType(c catalog.Catalog, t *catalog.Type, ordered []Overlay) {
	offerings := slices.Clone(t.Offerings)
	priced := make([]bool, len(offerings))
	capacity := resources.Amounts{}
	for _, o := range ordered {
		chosen, n := o.chooses(c, *t)
		for i := range offerings {
			if o.Price != nil && chosen[i] && !priced[i] {
				offerings[i].Price, priced[i] = o.Price.of(offerings[i].Price), true
			}
		}
		if n == 0 {
			continue
		}
		for name, amount := range o.Capacity {
			if _, set := capacity[name]; !set {
				capacity[name] = amount
			}
		}
	}
	t.Offerings = offerings
	if len(capacity) == 0 {
		return
	}
	all := make(resources.Amounts, len(t.Capacity)+len(capacity))
	for name, amount := range t.Capacity {
		all[name] = amount
	}
	for name, amount := range capacity {
		all[name] = max(amount, t.Overhead[name]) // capacity must not be below what the system keeps for itself
	}
	t.Overhead = besideHugePages(*t, all)
	t.Capacity = all
}

// besideHugePages returns a type's overhead with another capacity. Kubelets take huge pages off the memory that pods
// may request, so those beyond the type's own count as overhead of memory (K-46), at most all of it.
func besideHugePages(t catalog.Type, capacity resources.Amounts) resources.Amounts {
	added := int64(0)
	for name, amount := range capacity {
		if strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) {
			added += max(0, amount-t.Capacity[name])
		}
	}
	if added == 0 {
		return t.Overhead
	}
	all := resources.Amounts{}
	maps.Copy(all, t.Overhead)
	all[resources.NameMemory] = min(all[resources.NameMemory]+added, capacity[resources.NameMemory])
	return all
}
