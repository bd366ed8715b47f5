package conformance

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
)

// folded returns what entries and labels together allow (K1). An entry that cannot be parsed allows nothing for its
// label. A name that Karpenter does not read says nothing.
func folded(entries []karpenterv1.NodeSelectorRequirementWithMinValues, labels map[string]string) fold.Set {
	read := make([]fold.Requirement, 0, len(entries))
	for _, e := range entries {
		entry := fold.Requirement{Key: e.Key, Operator: fold.Operator(e.Operator), Values: e.Values}
		if e.Operator == corev1.NodeSelectorOpExists || e.Operator == corev1.NodeSelectorOpDoesNotExist {
			entry.Values = nil // Karpenter ignores them (K4)
		}
		if fold.ReadByKarpenter(e.Key) {
			read = append(read, entry)
		}
	}
	set, _, _ := fold.Of(read) // an invalid entry allows nothing for its label
	fixed := make([]fold.Allowed, 0, len(labels))
	for label, value := range labels {
		if fold.ReadByKarpenter(label) {
			fixed = append(fixed, fold.OneOf(fold.Canonical(label), value))
		}
	}
	return set.And(fold.NewSet(fixed...))
}

// within reports whether the policy allows everything that r allows.
func within(policy, r fold.Allowed) bool { return r.And(policy).Equal(r) }

// label returns the value of a label, by its current name or else by an alias.
func label(labels map[string]string, key fold.Key) (string, bool) {
	if value, found := labels[string(key)]; found {
		return value, true
	}
	var aliases []string
	for name := range labels {
		if fold.Canonical(name) == key && fold.ReadByKarpenter(name) {
			aliases = append(aliases, name)
		}
	}
	if len(aliases) == 0 {
		return "", false
	}
	return labels[slices.Min(aliases)], true
}

// onEveryType returns the labels that every instance type of every provider has a value for. If a set allows no value
// of one of them, Karpenter launches nothing. If nothing is left of another label, Karpenter launches nodes without it
// (K2).
func onEveryType() []fold.Key {
	return []fold.Key{
		corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, corev1.LabelArchStable, corev1.LabelOSStable,
		karpenterv1.CapacityTypeLabelKey,
	}
}

// closed reports whether Karpenter launches nothing at all for a set.
func closed(set fold.Set) bool {
	return slices.ContainsFunc(onEveryType(), func(key fold.Key) bool { return !set.Get(key).AllowsPresent() })
}

// leastOf returns the largest minValues for each label in a list.
func leastOf(entries []karpenterv1.NodeSelectorRequirementWithMinValues) map[fold.Key]int {
	least := map[fold.Key]int{}
	for _, entry := range entries {
		if entry.MinValues != nil && fold.ReadByKarpenter(entry.Key) {
			key := fold.Canonical(entry.Key)
			least[key] = max(least[key], *entry.MinValues)
		}
	}
	return least
}

// shown is how many bytes of a set of values a message shows.
const shown = 200

// describe says what a requirement allows.
func describe(r fold.Allowed) string {
	text := r.String()
	if len(text) > shown {
		text = strings.ToValidUTF8(text[:shown], "") + "..."
	}
	return text
}
