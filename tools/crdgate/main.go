// Command crdgate takes the definition that controller-gen made from types with feature gates. It makes two of it, as
// OpenShift's own generator would: one with the gate on, and one with the gate off. controller-gen itself knows
// nothing of gates.
//
//	+openshift:enable:FeatureGate=GATE   above a field: with the gate off it is not there
//	+openshift:validation:FeatureGateAwareXValidation:featureGate=GATE,rule="...",message="..."
//	                                     above a type: with the gate on the rule is there
//
// Usage: crdgate GATE directory-of-types crd.yaml on.yaml off.yaml
//
// It is run by tools/generate.sh. A gate that no field has is an error, and so is a marker whose place is not in
// the definition.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "crdgate:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("got %d arguments, want five: GATE directory-of-types crd.yaml on.yaml off.yaml", len(args))
	}
	types, err := readTypes(args[1])
	if err != nil {
		return err
	}
	content, err := os.ReadFile(args[2])
	if err != nil {
		return err
	}
	for i, on := range []bool{true, false} {
		definition, err := gated(content, types, args[0], on)
		if err != nil {
			return fmt.Errorf("%s: %w", args[2], err)
		}
		if err := os.WriteFile(args[3+i], definition, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// gated returns the definition with the gate on or off.
func gated(content []byte, types types, gate string, on bool) ([]byte, error) {
	var crd map[string]any
	if err := yaml.Unmarshal(content, &crd); err != nil {
		return nil, err
	}
	spec, _ := crd["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	kind, _ := names["kind"].(string)
	versions, _ := spec["versions"].([]any)
	w := walk{types: types, gate: gate, on: on}
	for _, version := range versions {
		served, _ := version.(map[string]any)
		holder, _ := served["schema"].(map[string]any)
		schema, _ := holder["openAPIV3Schema"].(map[string]any)
		if err := w.visit(kind, schema, kind); err != nil {
			return nil, err
		}
	}
	if w.fields == 0 {
		return nil, fmt.Errorf("no field of %s has the gate %s", kind, gate)
	}
	out, err := yaml.Marshal(crd)
	return append([]byte("---\n"), out...), err
}

// walk goes through types and schema side by side.
type walk struct {
	types  types
	gate   string
	on     bool
	fields int // with the gate
}

// visit changes the schema of a type.
func (w *walk) visit(name string, schema map[string]any, path string) error {
	t, known := w.types[name]
	if !known {
		return nil // of another module, or no struct
	}
	if schema == nil {
		return fmt.Errorf("%s: the type %s has no schema", path, name)
	}
	for _, rule := range t.rules {
		if rule.gate == w.gate && w.on {
			rules, _ := schema["x-kubernetes-validations"].([]any)
			schema["x-kubernetes-validations"] = append(rules,
				map[string]any{"rule": rule.rule, "message": rule.message})
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, f := range t.fields {
		below, at := schema, path // of what is embedded
		if f.name != "" {
			below, at = nil, path+"."+f.name
			if below, _ = properties[f.name].(map[string]any); below == nil {
				return fmt.Errorf("%s: the definition does not have the field", at)
			}
		}
		if f.gate == w.gate {
			w.fields++
			if !w.on {
				delete(properties, f.name)
				continue
			}
		}
		if f.list {
			below, _ = below["items"].(map[string]any)
		}
		if err := w.visit(f.of, below, at); err != nil {
			return err
		}
	}
	return nil
}
