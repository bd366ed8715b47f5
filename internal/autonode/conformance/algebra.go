package conformance

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// fold is what a list of entries and labels allows together (K1). An entry that cannot be read allows nothing for its label.
func fold(entries []karpenterv1.NodeSelectorRequirementWithMinValues, labels map[string]string) requirement.Set {
	read := slices.Clone(entries)
	for i := range read { // Karpenter ignores the values of these two (K4)
		if read[i].Operator == corev1.NodeSelectorOpExists || read[i].Operator == corev1.NodeSelectorOpDoesNotExist {
			read[i].Values = nil
		}
	}
	set, _, _ := translate.Requirements(read) // what cannot be read is Nothing there, and so inside of no policy: see outside
	fixed := make([]requirement.Requirement, 0, len(labels))
	for label, value := range labels {
		fixed = append(fixed, requirement.OneOf(translate.Key(label), value))
	}
	return set.And(requirement.NewSet(fixed...))
}

// within reports whether everything that r allows is allowed by the policy.
func within(policy, r requirement.Requirement) bool { return r.And(policy).Equal(r) }

// label returns the value of a label under its name in use now.
func label(labels map[string]string, key requirement.Key) (string, bool) {
	if value, found := labels[string(key)]; found {
		return value, true
	}
	aliases := make([]string, 0, 1)
	for name := range labels {
		if translate.Key(name) == key {
			aliases = append(aliases, name)
		}
	}
	if len(aliases) == 0 {
		return "", false
	}
	return labels[slices.Min(aliases)], true
}

// onEveryType are the labels that every instance type of every provider has a value for. What allows none of these launches
// nothing. On other labels Karpenter launches nodes without the label when nothing is left of it (K2).
func onEveryType() []requirement.Key {
	return []requirement.Key{
		corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, corev1.LabelArchStable, corev1.LabelOSStable, karpenterv1.CapacityTypeLabelKey,
	}
}

// closed reports whether a set lets Karpenter launch nothing at all.
func closed(set requirement.Set) bool {
	return slices.ContainsFunc(onEveryType(), func(key requirement.Key) bool { return !set.Get(key).AllowsPresent() })
}

// leastOf returns the largest minValues that a list has for each label.
func leastOf(entries []karpenterv1.NodeSelectorRequirementWithMinValues) map[requirement.Key]int {
	least := map[requirement.Key]int{}
	for _, entry := range entries {
		if entry.MinValues != nil {
			key := translate.Key(entry.Key)
			least[key] = max(least[key], *entry.MinValues)
		}
	}
	return least
}

// shown is how much of a set of values a message shows.
const shown = 200

// describe says what a requirement allows.
func describe(r requirement.Requirement) string {
	text := r.String()
	if len(text) > shown {
		text = strings.ToValidUTF8(text[:shown], "") + "..."
	}
	return text
}
