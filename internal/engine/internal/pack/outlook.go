package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// outlook is what a node of a pool may become: any of the offers, with custom labels as far as these are decided.
type outlook struct {
	pool   *pool
	offers catalog.Bits    // every offering that still fits
	custom requirement.Set // labels that the provider does not decide
}

// labelValue returns what is known of the node's label: its value and whether it is decided ("" and decided: the node
// will not have it).
func (o *outlook) labelValue(key string) (string, bool) {
	k := requirement.Key(key)
	if o.pool.Catalog.Known(k) {
		return decided(o.pool.Catalog.Values(k, o.offers), o.pool.Catalog.Lacking(k, o.offers))
	}
	allowed := o.custom.Get(k)
	if !o.custom.Holds(k) {
		return "", true
	}
	if value, single := allowed.Single(); single {
		return value, true
	}
	return "", !allowed.AllowsPresent()
}

// decided returns what is known of a label that may have these values, or be lacking.
func decided(values []string, lacking bool) (string, bool) {
	switch {
	case len(values) == 0:
		return "", true
	case len(values) == 1 && !lacking:
		return values[0], true
	}
	return "", false
}

// candidates returns the values that an open label of the node may still get, the value of the cheapest offer first.
func (o *outlook) candidates(key string) []string {
	k := requirement.Key(key)
	if !o.pool.Catalog.Known(k) {
		if values, finite := o.custom.Get(k).Values(); finite {
			return values
		}
		if value, some := o.custom.Get(k).Example(); some {
			return []string{value}
		}
		return nil
	}
	values := o.pool.Catalog.Values(k, o.offers)
	first := o.offers.First()
	if first < 0 {
		return nil
	}
	if cheapest, single := o.pool.Catalog.Offers[first].Labels.Get(k).Single(); single {
		values = slices.DeleteFunc(values, func(v string) bool { return v == cheapest })
		values = append([]string{cheapest}, values...)
	}
	return values
}

// mayLack reports whether the node may turn out not to have a label.
func (o *outlook) mayLack(key requirement.Key) bool {
	if o.pool.Catalog.Known(key) {
		return o.pool.Catalog.Lacking(key, o.offers)
	}
	return o.custom.Get(key).AllowsAbsent()
}
