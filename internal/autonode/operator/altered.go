package operator

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
)

// Difference are the fields in which a product is not as it was written, by their paths, sorted.
type Difference struct {
	// Policy are those that the policy decides about: with one of them the policy is not applied.
	Policy []string
	// Other are all others: the user's own, that the policy says nothing about.
	Other []string
}

// Any reports whether there is any.
func (d Difference) Any() bool { return len(d.Policy)+len(d.Other) > 0 }

// differing compares the spec that is stored with the one that was wanted. A field that the wanted one leaves out has
// to be absent, or to be what the API server fills in, by the defaults of the kind's definition. decides says of which
// paths the policy speaks.
func differing(stored, wanted any, defaults map[string]string, decides func(path string) bool) Difference {
	if equality.Semantic.DeepEqual(stored, wanted) {
		return Difference{}
	}
	var d Difference
	for _, path := range alteredAt("spec", plain(stored), plain(wanted), defaults) {
		if decides(path) {
			d.Policy = append(d.Policy, path)
		} else {
			d.Other = append(d.Other, path)
		}
	}
	return d
}

// plain is a value of an API type as JSON has it.
func plain(value any) any {
	var result any
	_ = json.Unmarshal([]byte(spelled(value)), &result) // what was just marshalled
	return result
}

// places are the indexes and keys in a path: the table of defaults has none.
var places = regexp.MustCompile(`\[[^\]]*\]`)

// alteredAt lists the paths at and below one where is differs from want; nil is a field that is absent.
func alteredAt(path string, is, want any, defaults map[string]string) []string {
	if want == nil && is != nil {
		// The generator has marshalled the defaults; where there is none, the text is empty, and nothing is wanted.
		_ = json.Unmarshal([]byte(defaults[places.ReplaceAllString(path, "[]")]), &want)
	}
	// Both are of one type, or absent. An absent object counts as an empty one beside another that has fields, so that
	// these are named and not the object.
	fields, _ := is.(map[string]any)
	wantedFields, _ := want.(map[string]any)
	if len(fields)+len(wantedFields) > 0 {
		return alteredFields(path, fields, wantedFields, defaults)
	}
	values, _ := is.([]any)
	wanted, _ := want.([]any)
	if len(values) > 0 && len(values) == len(wanted) {
		var paths []string
		for i := range values {
			paths = append(paths, alteredAt(fmt.Sprintf("%s[%d]", path, i), values[i], wanted[i], defaults)...)
		}
		return paths
	}
	if reflect.DeepEqual(is, want) {
		return nil
	}
	return []string{path}
}

func alteredFields(path string, is, want map[string]any, defaults map[string]string) []string {
	names := maps.Clone(is)
	if names == nil {
		names = map[string]any{}
	}
	maps.Copy(names, want)
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		paths = append(paths, alteredAt(path+"."+name, is[name], want[name], defaults)...)
	}
	return paths
}

// shownPaths bounds the paths in a message.
const shownPaths = 10

// alteration says what became of a write.
func alteration(kind string, paths []string) string {
	shown := slices.Clone(paths[:min(len(paths), shownPaths)])
	if more := len(paths) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf(
		"the guest's API server stores the %s with other settings than were written, in %s: look for a mutating admission policy "+
			"or webhook, or a changed definition", kind, strings.Join(shown, ", "))
}

// under returns a function that says of which paths the policy speaks: those and what is below them.
func under(parents ...string) func(path string) bool {
	return func(path string) bool {
		return slices.ContainsFunc(parents, func(parent string) bool {
			return path == parent || strings.HasPrefix(path, parent+".") || strings.HasPrefix(path, parent+"[")
		})
	}
}
