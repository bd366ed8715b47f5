package convert

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/api/crd"
)

// generator makes objects of a kind and version from the schema of its CRD, so that a field that is added later is
// generated too.
type generator struct {
	kind, group, version string
	schema               object
}

func generators(t testing.TB) []generator {
	t.Helper()
	manifests, err := crd.Unconverted()
	if err != nil {
		t.Fatal(err)
	}
	var found []generator
	for _, manifest := range manifests {
		data, err := yaml.YAMLToJSON(manifest)
		if err != nil {
			t.Fatal(err)
		}
		crd, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range at(crd, "spec")["versions"].([]any) {
			version := item.(object)
			found = append(found, generator{
				kind: text(at(crd, "spec", "names"), "kind"), group: text(at(crd, "spec"), "group"),
				version: text(version, "name"), schema: at(version, "schema", "openAPIV3Schema"),
			})
		}
	}
	slices.SortFunc(found, func(a, b generator) int { return strings.Compare(a.kind+a.version, b.kind+b.version) })
	return found
}

func (g generator) name() string { return g.kind + " " + g.version }

// rounds is how many objects of each kind and version a property is tried with: CONVERT_ROUNDS, or a moderate number.
func rounds(t testing.TB) int {
	t.Helper()
	if text := os.Getenv("CONVERT_ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("CONVERT_ROUNDS is %q: want a number", text)
		}
		return n
	}
	return 100
}

// object draws an object; some have unknown fields, and annotations of Karpenter's and of others.
func (g generator) object(r *rapid.T) object {
	o := g.value(r, "", g.schema).(object)
	o["apiVersion"], o["kind"] = g.group+"/"+g.version, g.kind
	metadata := object{"name": "default", "uid": "3f1e", "creationTimestamp": "2026-01-02T03:04:05Z"}
	annotations := object{}
	for _, key := range []string{"karpenter.sh/nodepool-hash", "example.com/a~b"} {
		if sometimes(r) {
			annotations[key] = "12"
		}
	}
	if sometimes(r) {
		annotations[spelledKubelets[rapid.IntRange(0, 1).Draw(r, "spelling")]] = sample(r, `{"maxPods":10}`,
			`{ "maxPods" : 10.0 }`, `{"x":[1]}`, "{}", "{broken", "7")
	}
	if sometimes(r) {
		annotations[spelledReferences[rapid.IntRange(0, 1).Draw(r, "spelling")]] = sample(r, `{"name":"default"}`,
			`{"kind":"EC2NodeClass","name":"default","apiVersion":"karpenter.k8s.aws/v1beta1"}`, "[]")
	}
	if sometimes(r) {
		annotations["compatibility.karpenter.k8s.aws/v1beta1-ubuntu"] = sample(r, "amiFamily",
			"amiFamily,blockDeviceMappings,incompatible", "x")
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	if sometimes(r) {
		metadata["labels"] = object{"karpenter.sh/nodepool": sample(r, "default", "other")}
	}
	o["metadata"] = metadata
	return o
}

var (
	spelledKubelets = []string{"compatibility.karpenter.sh/v1beta1-kubelet-conversion",
		"compatability.karpenter.sh/v1beta1-kubelet-conversion"}
	spelledReferences = []string{"compatibility.karpenter.sh/v1beta1-nodeclass-reference",
		"compatability.karpenter.sh/v1beta1-nodeclass-reference"}
)

func sometimes(r *rapid.T) bool { return rapid.IntRange(0, 2).Draw(r, "sometimes") == 0 }

func sample(r *rapid.T, values ...string) string { return rapid.SampledFrom(values).Draw(r, "sample") }

// texts are values for fields with a meaningful text, by field name.
var texts = map[string][]string{
	"expireAfter": {"720h", "Never", "30d", "1h30m"}, "consolidateAfter": {"0s", "30s", "Never", "1h"},
	"duration":               {"8h", "1h30m"},
	"terminationGracePeriod": {"1d", "30s"}, "schedule": {"@daily", "0 9 * * mon-fri"},
	"group": {"karpenter.k8s.aws", "karpenter.kwok.sh", "example.com"},
	"apiVersion": {"karpenter.k8s.aws/v1beta1", "karpenter.kwok.sh/v1alpha1", "example.com/v9",
		"karpenter.k8s.aws/v1"},
	"alias":      {"al2023@latest", "al2@v20240807", "bottlerocket@latest", "windows2025@latest"},
	"volumeSize": {"20Gi", "1T"}, "amiFamily": {"AL2", "AL2023", "Ubuntu", "Custom", "Bottlerocket", "Windows2022"},
}

func (g generator) value(r *rapid.T, name string, s object) any {
	switch {
	case s["x-kubernetes-int-or-string"] == true:
		if name == "nodes" {
			return []any{json.Number("0"), json.Number("5"), "5", "10%"}[rapid.IntRange(0, 3).Draw(r, name)]
		}
		return sample(r, "1", "8192Mi", "100m", "8Gi", "0")
	case s["enum"] != nil:
		values := s["enum"].([]any)
		if known := texts[name]; known != nil {
			return sample(r, known...)
		}
		return values[rapid.IntRange(0, len(values)-1).Draw(r, name)]
	}
	switch text(s, "type") {
	case "object":
		return g.fields(r, name, s)
	case "array":
		list := []any{}
		for range rapid.IntRange(0, 2).Draw(r, name) {
			list = append(list, g.value(r, name, at(s, "items")))
		}
		return list
	case "boolean":
		return rapid.Bool().Draw(r, name)
	case "integer":
		return json.Number(strconv.Itoa(rapid.IntRange(0, 50).Draw(r, name)))
	}
	switch {
	case text(s, "format") == "date-time":
		return "2026-01-02T03:04:05Z"
	case texts[name] != nil:
		return sample(r, texts[name]...)
	case name == "nodes":
		return sample(r, "0", "5", "10%")
	case name == "kind" && g.kind != "EC2NodeClass":
		return sample(r, "EC2NodeClass", "KWOKNodeClass", "OtherClass")
	case strings.Contains(text(s, "pattern"), "[0-9]+["):
		return sample(r, "90s", "2h")
	case strings.Contains(text(s, "pattern"), "[numkMGTPE]"):
		return sample(r, "1", "8192Mi")
	}
	return sample(r, "a", "b", "karpenter.sh/x", "<&>", "ü")
}

func (g generator) fields(r *rapid.T, name string, s object) object {
	o := object{}
	properties := at(s, "properties")
	required, _ := s["required"].([]any)
	for _, key := range keys(properties, nil) {
		if key == "metadata" && name == "" || key == "apiVersion" && name == "" || key == "kind" && name == "" {
			continue
		}
		// A reference to a kind that nobody knows needs both; the schema sees to that.
		whole := name == "nodeClassRef" && g.version == V1beta1 && (key == "kind" || key == "apiVersion")
		if slices.Contains(required, any(key)) || whole || key == "spec" || rapid.IntRange(0, 2).Draw(r, key) > 0 {
			o[key] = g.value(r, key, properties[key].(object))
		}
	}
	if values := at(s, "additionalProperties"); values != nil {
		for range rapid.IntRange(0, 2).Draw(r, name) {
			o[sample(r, "cpu", "memory", "example.com/x", "team")] = g.value(r, "", values)
		}
	}
	if s["x-kubernetes-preserve-unknown-fields"] == true && sometimes(r) {
		o["featureGates"] = object{"A": true}
	}
	return o
}

// unknown adds fields that no version has; some differ from a known one only in case.
func unknown(r *rapid.T, o object) {
	for _, path := range [][]string{{}, {"spec"}, {"status"}, {"spec", "template"}, {"spec", "disruption"},
		{"spec", "nodeClassRef"}} {
		if parent := at(o, path...); parent != nil && sometimes(r) {
			parent["strange"] = []any{object{"deep": json.Number("1.50")}, nil, "x"}
			known := keys(parent, nil)[0]
			parent[strings.ToUpper(known[:1])+known[1:]] = []any{json.Number("7")}
		}
	}
}

// serve changes an object of a version like an API server that reads or receives it: it sets defaults and removes
// unknown fields.
func (g generator) serve(k *kind, o object) object {
	served := cloneObject(o)
	k.finish(served, cloneObject(annotationsOf(o)), g.version)
	defaults(g.schema, served)
	return served
}

func defaults(s object, value any) {
	switch value := value.(type) {
	case object:
		properties := at(s, "properties")
		for _, key := range keys(properties, nil) {
			property := properties[key].(object)
			if _, present := value[key]; !present && property["default"] != nil {
				value[key] = clone(property["default"])
			}
			if item, present := value[key]; present {
				defaults(property, item)
			}
		}
		for key, item := range value {
			if properties[key] == nil {
				defaults(at(s, "additionalProperties"), item)
			}
		}
	case []any:
		for _, item := range value {
			defaults(at(s, "items"), item)
		}
	}
}
