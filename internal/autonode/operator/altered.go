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

// differing compares the spec that is stored with the one that was wanted. A field that the wanted one leaves out has to be
// absent, or to be what the API server fills in, by the defaults of the kind's definition. decides says of which paths the
// policy speaks.
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

// plain is a value of an API type as JSON has it; those always marshal.
func plain(value any) any {
	var result any
	if data, err := json.Marshal(value); err == nil {
		_ = json.Unmarshal(data, &result) // what was just marshalled
	}
	return result
}

// places are the indexes and keys in a path: the table of defaults has none.
var places = regexp.MustCompile(`\[[^\]]*\]`)

// alteredAt lists the paths at and below one where is differs from want; nil is a field that is absent.
func alteredAt(path string, is, want any, defaults map[string]string) []string {
	if want == nil && is != nil {
		if text, found := defaults[places.ReplaceAllString(path, "[]")]; found {
			_ = json.Unmarshal([]byte(text), &want) // the generator has marshalled it
		}
	}
	if is == nil && want == nil {
		return nil
	}
	if values, wanted, both := objects(is, want); both {
		return alteredFields(path, values, wanted, defaults)
	}
	if values, isList := is.([]any); isList {
		if wanted, wantList := want.([]any); wantList && len(values) == len(wanted) {
			var paths []string
			for i := range values {
				paths = append(paths, alteredAt(fmt.Sprintf("%s[%d]", path, i), values[i], wanted[i], defaults)...)
			}
			return paths
		}
	}
	if reflect.DeepEqual(is, want) {
		return nil
	}
	return []string{path}
}

// objects returns both values as objects. One that is absent counts as an empty one beside another that has fields, so that
// these are named and not the object.
func objects(is, want any) (values, wanted map[string]any, both bool) {
	values, isObject := is.(map[string]any)
	wanted, wantObject := want.(map[string]any)
	switch {
	case isObject && wantObject:
		return values, wanted, true
	case isObject && want == nil:
		return values, wanted, len(values) > 0
	case wantObject && is == nil:
		return values, wanted, len(wanted) > 0
	}
	return nil, nil, false
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
	return fmt.Sprintf("the guest's API server stores the %s with other settings than were written, in %s: look for a mutating admission policy "+
		"or webhook, or a changed definition", kind, strings.Join(shown, ", "))
}

// under returns a function that says of which paths the policy speaks: those and what is below them.
func under(parents ...string) func(path string) bool {
	return func(path string) bool {
		return slices.ContainsFunc(parents, func(parent string) bool {
			rest, found := strings.CutPrefix(path, parent)
			return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
		})
	}
}
