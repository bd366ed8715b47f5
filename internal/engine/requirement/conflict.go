package requirement

import "slices"

// Conflict returns a smallest part of rules that leaves nothing: without any one of its rules, something would be
// left. left says whether rules leave anything; all of them together leave nothing.
func Conflict(rules []Requirement, left func([]Requirement) bool) []Requirement {
	needed := rules
	for i := 0; i < len(needed); {
		if without := slices.Delete(slices.Clone(needed), i, i+1); !left(without) {
			needed = without
			continue
		}
		i++
	}
	return needed
}
