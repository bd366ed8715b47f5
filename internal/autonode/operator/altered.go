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

// Difference holds the paths, sorted, of the fields in which a product is not stored as wanted.
type Difference struct {
	// Policy are the fields that the policy decides. If there is any, the policy is not applied.
	Policy []string
	// Other are the other fields: the user's own, which the policy does not decide.
	Other []string
}

// Any reports whether any field differs.
func (d Difference) Any() bool { return len(d.Policy)+len(d.Other) > 0 }

// differing compares the stored spec with the wanted one. A field that the wanted one omits must be absent, or equal
// the default in the kind's CRD. decides says which paths the policy decides.
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

// plain converts a value of an API type to generic JSON values.
func plain(value any) any {
	var result any
	_ = json.Unmarshal([]byte(spelled(value)), &result) // it was just marshalled
	return result
}

// places matches the indexes and keys in a path: the table of defaults has none.
var places = regexp.MustCompile(`\[[^\]]*\]`)

// alteredAt returns the paths, at or below path, where is differs from want. nil means an absent field.
func alteredAt(path string, is, want any, defaults map[string]string) []string {
	if want == nil && is != nil {
		// The generator has marshalled the defaults. If there is none, the text is empty, and want stays nil.
		_ = json.Unmarshal([]byte(defaults[places.ReplaceAllString(path, "[]")]), &want)
	}
	// Both have the same type, or are absent. If only one object is absent, it counts as empty, so that the fields are
	// named and not the object.
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

// alteration returns a message about an altered write.
func alteration(kind string, paths []string) string {
	shown := slices.Clone(paths[:min(len(paths), shownPaths)])
	if more := len(paths) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf(
		"the guest's API server stores the %s with other settings than were written, in %s: look for a mutating admission policy "+
			"or webhook, or a changed definition", kind, strings.Join(shown, ", "))
}

// under returns a function that reports whether a path is one of parents, or below one.
func under(parents ...string) func(path string) bool {
	return func(path string) bool {
		return slices.ContainsFunc(parents, func(parent string) bool {
			return path == parent || strings.HasPrefix(path, parent+".") || strings.HasPrefix(path, parent+"[")
		})
	}
}
