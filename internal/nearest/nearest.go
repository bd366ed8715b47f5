// Package nearest finds the most likely name behind a mistyped one (U-13). It is pure.
package nearest

import (
	"slices"
	"strings"
)

// Ask returns the end of a message that suggests the name most similar to the mistyped one; "" when none is similar.
func Ask(name string, names []string) string { return Meant(Of(name, names)) }

// Meant returns the end of a message that suggests a word instead of a mistyped one; "" for no word (U-13).
func Meant(word string) string {
	if word == "" {
		return ""
	}
	return "; do you mean " + word + "?"
}

// Of returns the name most similar to a mistyped one: with the fewest letters to change, add, drop or swap, at most a
// third of them. If there is none, it returns a name that contains the mistyped one, or "". Among equals the first in
// order counts.
func Of(name string, names []string) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(names)))
	best, least := "", max(1, len(name)/3)+1
	for _, other := range sorted {
		if other == "" { // an object that has no name yet
			continue
		}
		if d := distance(strings.ToLower(name), strings.ToLower(other)); d < least {
			best, least = other, d
		}
	}
	if best == "" && len(name) > 2 {
		if i := slices.IndexFunc(sorted, func(other string) bool { return strings.Contains(other, name) }); i >= 0 {
			return sorted[i]
		}
	}
	return best
}

// distance counts the letters to change, add, leave out or swap between two words.
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := range len(a) {
		rows[2][0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			rows[2][j+1] = min(rows[1][j+1]+1, rows[2][j]+1, rows[1][j]+change)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				rows[2][j+1] = min(rows[2][j+1], rows[0][j-1]+1)
			}
		}
		rows[0], rows[1], rows[2] = rows[1], rows[2], rows[0]
	}
	return rows[1][len(b)]
}
