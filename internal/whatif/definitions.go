package whatif

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/api/crd"
)

// definitions are the CustomResourceDefinitions of our kinds. Their schemas fill in defaults and validate as in a
// cluster. Their CEL rules are not run.
type definitions map[schema.GroupKind]*definition

type definition struct {
	versions map[string]*spec.Schema
}

func (d definitions) of(kind schema.GroupKind) *definition { return d[kind] }

func loadDefinitions() (definitions, error) {
	manifests, err := crd.Manifests()
	if err != nil {
		return nil, err
	}
	found := definitions{}
	for name, data := range manifests {
		var manifest struct {
			Kind string `json:"kind"`
			Spec struct {
				Group string `json:"group"`
				Names struct {
					Kind string `json:"kind"`
				} `json:"names"`
				Versions []struct {
					Name   string `json:"name"`
					Schema struct {
						OpenAPIV3Schema *spec.Schema `json:"openAPIV3Schema"`
					} `json:"schema"`
				} `json:"versions"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal(data, &manifest); err != nil {
			return nil, fmt.Errorf("reading the definition %s: %w", name, err)
		}
		if manifest.Kind != "CustomResourceDefinition" {
			continue
		}
		d := &definition{versions: map[string]*spec.Schema{}}
		for _, version := range manifest.Spec.Versions {
			d.versions[version.Name] = version.Schema.OpenAPIV3Schema
		}
		found[schema.GroupKind{Group: manifest.Spec.Group, Kind: manifest.Spec.Names.Kind}] = d
	}
	return found, nil
}

// complete returns an object with the defaults of its definition. The error says what the definition refuses.
func (d *definition) complete(version string, data []byte) ([]byte, error) {
	schema := d.versions[version]
	if schema == nil {
		known := strings.Join(slices.Sorted(maps.Keys(d.versions)), ", ")
		return nil,
			fmt.Errorf(
				"version %s is not served: use %s; docs/migrating-v1beta1.md says how to get from v1beta1 to v1",
				version, known)
	}
	var content map[string]any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return nil, err
	}
	fill(schema, content)
	faults := unknown("", schema, content)
	result := validate.NewSchemaValidator(schema, nil, "", strfmt.Default).Validate(content)
	for _, err := range result.Errors {
		faults = append(faults, errors.New(strings.Join(strings.Fields(err.Error()), " ")))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return json.Marshal(content)
}

// fill writes the defaults of a schema into a value of that schema.
func fill(s *spec.Schema, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, property := range s.Properties {
			if _, given := value[name]; !given && property.Default != nil {
				value[name] = copyOf(property.Default)
			}
			if inner, given := value[name]; given {
				fill(&property, inner)
			}
		}
		if more := s.AdditionalProperties; more != nil && more.Schema != nil {
			for _, inner := range value {
				fill(more.Schema, inner)
			}
		}
	case []any:
		if s.Items != nil && s.Items.Schema != nil {
			for _, inner := range value {
				fill(s.Items.Schema, inner)
			}
		}
	}
}

// copyOf returns a copy of a default, because a schema serves many objects.
func copyOf(value any) any {
	data, err := json.Marshal(value)
	if err != nil {
		return value
	}
	var fresh any
	if err := utiljson.Unmarshal(data, &fresh); err != nil {
		return value
	}
	return fresh
}

// unknown returns an error for each field that a schema does not have. An API server drops such fields, so they would
// have no effect.
func unknown(path string, s *spec.Schema, value any) []error {
	var faults []error
	switch value := value.(type) {
	case map[string]any:
		if path == ".metadata" || len(s.Properties) == 0 && s.AdditionalProperties == nil {
			return nil
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			field := path + "." + name
			if property, known := s.Properties[name]; known {
				faults = append(faults, unknown(field, &property, value[name])...)
			} else if more := s.AdditionalProperties; more == nil {
				faults = append(faults, fmt.Errorf("%s: unknown field: allowed here are %s",
					strings.TrimPrefix(field, "."), strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", ")))
			} else if more.Schema != nil {
				faults = append(faults, unknown(field, more.Schema, value[name])...)
			}
		}
	case []any:
		if s.Items != nil && s.Items.Schema != nil {
			for i, inner := range value {
				faults = append(faults, unknown(fmt.Sprintf("%s[%d]", path, i), s.Items.Schema, inner)...)
			}
		}
	}
	return faults
}
