package helm

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/charts/chartstest"
)

func folder(chart string) string { return "../../charts/" + chart }

// rendered returns the documents that a version of Helm makes of a chart, and its notes.
func rendered(v Version, chart string, set map[string]any, served chartstest.Served) (
	map[string][]byte, string, error) {
	values, err := asRead(chartstest.Nested(set))
	if err != nil {
		return nil, "", err
	}
	made, err := v.Render(Release{Folder: folder(chart), Namespace: chartstest.Namespace, Values: values,
		Served: served})
	if err != nil {
		return nil, "", err
	}
	documents := map[string][]byte{}
	return documents, made.Notes, chartstest.Split(made.Manifest, documents)
}

// asRead returns values as Helm reads them from a file: its numbers are those of JSON.
func asRead(values map[string]any) (read map[string]any, err error) {
	text, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	return read, json.Unmarshal(text, &read)
}

// differ returns the documents in which two renderings differ as objects.
func differ(a, b map[string][]byte) (names []string, err error) {
	for name := range a {
		var one, other any
		if err := yaml.Unmarshal(a[name], &one); err != nil {
			return nil, err
		}
		if err := yaml.Unmarshal(b[name], &other); err != nil {
			return nil, err
		}
		if !reflect.DeepEqual(one, other) {
			names = append(names, name)
		}
	}
	for name := range b {
		if a[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// U-11: for every chart, with its own values and with each value changed once, both versions of Helm make the same
// objects as the renderer of our other tests. A value that changes nothing is found.
func TestU11_HelmMakesWhatOurRendererMakes(t *testing.T) {
	t.Parallel()
	for _, chart := range chartstest.Charts() {
		t.Run(chart, func(t *testing.T) {
			t.Parallel()
			same(t, chart, chartstest.Needed(chart), nil)
			for _, change := range chartstest.Changes(chart) {
				after := same(t, chart, change.Set(chart), change.Served)
				before, err := chartstest.Render(chart, change.Before(chart), change.Served)
				if err != nil {
					t.Fatalf("without %s: %v", change.Path, err)
				}
				if names, err := differ(before, after); err != nil || len(names) == 0 {
					t.Errorf("%s: %v changes nothing (%v)", change.Path, change.Value, err)
				}
			}
		})
	}
}

// same renders with all renderers, demands that they agree, and returns the result.
func same(t *testing.T, chart string, set map[string]any, served chartstest.Served) map[string][]byte {
	t.Helper()
	ours, err := chartstest.Render(chart, set, served)
	if err != nil {
		t.Fatalf("%v: our renderer: %v", set, err)
	}
	for _, v := range Versions() {
		theirs, _, err := rendered(v, chart, set, served)
		if err != nil {
			t.Errorf("%v: %s: %v", set, v.Name, err)
			continue
		}
		names, err := differ(ours, theirs)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			t.Errorf("%v: %s: ours is\n%s\n%s makes\n%s", set, name, ours[name], v.Name, theirs[name])
		}
	}
	return ours
}

// U-11: Helm finds nothing wrong with the charts, and has no warning either.
func TestU11_HelmLintsTheCharts(t *testing.T) {
	t.Parallel()
	for _, chart := range chartstest.Charts() {
		for _, v := range Versions() {
			values, err := asRead(chartstest.Nested(chartstest.Needed(chart)))
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Lint(folder(chart), values); err != nil {
				t.Errorf("%s: %s: %v", chart, v.Name, err)
			}
		}
	}
}

// schema is what we read of a JSON schema.
type schema struct {
	Type                 any
	Properties           map[string]schema
	AdditionalProperties any
	Enum                 []any
	Pattern              string
	Items                *schema
	OneOf                []schema
}

func schemaOf(t *testing.T, chart string) (read schema) {
	t.Helper()
	content, err := os.ReadFile(folder(chart) + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// leaves visits the values that a schema describes. global is Helm's own, for charts within charts.
func (s schema) leaves(at string, visit func(path string, s schema)) {
	if len(s.Properties) == 0 {
		visit(at, s)
		return
	}
	for name, inner := range s.Properties {
		if at == "" && name == "global" {
			continue
		}
		inner.leaves(strings.TrimPrefix(at+"."+name, "."), visit)
	}
}

// U-11: the table of changes has each value of each chart once.
func TestU11_EveryValueIsChanged(t *testing.T) {
	t.Parallel()
	for _, chart := range chartstest.Charts() {
		changed := map[string]bool{}
		for _, change := range chartstest.Changes(chart) {
			if changed[change.Path] {
				t.Errorf("%s: %s is changed twice", chart, change.Path)
			}
			changed[change.Path] = true
		}
		schemaOf(t, chart).leaves("", func(path string, _ schema) {
			if !changed[path] {
				t.Errorf("%s: no change of %s in chartstest.Changes", chart, path)
			}
			delete(changed, path)
		})
		for path := range changed {
			t.Errorf("%s: %s is changed, the schema does not have it", chart, path)
		}
	}
}

// wrong returns values of kinds that the schema must refuse.
func (s schema) wrong() []any {
	var all []any
	for _, value := range []any{"no such value", -1.5, true, []any{-1.5}, map[string]any{"x": -1.5}} {
		if !s.takes(value) {
			all = append(all, value)
		}
	}
	return all
}

// takes reports whether a value is of a kind that the schema accepts.
func (s schema) takes(value any) bool {
	if s.Enum != nil {
		return slices.Contains(s.Enum, value)
	}
	for _, one := range s.OneOf {
		if one.takes(value) {
			return true
		}
	}
	kind := map[reflect.Kind]string{reflect.String: "string", reflect.Float64: "number", reflect.Bool: "boolean",
		reflect.Slice: "array", reflect.Map: "object"}[reflect.TypeOf(value).Kind()]
	return s.Type == kind && s.Pattern == "" && kind != "array" && kind != "object" && kind != "number"
}

// U-11: Helm refuses a value of the wrong kind and a misspelt one, and says where.
func TestU11_WrongValuesAreRefused(t *testing.T) {
	t.Parallel()
	for _, chart := range chartstest.Charts() {
		t.Run(chart, func(t *testing.T) {
			t.Parallel()
			schemaOf(t, chart).leaves("", func(path string, s schema) {
				for _, value := range s.wrong() {
					refused(t, chart, path, value, "at '/"+strings.ReplaceAll(path, ".", "/"))
				}
				parts := strings.Split(path, ".")
				last := parts[len(parts)-1] + "Misspelt"
				refused(t, chart, strings.Join(append(parts[:len(parts)-1:len(parts)-1], last), "."), "x",
					fmt.Sprintf("additional properties '%s' not allowed", last))
			})
		})
	}
}

func refused(t *testing.T, chart, path string, value any, says string) {
	t.Helper()
	set := chartstest.Needed(chart)
	for name := range set {
		if strings.HasPrefix(name, path+".") {
			delete(set, name)
		}
	}
	set[path] = value
	for _, v := range Versions() {
		if _, _, err := rendered(v, chart, set, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %s: %v: error %v, want one with %q", v.Name, path, value, err, says)
		}
	}
}

// U-11: the items of lists are checked too, and errors name their place.
func TestU11_WrongItemsAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		chart, path string
		value       any
		says        string
	}{
		{"joiner", "replicas", 0, "at '/replicas': minimum: got 0, want 1"},
		{"joiner", "resources.memory", "1 GB", "at '/resources/memory': '1 GB' does not match pattern"},
		{"joiner", "env", []any{map[string]any{"name": "A", "valueFrom": map[string]any{}}},
			"additional properties 'valueFrom' not allowed"},
		{"joiner", "tolerations", []any{map[string]any{"effect": "Never"}},
			"at '/tolerations/0/effect': value must be one of"},
		{"joiner", "extraArgs", []any{"batch"}, "at '/extraArgs/0': 'batch' does not match pattern"},
		{"joiner-operator", "serviceAccountName", "A B", "at '/serviceAccountName': 'A B' does not match pattern"},
		{"joiner-operator", "own", []any{"Full", "NodePools"}, "at '/own': 'oneOf' failed"},
		{"joiner-operator", "userData.amiIDs", []any{"image"},
			"at '/userData/amiIDs/0': 'image' does not match pattern"},
		{"joiner-webhook", "policy.groups", []any{map[string]any{"name": "ControlPlane"}},
			"at '/policy/groups/0': missing properties"},
		{"joiner-webhook", "policy.groups", []any{group("On")}, "at '/policy/groups/0/mode': value must be one of"},
		{"joiner-webhook", "ports.https", 443, "at '/ports/https': minimum: got 443, want 1,024"},
		{"joiner-webhook", "authentication.mode", "None", "at '/authentication/mode': value must be one of"},
		{"joiner", "image", "", "image: want the image of joiner"},
		{"joiner", "image", "public.ecr.aws/karpenter/controller:1.14.1",
			"at '/image': value must be 'an image of Joiner"},
		{"joiner", "controller.image.repository", "mirror.example.com/karpenter/controller",
			"at '/controller/image/repository': value must be 'an image of Joiner"},
		{"joiner", "settings.enableZonalShift", true, "at '/settings/enableZonalShift': value must be one of"},
		{"joiner", "settings.awsFeatureGates", map[string]any{"nodeClassCEL": true},
			"at '/settings/awsFeatureGates/nodeClassCEL'"},
		{"joiner", "settings.batchIdleDuration", "1", "at '/settings/batchIdleDuration': '1' does not match pattern"},
	} {
		refused(t, c.chart, c.path, c.value, c.says)
	}
}
