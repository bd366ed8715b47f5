package whatif

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	rules "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/api/crd"
)

// definitions are the CustomResourceDefinitions of our kinds. They fill in defaults and validate as in a cluster, by
// the API server's own code.
type definitions map[schema.GroupKind]*definition

type definition struct {
	versions map[string]*served
}

// served is a version of a kind.
type served struct {
	schema *structural.Structural
	values validation.SchemaValidator
	// rules compiles the rules in CEL, at the first use.
	rules func() *rules.Validator
}

func (d definitions) of(kind schema.GroupKind) *definition { return d[kind] }

// loadDefinitions returns the definitions. They are read once, since compiling their rules takes a while.
var loadDefinitions = sync.OnceValues(readDefinitions)

func readDefinitions() (definitions, error) {
	manifests, err := crd.Manifests()
	if err != nil {
		return nil, err
	}
	found := definitions{}
	for name, data := range manifests {
		var manifest apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(data, &manifest); err != nil {
			return nil, fmt.Errorf("reading the definition %s: %w", name, err)
		}
		if manifest.Kind != "CustomResourceDefinition" {
			continue
		}
		d := &definition{versions: map[string]*served{}}
		for _, version := range manifest.Spec.Versions {
			if d.versions[version.Name], err = serve(version.Schema.OpenAPIV3Schema); err != nil {
				return nil, fmt.Errorf("reading the definition %s, version %s: %w", name, version.Name, err)
			}
		}
		found[schema.GroupKind{Group: manifest.Spec.Group, Kind: manifest.Spec.Names.Kind}] = d
	}
	return found, nil
}

func serve(written *apiextensionsv1.JSONSchemaProps) (*served, error) {
	var props apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(written, &props, nil)
	if err != nil {
		return nil, err
	}
	s, err := structural.NewStructural(&props)
	if err != nil {
		return nil, err
	}
	values, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, err
	}
	return &served{schema: s, values: values, rules: sync.OnceValue(func() *rules.Validator {
		return rules.NewValidator(s, true, celconfig.PerCallLimit)
	})}, nil
}

// version returns a served version. The error says which ones there are.
func (d *definition) version(name string) (*served, error) {
	if v := d.versions[name]; v != nil {
		return v, nil
	}
	known := strings.Join(slices.Sorted(maps.Keys(d.versions)), ", ")
	return nil, fmt.Errorf("version %s is not served: use %s; docs/migrating-v1beta1.md says how to get from v1beta1 "+
		"to v1", name, known)
}

// complete returns an object with the defaults of its definition. The error says what the definition refuses.
func (d *definition) complete(version string, data []byte) ([]byte, error) {
	v, err := d.version(version)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return nil, err
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(content, v.schema)
	defaulting.Default(content, v.schema)
	faults := unknown("", v.schema, content)
	for _, fault := range validation.ValidateCustomResource(nil, content, v.values) {
		faults = append(faults, fault)
	}
	for _, fault := range listtype.ValidateListSetsAndMaps(nil, v.schema, content) {
		faults = append(faults, fault)
	}
	if len(faults) == 0 { // as an API server: rules may rely on the types of fields
		faults = v.refused(content, nil)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return json.Marshal(content)
}

// change returns an error if the rules in CEL forbid to replace an object by another one.
func (d *definition) change(version string, old, fresh runtime.Object) error {
	v, err := d.version(version)
	if err != nil {
		return err
	}
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(old)
	if err != nil {
		return err
	}
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(fresh)
	if err != nil {
		return err
	}
	return errors.Join(v.refused(after, before)...)
}

// refused returns what the rules in CEL refuse in an object. The old one is nil if there is none.
func (v *served) refused(content, old map[string]any) []error {
	var before any // not a map that is nil
	if old != nil {
		before = old
	}
	var list field.ErrorList
	if validator := v.rules(); validator != nil {
		list, _ = validator.Validate(context.Background(), nil, v.schema, content, before,
			celconfig.RuntimeCELCostBudget)
	}
	faults := make([]error, 0, len(list))
	for _, fault := range list {
		faults = append(faults, fault)
	}
	return faults
}

// unknown returns an error for each field that a schema does not have. An API server drops such fields, so they would
// have no effect.
func unknown(path string, s *structural.Structural, value any) []error {
	var faults []error
	switch value := value.(type) {
	case map[string]any:
		more := s.AdditionalProperties
		if path == ".metadata" || s.XPreserveUnknownFields || len(s.Properties) == 0 && more == nil {
			return nil
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			at := path + "." + name
			if property, known := s.Properties[name]; known {
				faults = append(faults, unknown(at, &property, value[name])...)
			} else if more == nil {
				faults = append(faults, fmt.Errorf("%s: unknown field: allowed here are %s",
					strings.TrimPrefix(at, "."), strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", ")))
			} else if more.Structural != nil {
				faults = append(faults, unknown(at, more.Structural, value[name])...)
			}
		}
	case []any:
		if s.Items != nil {
			for i, inner := range value {
				faults = append(faults, unknown(fmt.Sprintf("%s[%d]", path, i), s.Items, inner)...)
			}
		}
	}
	return faults
}
