package pool

import (
	"fmt"
	"slices"
	"strings"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// anyType reports whether any instance type satisfies all requirements in set, and if not, which keys conflict (V-11).
// It considers all offerings, available or not: sold-out offerings are no fault of the pool.
func anyType(set requirement.Set, invalid error, offered catalog.Catalog) condition.Value {
	const kind = karpenterv1.ConditionTypeInstanceTypesCompatible
	if invalid != nil {
		return condition.Unknown(kind, "RequirementsInvalid", invalid.Error())
	}
	if keys := set.EmptyKeys(); len(keys) > 0 {
		return condition.False(kind, "NoCompatibleInstanceTypes",
			fmt.Sprintf("no instance type can satisfy the requirements: those on %s contradict each other",
				joined(keys)))
	}
	rules := decidedByProvider(set, offered)
	if left(offered, rules) {
		return condition.True(kind, "InstanceTypesCompatible", "")
	}
	return condition.False(kind, "NoCompatibleInstanceTypes",
		fmt.Sprintf("none of %d instance types is left after the requirements; in conflict: %s", len(offered.Types),
			conflict(offered, rules)))
}

func joined(keys []requirement.Key) string {
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = string(key)
	}
	return strings.Join(texts, ", ")
}

// decidedByProvider returns the requirements on labels that the provider decides. The pool itself puts all other
// labels on its nodes.
func decidedByProvider(set requirement.Set, offered catalog.Catalog) []requirement.Requirement {
	var rules []requirement.Requirement
	for r := range set.All() {
		if decides(offered, r.Key()) {
			rules = append(rules, r)
		}
	}
	return rules
}

// decides reports whether the provider decides a label.
func decides(offered catalog.Catalog, key requirement.Key) bool {
	switch key {
	case catalog.LabelInstanceType, catalog.LabelZone, catalog.LabelCapacityType:
		return true
	}
	return offered.WellKnown[key] || slices.ContainsFunc(offered.Types, func(t catalog.Type) bool {
		return t.Labels.Holds(key) ||
			slices.ContainsFunc(t.Offerings, func(o catalog.Offering) bool { return o.Labels.Holds(key) })
	})
}

// left reports whether an instance type satisfies all rules.
func left(offered catalog.Catalog, rules []requirement.Requirement) bool {
	return slices.ContainsFunc(offered.Types, func(t catalog.Type) bool { return offers(t, rules) })
}

// offers reports whether one offering of the type satisfies all rules.
func offers(t catalog.Type, rules []requirement.Requirement) bool {
	for _, o := range t.Offerings {
		if !slices.ContainsFunc(rules, func(r requirement.Requirement) bool {
			return !label(t, o, r.Key()).Intersects(r)
		}) {
			return true
		}
	}
	return false
}

// label returns the values that a label may have on a node of the offering.
func label(t catalog.Type, o catalog.Offering, key requirement.Key) requirement.Requirement {
	switch key {
	case catalog.LabelInstanceType:
		return requirement.OneOf(key, t.Name)
	case catalog.LabelZone:
		return requirement.OneOf(key, o.Zone)
	case catalog.LabelCapacityType:
		return requirement.OneOf(key, o.CapacityType)
	}
	if !t.Labels.Holds(key) && !o.Labels.Holds(key) {
		return requirement.Absent(key)
	}
	return t.Labels.Get(key).And(o.Labels.Get(key))
}

// conflict names a minimal set of rules that no instance type satisfies together.
func conflict(offered catalog.Catalog, rules []requirement.Requirement) string {
	needed := requirement.Conflict(rules, func(part []requirement.Requirement) bool { return left(offered, part) })
	texts := make([]string, len(needed))
	for i, r := range needed {
		texts[i] = r.String()
	}
	if len(texts) == 0 {
		return "the node class offers nothing"
	}
	return strings.Join(texts, " with ")
}
