package main

import "slices"

// rule says what a schema that fits must have. Keys in set replace those of the schema; nil removes the key.
type rule struct {
	name string
	// under are the last keys of the path to the schema, for example taints, items, properties, key.
	under []string
	// pattern, if not empty, is the pattern that the schema must have now, or that set gives it. It is
	// for schemas that are known by their type and not by their place.
	pattern string
	set     map[string]any
}

func (r rule) fits(path []string, schema map[string]any) bool {
	if r.pattern != "" && schema["pattern"] != r.pattern && schema["pattern"] != r.set["pattern"] {
		return false
	}
	return len(path) >= len(r.under) && slices.Equal(path[len(path)-len(r.under):], r.under)
}

func (r rule) apply(schema map[string]any) {
	for key, value := range r.set {
		if value == nil {
			delete(schema, key)
			continue
		}
		schema[key] = value
	}
}

const (
	// labelName is an optional DNS prefix with a slash, and a name. It does not bound lengths.
	labelName = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	// labelValue may be empty.
	labelValue = `^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	// generatedQuantity is what controller-gen writes for resource.Quantity. It lets exponents with a
	// fraction through (1e1.5), which the Go type cannot decode: one such object would keep a
	// controller from listing all others.
	generatedQuantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`
	decodableQuantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,2}))?$`
)

func schemaRules() []rule {
	taintKey := map[string]any{"minLength": 1, "maxLength": 316, "pattern": labelName}
	taintValue := map[string]any{"maxLength": 63, "pattern": labelValue}
	taintEffect := map[string]any{"enum": []any{"NoSchedule", "PreferNoSchedule", "NoExecute"}}
	// Texts that CEL rules read need a bound, or the API server refuses the rule as too costly.
	short := map[string]any{"maxLength": 32}
	return []rule{
		{name: "taint key", under: []string{"taints", "items", "properties", "key"}, set: taintKey},
		{name: "taint value", under: []string{"taints", "items", "properties", "value"}, set: taintValue},
		{name: "taint effect", under: []string{"taints", "items", "properties", "effect"}, set: taintEffect},
		{name: "startup taint key", under: []string{"startupTaints", "items", "properties", "key"}, set: taintKey},
		{name: "startup taint value", under: []string{"startupTaints", "items", "properties", "value"},
			set: taintValue},
		{name: "startup taint effect", under: []string{"startupTaints", "items", "properties", "effect"},
			set: taintEffect},
		{name: "label value", under: []string{"labels", "additionalProperties"}, set: taintValue},
		{name: "values of a policy", under: []string{"nodePoolDefaults", "properties", "requirements", "items",
			"properties", "values"}, set: map[string]any{"maxItems": 1000}},
		{name: "system reserve", under: []string{"systemReserved", "additionalProperties"}, set: short},
		{name: "kube reserve", under: []string{"kubeReserved", "additionalProperties"}, set: short},
		{name: "hard threshold", under: []string{"evictionHard", "additionalProperties"}, set: short},
		{name: "soft threshold", under: []string{"evictionSoft", "additionalProperties"}, set: short},
		{name: "grace period", under: []string{"evictionSoftGracePeriod", "additionalProperties"}, set: short},
		// EC2NodeClass has a size as text only; its own rule says which.
		{name: "volume size", under: []string{"ebs", "properties", "volumeSize"}, set: map[string]any{
			"type": "string", "maxLength": 32, "anyOf": nil, "pattern": nil, "x-kubernetes-int-or-string": nil,
		}},
		{name: "quantity", pattern: generatedQuantity, set: map[string]any{"pattern": decodableQuantity}},
	}
}
