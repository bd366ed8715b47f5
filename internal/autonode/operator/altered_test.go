package operator

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/api/crd"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
)

// specSchema returns the schema of the spec in version v1 of a definition.
func specSchema(t *testing.T, file string) map[string]any {
	t.Helper()
	manifests, err := crd.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	var definition map[string]any
	if err := yaml.Unmarshal(manifests[file], &definition); err != nil {
		t.Fatal(err)
	}
	version := definition["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	if version["name"] != "v1" {
		t.Fatalf("the first version is %v", version["name"])
	}
	schema := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	return schema["properties"].(map[string]any)["spec"].(map[string]any)
}

// a default of the definitions that the table lacks would be taken for an alteration, or hide one.
func TestA01_TheTableHasEveryDefaultOfTheDefinitions(t *testing.T) {
	t.Parallel()
	for file, table := range map[string]map[string]string{
		"karpenter.k8s.aws_ec2nodeclasses.yaml": karpenterawsv1.EC2NodeClassSpecDefaults(),
		"karpenter.sh_nodepools.yaml":           karpenterv1.NodePoolSpecDefaults(),
	} {
		found := 0
		var look func(path string, schema map[string]any)
		look = func(path string, schema map[string]any) {
			if value, has := schema["default"]; has {
				found++
				if text, err := json.Marshal(value); err != nil || table[path] != string(text) {
					t.Errorf("%s: the table has %s for %s, the definition %s", file, table[path], path, text)
				}
			}
			properties, _ := schema["properties"].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(properties)) {
				look(path+"."+name, properties[name].(map[string]any))
			}
			if items, is := schema["items"].(map[string]any); is {
				look(path+"[]", items)
			}
			if values, is := schema["additionalProperties"].(map[string]any); is {
				look(path+"[*]", values)
			}
		}
		look("spec", specSchema(t, file))
		if found == 0 || found != len(table) {
			t.Errorf("%s: %d defaults in the definition, %d in the table", file, found, len(table))
		}
	}
}

// A-01, generated: for every leaf of an EC2NodeClass, it is found if it is there and was not written, if it is
// missing, and if it has another value. The mutants "an EC2NodeClass is always as written" and "the root volume alone
// counts" die here.
func TestA01_EveryLeafOfAnEC2NodeClassCounts(t *testing.T) {
	t.Parallel()
	kind := EC2NodeClasses(AWSConfig{})
	leaves := 0
	var visit func(path string, schema map[string]any, build func(leaf any) any)
	visit = func(path string, schema map[string]any, build func(leaf any) any) {
		properties, _ := schema["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			visit(path+"."+name, properties[name].(map[string]any),
				func(leaf any) any { return build(map[string]any{name: leaf}) })
		}
		if items, is := schema["items"].(map[string]any); is {
			visit(path+"[0]", items, func(leaf any) any { return build([]any{leaf}) })
		}
		if values, is := schema["additionalProperties"].(map[string]any); is {
			visit(path+".key", values, func(leaf any) any { return build(map[string]any{"key": leaf}) })
		}
		if len(properties) > 0 || schema["items"] != nil || schema["additionalProperties"] != nil {
			return
		}
		leaves++
		one, other := leafValues(t, path, schema)
		with, another, without := classOf(t, build(one)), classOf(t, build(other)), &karpenterawsv1.EC2NodeClass{}
		for what, c := range map[string]struct{ stored, wanted *karpenterawsv1.EC2NodeClass }{
			"added": {with, without}, "taken away": {without, with}, "changed": {another, with},
		} {
			top, _, _ := strings.Cut(strings.TrimPrefix(path, "spec."), "[")
			got := kind.Altered(c.stored, c.wanted)
			if !slices.ContainsFunc(got.Policy, func(p string) bool {
				return p == path || strings.HasPrefix(path, p) && strings.Contains(p, top)
			}) {
				t.Errorf("%s %s: %+v", path, what, got)
			}
		}
		if got := kind.Altered(with, with.DeepCopy()); got.Any() {
			t.Errorf("%s as written: %+v", path, got)
		}
	}
	visit("spec", specSchema(t, "karpenter.k8s.aws_ec2nodeclasses.yaml"), func(leaf any) any { return leaf })
	if leaves < 60 {
		t.Errorf("%d leaves were looked at, an EC2NodeClass has more", leaves)
	}
}

// leafValues are two values that differ from each other and from the default.
func leafValues(t *testing.T, path string, schema map[string]any) (one, other any) {
	t.Helper()
	switch kind := fmt.Sprint(schema["type"], schema["x-kubernetes-int-or-string"]); {
	case strings.HasPrefix(kind, "boolean"):
		return true, false
	case strings.HasPrefix(kind, "integer"):
		return 7, 8
	case strings.Contains(path, "evictionSoftGracePeriod"), strings.Contains(path, "Duration"),
		strings.Contains(path, "Period"), strings.Contains(path, "MinimumGCAge"):
		return "3m0s", "4m0s"
	case strings.Contains(path, "volumeSize"):
		return "3Gi", "4Gi"
	}
	return "one", "other"
}

func classOf(t *testing.T, spec any) *karpenterawsv1.EC2NodeClass {
	t.Helper()
	data, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	var class karpenterawsv1.EC2NodeClass
	if err := json.Unmarshal(data, &class); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return &class
}

// a default that the API server fills in is no alteration, be it a whole object or a field next to a written
// one. A value other than the default is.
func TestA01_DefaultsAreNoAlterations(t *testing.T) {
	t.Parallel()
	kind := EC2NodeClasses(AWSConfig{})
	filled := map[string]any{"httpEndpoint": "enabled", "httpProtocolIPv6": "disabled", "httpPutResponseHopLimit": 1,
		"httpTokens": "required"}
	with := func(key string, value any) map[string]any {
		changed := maps.Clone(filled)
		changed[key] = value
		return changed
	}
	for name, c := range map[string]struct {
		wanted, stored map[string]any
		paths          []string
	}{
		"all filled in": {nil, filled, nil},
		"one written":   {map[string]any{"httpTokens": "optional"}, with("httpTokens", "optional"), nil},
		"a default taken for all": {nil, with("httpTokens", "optional"),
			[]string{"spec.metadataOptions.httpTokens"}},
		"a default beside it": {map[string]any{"httpTokens": "required"}, with("httpPutResponseHopLimit", 2),
			[]string{"spec.metadataOptions.httpPutResponseHopLimit"}},
		"what was written replaced": {map[string]any{"httpTokens": "optional"}, filled,
			[]string{"spec.metadataOptions.httpTokens"}},
	} {
		class := func(options map[string]any) *karpenterawsv1.EC2NodeClass {
			if options == nil {
				return &karpenterawsv1.EC2NodeClass{}
			}
			return classOf(t, map[string]any{"metadataOptions": options})
		}
		if got := kind.Altered(class(c.stored), class(c.wanted)); !reflect.DeepEqual(got.Policy, c.paths) {
			t.Errorf("%s: %v, want %v", name, got.Policy, c.paths)
		}
	}
}

// Of many fields the message names ten.
func TestA01_AMessageNamesTenFields(t *testing.T) {
	t.Parallel()
	var paths []string
	for i := range 12 {
		paths = append(paths, fmt.Sprintf("spec.tags.k%02d", i))
	}
	said := alteration("EC2NodeClass", paths)
	if !strings.Contains(said, "spec.tags.k09, and 2 more: ") || strings.Contains(said, "k10") {
		t.Error(said)
	}
	if said := alteration("EC2NodeClass", paths[:10]); !strings.Contains(said, "spec.tags.k09: ") {
		t.Error(said)
	}
}

// the paths are those of the fields that differ, and of no others.
func TestA01_WhichFieldsDiffer(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	type list = []any
	defaults := map[string]string{"spec.size": "3", "spec.parts[].size": "4"}
	for name, c := range map[string]struct {
		stored, wanted object
		paths          []string
	}{
		"another value":            {object{"a": "x", "b": "y"}, object{"a": "z", "b": "y"}, []string{"spec.a"}},
		"a field more":             {object{"a": "x"}, object{}, []string{"spec.a"}},
		"a field less":             {object{}, object{"a": "x"}, []string{"spec.a"}},
		"in an object":             {object{"o": object{"a": 1}}, object{"o": object{"a": 2}}, []string{"spec.o.a"}},
		"an object more":           {object{"o": object{"a": 1}}, object{}, []string{"spec.o.a"}},
		"an object less":           {object{}, object{"o": object{"a": 1}}, []string{"spec.o.a"}},
		"an empty object more":     {object{"o": object{}}, object{}, []string{"spec.o"}},
		"an empty object less":     {object{}, object{"o": object{}}, []string{"spec.o"}},
		"in a list":                {object{"l": list{"x", "y"}}, object{"l": list{"x", "z"}}, []string{"spec.l[1]"}},
		"a list of another length": {object{"l": list{"x"}}, object{"l": list{"x", "z"}}, []string{"spec.l"}},
		"a list more":              {object{"l": list{"x"}}, object{}, []string{"spec.l"}},
		"an empty list more":       {object{"l": list{}}, object{}, []string{"spec.l"}},
		"an empty list less":       {object{}, object{"l": list{}}, []string{"spec.l"}},
		"a default":                {object{"size": 3, "a": "x"}, object{}, []string{"spec.a"}},
		"a default in a list": {object{"parts": list{object{"size": 4}}, "a": "x"}, object{"parts": list{object{}}},
			[]string{"spec.a"}},
		"another than the default":     {object{"size": 4}, object{}, []string{"spec.size"}},
		"null where the default is":    {object{"size": nil, "a": "x"}, object{"size": nil}, []string{"spec.a"}},
		"null, and nothing but":        {object{"b": nil, "a": "x"}, object{}, []string{"spec.a"}},
		"a name that begins the same":  {object{"nodes": 1}, object{}, []string{"spec.nodes"}},
		"what the policy decides":      {object{"node": 1}, object{}, nil},
		"below what it decides":        {object{"node": object{"a": 1}}, object{}, nil},
		"in a list that it decides of": {object{"node": list{1}}, object{"node": list{2}}, nil},
	} {
		got := differing(c.stored, c.wanted, defaults, under("spec.node"))
		if !slices.Equal(got.Other, c.paths) || (len(got.Policy) == 1) != (c.paths == nil) {
			t.Errorf("%s: %+v, want %v", name, got, c.paths)
		}
	}
}

// an amount that is spelled otherwise is the same amount.
func TestA01_AnotherSpellingIsNoAlteration(t *testing.T) {
	t.Parallel()
	pool := func(memory string) *karpenterv1.NodePool {
		return &karpenterv1.NodePool{Spec: karpenterv1.NodePoolSpec{
			Limits: karpenterv1.Limits{"memory": resource.MustParse(memory)},
		}}
	}
	kind := NodePools(merge.NodePoolSettings{})
	for stored, want := range map[string]bool{"1Gi": false, "1073741824": false, "2Gi": true} {
		if got := kind.Altered(pool(stored), pool("1Gi")); got.Any() != want {
			t.Errorf("stored as %s: %+v", stored, got)
		}
	}
}
