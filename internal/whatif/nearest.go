package whatif

import "slices"

// Nearest returns the word that takes the fewest changes of a letter, "" when all are too far: more than a third of the
// letters changed is another word.
func Nearest(word string, words []string) string {
	words = slices.Sorted(slices.Values(words)) // of several that are as near, always the same
	best, found := len(word)/3+1, ""
	for _, other := range words {
		if d := distance(word, other); d < best || d == best && found == "" {
			best, found = d, other
		}
	}
	return found
}

// distance is how many letters have to be added, dropped, changed, or swapped with their neighbour, to get from one
// word to another.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// meant asks about the nearest of some names; "" when none is near.
func meant(name string, names []string) string {
	if near := Nearest(name, names); near != "" {
		return "; do you mean " + near + "?"
	}
	return ""
}
