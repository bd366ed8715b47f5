package cli_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

// fits checks a command's JSON against the published schema of its kind, with no field beyond it (U-29). It is run for
// every test that asks for -o json.
func fits(t *testing.T, code int, out string, args []string) {
	t.Helper()
	at := slices.Index(args, "-o")
	if code == cli.CodeFailed && out == "" || at < 0 || at+1 >= len(args) || args[at+1] != "json" {
		return
	}
	var answer map[string]any
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Errorf("%v: %v", args, err)
		return
	}
	kind, _ := answer["kind"].(string)
	data, err := os.ReadFile("../../docs/schemas/" + kind + ".json")
	if err != nil {
		t.Errorf("%v prints a kind without a schema: %v", args, err)
		return
	}
	var schema spec.Schema
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	closed(&schema)
	for _, fault := range validate.NewSchemaValidator(&schema, nil, "", strfmt.Default).Validate(answer).Errors {
		t.Errorf("%v: %v", args, fault)
	}
}

// closed lets objects have the fields of the schema alone.
func closed(s *spec.Schema) {
	if len(s.Properties) > 0 && s.AdditionalProperties == nil {
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: false}
	}
	for name, property := range s.Properties {
		closed(&property)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		closed(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		closed(s.AdditionalProperties.Schema)
	}
	for i := range s.AnyOf {
		closed(&s.AnyOf[i])
	}
}

// TestU29_WhatIsNotInTheSchemaIsFound: the check itself finds a field that is not in the schema, a missing field, and
// one of another type.
func TestU29_WhatIsNotInTheSchemaIsFound(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/schemas/PolicyStatus.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema spec.Schema
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	closed(&schema)
	const whole = `{"apiVersion": "cli.joiner.sh/v1", "kind": "PolicyStatus", "policies": [{"namespace": "a", "name": "b", ` +
		`"ready": "True", "conforming": "", "protected": ""}]}`
	for text, faults := range map[string]int{
		whole: 0,
		`{"apiVersion": "cli.joiner.sh/v1", "kind": "PolicyStatus", "policies": [], "more": 1}`: 1,
		`{"apiVersion": "cli.joiner.sh/v1", "kind": "PolicyStatus"}`:                            1,
		`{"apiVersion": "cli.joiner.sh/v1", "kind": "PolicyStatus", "policies": null}`:          1,
		`{"apiVersion": "cli.joiner.sh/v2", "kind": "PolicyStatus", "policies": []}`:            1,
	} {
		var answer map[string]any
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatal(err)
		}
		if found := validate.NewSchemaValidator(&schema, nil, "",
			strfmt.Default).Validate(answer).Errors; len(found) != faults {
			t.Errorf("%s: %v, want %d faults", text, found, faults)
		}
	}
}
