package requirement_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// TestConflictIsSmallest: of rules that leave nothing together, those that are named leave nothing either, and each of
// them is needed for that.
func TestConflictIsSmallest(t *testing.T) {
	t.Parallel()
	keys := []requirement.Key{"a", "b", "c", "d"}
	rapid.Check(t, func(t *rapid.T) {
		offers := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]string{"0", "1"}), len(keys), len(keys)), 0,
			6).Draw(t, "offers")
		var rules []requirement.Requirement
		for _, key := range keys {
			rules = append(rules, requirement.OneOf(key, rapid.SampledFrom([]string{"0", "1"}).Draw(t, string(key))))
		}
		left := func(part []requirement.Requirement) bool {
			return slices.ContainsFunc(offers, func(offer []string) bool {
				return !slices.ContainsFunc(part, func(r requirement.Requirement) bool {
					return !r.Has(offer[slices.Index(keys, r.Key())])
				})
			})
		}
		if left(rules) {
			return
		}
		needed := requirement.Conflict(rules, left)
		if left(needed) {
			t.Fatalf("%v leave something of %v", needed, offers)
		}
		for i := range needed {
			if !left(slices.Delete(slices.Clone(needed), i, i+1)) {
				t.Fatalf("%v: %v is not needed", needed, needed[i])
			}
		}
	})
}
