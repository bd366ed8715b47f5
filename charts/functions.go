package charts

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// Functions returns those of Helm's functions that the charts use. joiner-webhook prints what its chart would install,
// and must not depend on Helm for that. tools/helm compares them with Helm's own: every chart has to be rendered
// alike.
func Functions() template.FuncMap {
	return template.FuncMap{
		"indent": func(by int, text string) string {
			margin := strings.Repeat(" ", by)
			return margin + strings.ReplaceAll(text, "\n", "\n"+margin)
		},
		"replace":    func(old, now, text string) string { return strings.ReplaceAll(text, old, now) },
		"lower":      strings.ToLower,
		"upper":      strings.ToUpper,
		"contains":   func(part, text string) bool { return strings.Contains(text, part) },
		"trimSuffix": func(suffix, text string) string { return strings.TrimSuffix(text, suffix) },
		"trunc":      func(n int, text string) string { return text[:min(n, len(text))] },
		"substr":     func(from, to int, text string) string { return text[from:min(to, len(text))] },
		"default":    otherwise,
		"quote":      func(v any) string { return fmt.Sprintf("%q", fmt.Sprint(v)) },
		"join":       join,
		"splitList":  func(separator, text string) []string { return strings.Split(text, separator) },
		"sha256sum":  func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) },

		"list":   func(items ...any) []any { return items },
		"append": func(list []any, item any) []any { return append(list[:len(list):len(list)], item) },
		"has":    func(v any, list []any) bool { return slices.Contains(list, v) },
		"dict":   dict,
		"set": func(object map[string]any, key string, value any) map[string]any {
			object[key] = value
			return object
		},
		"deepCopy": deepCopy,
		"hasKey": func(object map[string]any, key string) bool {
			_, found := object[key]
			return found
		},

		"toYaml": func(v any) (string, error) {
			text, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(text), "\n"), err
		},
		"fromYaml": func(text string) (object map[string]any, err error) {
			err = yaml.Unmarshal([]byte(text), &object)
			return object, err
		},
		"toJson": func(value any) (string, error) {
			text, err := json.Marshal(value)
			return string(text), err
		},

		"fail":     func(why string) (string, error) { return "", errors.New(why) },
		"required": required,
	}
}

func join(separator string, list []any) string {
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = fmt.Sprint(list[i])
	}
	return strings.Join(texts, separator)
}

// dict returns a map of keys, each with its value after it.
func dict(pairs ...any) map[string]any {
	made := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		made[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return made
}

// deepCopy copies a value of a file, with all that is in it.
func deepCopy(value any) any {
	switch value := value.(type) {
	case map[string]any:
		made := map[string]any{}
		for key, inner := range value {
			made[key] = deepCopy(inner)
		}
		return made
	case []any:
		made := make([]any, len(value))
		for i := range value {
			made[i] = deepCopy(value[i])
		}
		return made
	}
	return value
}

// otherwise returns value, or first if value is empty.
func otherwise(first, value any) any {
	if full, known := template.IsTrue(value); known && full {
		return value
	}
	return first
}

// required refuses a value that is not given.
func required(why string, value any) (any, error) {
	if value == nil || value == "" {
		return nil, errors.New(why)
	}
	return value, nil
}
