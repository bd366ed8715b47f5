// Command crdschema finishes the CRDs that controller-gen wrote. Some fields have Go types of other
// modules (corev1.Taint, resource.Quantity, the values of a map[string]string), where no marker can
// be placed. Their rules are stated here instead, and written into the schema.
//
// Usage: crdschema file.yaml...
//
// It is run by tools/generate.sh after controller-gen and changes the files in place. Running it
// twice changes nothing more. A rule that finds no place in any of the files is an error, so that a
// renamed field cannot lose its validation unnoticed.
package main

import (
	"bytes"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "crdschema:", err)
		os.Exit(1)
	}
}

func run(paths []string) error {
	rules := schemaRules()
	used := make([]int, len(rules))
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		finished, counts, err := finish(content, rules)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for i, count := range counts {
			used[i] += count
		}
		if bytes.Equal(content, finished) {
			continue
		}
		if err := os.WriteFile(path, finished, 0o644); err != nil {
			return err
		}
	}
	for i, rule := range rules {
		if used[i] == 0 {
			return fmt.Errorf("the rule %q fits no field in the %d files given", rule.name, len(paths))
		}
	}
	return nil
}

// finish applies the rules to one manifest and counts, by rule, the schemas each one fitted.
func finish(content []byte, rules []rule) ([]byte, []int, error) {
	var manifest map[string]any
	if err := yaml.Unmarshal(content, &manifest); err != nil {
		return nil, nil, fmt.Errorf("reading the manifest: %w", err)
	}
	counts := make([]int, len(rules))
	walk(nil, manifest, func(path []string, schema map[string]any) {
		for i, rule := range rules {
			if rule.fits(path, schema) {
				rule.apply(schema)
				counts[i]++
			}
		}
	})
	finished, err := yaml.Marshal(manifest)
	if err != nil {
		return nil, nil, fmt.Errorf("writing the manifest: %w", err)
	}
	return append([]byte("---\n"), finished...), counts, nil
}

// walk calls visit for every map in the document, with the keys that lead to it. Lists add no key.
func walk(path []string, value any, visit func([]string, map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		visit(path, value)
		for key, child := range value {
			walk(append(path[:len(path):len(path)], key), child, visit)
		}
	case []any:
		for _, child := range value {
			walk(path, child, visit)
		}
	}
}
