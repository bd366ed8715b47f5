package openshiftapi_test

import (
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/api/crd"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	openshiftapi "github.com/joiner-autoscaler/joiner/upstream/openshift-api"
)

// spec is the schema of Scheduler's spec in a definition, without descriptions: words may differ.
func spec(t *testing.T, definition []byte) map[string]any {
	t.Helper()
	var read struct {
		Spec struct {
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema struct{ Properties map[string]map[string]any }
				}
			}
		}
	}
	if err := yaml.Unmarshal(definition, &read); err != nil {
		t.Fatal(err)
	}
	if len(read.Spec.Versions) != 1 || read.Spec.Versions[0].Name != "v1" {
		t.Fatalf("versions: %+v", read.Spec.Versions)
	}
	schema := read.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	silence(schema)
	return schema
}

// silence takes the descriptions away.
func silence(value any) {
	switch typed := value.(type) {
	case map[string]any:
		if _, text := typed["description"].(string); text {
			delete(typed, "description")
		}
		for _, below := range typed {
			silence(below)
		}
	case []any:
		for _, below := range typed {
			silence(below)
		}
	}
}

func must(t *testing.T) func([]byte, error) []byte {
	t.Helper()
	return func(content []byte, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
}

// the definition with the gate on has the schema that Joiner installs where there is no OpenShift, so what is
// tested through that is what is proposed. With the gate off it is the same without the field and without the rule
// about it.
func TestA38_TheDefinitionsDifferByTheFieldOnly(t *testing.T) {
	t.Parallel()
	enabled, disabled := spec(t, must(t)(openshiftapi.Enabled())), spec(t, must(t)(openshiftapi.Disabled()))
	manifests, err := crd.OpenShift()
	if err != nil {
		t.Fatal(err)
	}
	ours := 0
	for name, manifest := range manifests {
		if !strings.Contains(string(manifest), "name: schedulers.config.openshift.io") {
			continue
		}
		ours++
		if got := spec(t, manifest); !reflect.DeepEqual(got, enabled) {
			t.Errorf("%v: %v\nis not what is proposed: %v", name, got, enabled)
		}
	}
	if ours != 1 {
		t.Errorf("%d definitions of Scheduler are ours", ours)
	}
	properties := enabled["properties"].(map[string]any)
	rules, _ := enabled["x-kubernetes-validations"].([]any)
	if properties["schedulingGroups"] == nil || len(rules) != 1 {
		t.Errorf("with the gate on: %v", enabled)
	}
	delete(properties, "schedulingGroups")
	delete(enabled, "x-kubernetes-validations")
	if !reflect.DeepEqual(enabled, disabled) {
		t.Errorf("with the gate off: %v, want %v", disabled, enabled)
	}
}

// the files of tests are for both definitions, of the gate that the plugin reads.
func TestA38_BothDefinitionsHaveASuite(t *testing.T) {
	t.Parallel()
	suites, err := openshiftapi.Suites()
	if err != nil {
		t.Fatal(err)
	}
	for _, off := range []bool{false, true} {
		found := 0
		for _, suite := range suites {
			if suite.Off() != off {
				continue
			}
			found++
			if suite.CRDName != "schedulers.config.openshift.io" || strings.TrimPrefix(suite.FeatureGates[0],
				"-") != evaluator.FeatureGate ||
				len(suite.Tests.OnCreate) == 0 || len(suite.Tests.OnUpdate) == 0 {
				t.Errorf("suite %+v", suite)
			}
			for _, test := range append(suite.Tests.OnCreate, suite.Tests.OnUpdate...) {
				if (test.Expected == "") == (test.ExpectedError == "") {
					t.Errorf("%s: want what is expected, or an error, and not both", test.Name)
				}
			}
		}
		if found != 1 {
			t.Errorf("%d suites with off %v", found, off)
		}
	}
}
