package whatif

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Difference is a field that is another one than before. Old is "" for one that comes, New for one that goes. An
// object that comes or goes as a whole has no path.
type Difference struct {
	Path string `json:"path,omitempty"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// differences compares two versions of an object by path. It compares what users write, not what an API server or a
// controller adds. List elements are matched by name, not by position.
func differences(old, fresh *object) []Difference {
	if old == nil {
		return []Difference{{New: "is new"}}
	}
	before, after := map[string]string{}, map[string]string{}
	flatten("", written(old.Object), before)
	flatten("", written(fresh.Object), after)
	var list []Difference
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if after[path] != before[path] {
			list = append(list, Difference{Path: path, Old: before[path], New: after[path]})
		}
	}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if _, known := before[path]; !known {
			list = append(list, Difference{Path: path, New: after[path]})
		}
	}
	slices.SortStableFunc(list, func(a, b Difference) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// written returns the part of an object that users write.
func written(o client.Object) map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil
	}
	metadata := map[string]any{}
	for _, field := range []string{"labels", "annotations"} {
		if of, _ := content["metadata"].(map[string]any); of[field] != nil {
			metadata[field] = of[field]
		}
	}
	for _, field := range []string{"status", "apiVersion", "kind"} {
		delete(content, field)
	}
	content["metadata"] = metadata
	return content
}

// flatten stores each value below a path. Empty values count as missing.
func flatten(path string, value any, into map[string]string) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			flatten(joined(path, name), inner, into)
		}
	case []any:
		if keys := keysOf(value); keys != nil {
			for i, inner := range value {
				element, _ := inner.(map[string]any)
				rest := maps.Clone(element)
				for _, key := range naming() {
					if element[key] == keys[i] {
						delete(rest, key)
						break
					}
				}
				at := path + "[" + keys[i] + "]"
				if len(rest) == 0 {
					into[at] = "is there"
				}
				flatten(at, rest, into)
			}
		} else if len(value) > 0 {
			into[path] = text(value)
		}
	case nil:
	default:
		into[path] = text(value)
	}
}

func joined(path, name string) string {
	if strings.ContainsAny(name, "./") {
		return path + "[" + name + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// naming returns the fields that identify elements of lists; the first one present counts.
func naming() []string { return []string{"key", "name", "topologyKey"} }

// keysOf returns the name of each element, nil unless each has a unique name.
func keysOf(list []any) []string {
	var keys []string
	for _, inner := range list {
		element, isObject := inner.(map[string]any)
		if !isObject {
			return nil
		}
		found := ""
		for _, key := range naming() {
			if name, _ := element[key].(string); name != "" {
				found = name
				break
			}
		}
		if found == "" || slices.Contains(keys, found) {
			return nil
		}
		keys = append(keys, found)
	}
	return keys
}

// text formats a value in one line: a list of words as [a b c], an object as {field: value}.
func text(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case []any:
		words := make([]string, len(value))
		for i, inner := range value {
			words[i] = text(inner)
		}
		return "[" + strings.Join(words, " ") + "]"
	case map[string]any:
		var fields []string
		for _, name := range slices.Sorted(maps.Keys(value)) {
			fields = append(fields, name+": "+text(value[name]))
		}
		return "{" + strings.Join(fields, ", ") + "}"
	}
	return fmt.Sprint(value)
}

func parseReplicas(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err == nil && (n < 0 || n > maxPods) {
		return 0, fmt.Errorf("%d is out of range", n)
	}
	return int32(n), err
}
