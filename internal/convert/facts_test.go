package convert

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// example is an object of a kind and version with a spec, and annotations.
func example(t *testing.T, kind, version, spec string, annotations object) object {
	t.Helper()
	group := map[string]string{"NodePool": karpenterv1.Group, "NodeClaim": karpenterv1.Group,
		"EC2NodeClass": awsv1.Group}[kind]
	o := object{"apiVersion": group + "/" + version, "kind": kind, "spec": decodeText(t, spec)}
	o["metadata"] = object{"name": "x", "uid": "7"}
	setAnnotations(o, cloneObject(annotations))
	return o
}

// templated is the spec of a NodePool with this in its template.
func templated(spec string) string { return `{"template":{"spec":` + spec + `},"disruption":{}}` }

// shown returns the value at a path as JSON; "" without one.
func shown(o object, path string) string {
	keys := unpointer(path)
	if value := get(at(o, keys[:len(keys)-1]...), keys[len(keys)-1]); value.present {
		return encode(value.value)
	}
	return ""
}

const ref, inTemplate = "/spec/nodeClassRef", "/spec/template/spec/nodeClassRef"

// V-22: what a reader of the other version sees, whatever notes make the way back exact.
func TestWhatTheOtherVersionSays(t *testing.T) {
	t.Parallel()
	ubuntu := object{awsv1.UbuntuCompatibilityAnnotationKey: "amiFamily,blockDeviceMappings,incompatible"}
	family := object{awsv1.UbuntuCompatibilityAnnotationKey: "amiFamily"}
	noImages, disks := `[{"id":"ami-placeholder"}]`, encode(ubuntuMappings())
	says(t, []saying{
		// Terms that choose an image are kept; aliases and parameters, which v1beta1 does not have, go.
		{"EC2NodeClass", V1, `{"amiSelectorTerms":[{"id":"a"},{"tags":{"b":"c"}}]}`, nil, "/spec/amiSelectorTerms",
			`[{"id":"a"},{"tags":{"b":"c"}}]`},
		{"EC2NodeClass", V1, `{"amiSelectorTerms":[{"id":"a"},{"tags":{"b":"c"}}]}`, nil, "/spec/amiFamily",
			`"Custom"`},
		{"EC2NodeClass", V1, `{"amiSelectorTerms":[{"id":"a"},{"alias":"al2@latest"}]}`, nil, "/spec/amiFamily",
			`"AL2"`},
		{"EC2NodeClass", V1, `{"amiSelectorTerms":[{"id":"a"},{"alias":"al2@latest"}]}`, nil,
			"/spec/amiSelectorTerms", `[{"id":"a"}]`},
		{"EC2NodeClass", V1, `{"amiSelectorTerms":[{"ssmParameter":"p"}]}`, nil, "/spec/amiSelectorTerms", ""},
		{"EC2NodeClass", V1, `{"amiSelectorTerms":[{"alias":"suse@latest"}]}`, nil, "/spec/amiFamily", `"Custom"`},
		{"EC2NodeClass", V1beta1, `{"amiFamily":"AL2","amiSelectorTerms":[{"id":"a"}]}`, nil,
			"/spec/amiSelectorTerms", `[{"id":"a"}]`},
		{"EC2NodeClass", V1beta1, `{"amiFamily":"AL2","amiSelectorTerms":[{"id":"a"}]}`, nil, "/spec/amiFamily",
			`"AL2"`},
		{"EC2NodeClass", V1beta1, `{"amiSelectorTerms":[{"id":"a"}]}`, nil, "/spec/amiFamily", `"Custom"`},
		// The versions mean another number of hops where none is given.
		{"EC2NodeClass", V1, `{}`, nil, "/spec/metadataOptions/httpPutResponseHopLimit", "1"},
		{"EC2NodeClass", V1beta1, `{}`, nil, "/spec/metadataOptions/httpPutResponseHopLimit", "2"},
		// Ubuntu keeps the images and disks that it was given, also those that it got while it was AL2.
		{"EC2NodeClass", V1beta1, `{"amiFamily":"Ubuntu","amiSelectorTerms":[{"id":"a"}]}`, nil,
			"/spec/amiSelectorTerms", `[{"id":"a"}]`},
		{"EC2NodeClass", V1beta1, `{"amiFamily":"Ubuntu","blockDeviceMappings":[{"deviceName":"d"}]}`, nil,
			"/spec/blockDeviceMappings", `[{"deviceName":"d"}]`},
		{"EC2NodeClass", V1, `{"amiFamily":"AL2","amiSelectorTerms":` + noImages + `,"blockDeviceMappings":` + disks +
			`}`, ubuntu, "/spec/amiFamily", `"Ubuntu"`},
		{"EC2NodeClass", V1, `{"amiFamily":"AL2","amiSelectorTerms":` + noImages + `}`, ubuntu,
			"/spec/amiSelectorTerms", ""},
		{"EC2NodeClass", V1, `{"amiFamily":"AL2","amiSelectorTerms":` + noImages + `}`, family,
			"/spec/amiSelectorTerms", noImages},
		{"EC2NodeClass", V1, `{"amiFamily":"AL2","amiSelectorTerms":[{"id":"b"}]}`, ubuntu, "/spec/amiSelectorTerms",
			`[{"id":"b"}]`},
		{"EC2NodeClass", V1, `{"amiFamily":"AL2","blockDeviceMappings":` + disks + `}`, ubuntu,
			"/spec/blockDeviceMappings", ""},
		{"EC2NodeClass", V1, `{"amiFamily":"AL2","blockDeviceMappings":` + disks + `}`, family,
			"/spec/blockDeviceMappings", disks},
		{"EC2NodeClass", V1, `{"amiFamily":"AL2","blockDeviceMappings":[{"deviceName":"d"}]}`, ubuntu,
			"/spec/blockDeviceMappings", `[{"deviceName":"d"}]`},
		{"EC2NodeClass", V1, `{"amiFamily":"AL2"}`, nil, "/spec/amiFamily", `"AL2"`},
		{"EC2NodeClass", V1, `{"amiFamily":"Bottlerocket"}`, ubuntu, "/spec/amiFamily", `"Bottlerocket"`},
		// A null value counts as missing.
		{"NodePool", V1beta1, `{"disruption":null}`, nil, "/spec/disruption/consolidationPolicy",
			`"WhenEmptyOrUnderutilized"`},
	})
}

// V-22: a reference to a node class means the same in both versions, and a claim has its expiry.
func TestWhatAReferenceSays(t *testing.T) {
	t.Parallel()
	kept := func(reference string) object { return object{karpenterv1.NodeClassReferenceAnnotationKey: reference} }
	says(t, []saying{
		// A reference names its group, or else the one that its kind is known by; nothing is made up for a part of an
		// object.
		{"NodeClaim", V1beta1, `{"nodeClassRef":{"apiVersion":"example.com/v1","kind":"EC2NodeClass","name":"n"}}`,
			nil, ref, `{"group":"example.com","kind":"EC2NodeClass","name":"n"}`},
		{"NodeClaim", V1beta1,
			`{"nodeClassRef":{"apiVersion":"karpenter.k8s.aws/v1beta1","kind":"Other","name":"n"}}`, nil, ref,
			`{"group":"karpenter.k8s.aws","kind":"Other","name":"n"}`},
		{"NodeClaim", V1beta1, `{"nodeClassRef":{"kind":"KWOKNodeClass"}}`, nil, ref,
			`{"group":"karpenter.kwok.sh","kind":"KWOKNodeClass"}`},
		{"NodeClaim", V1beta1, `{"requirements":[]}`, nil, ref, ""},
		{"NodeClaim", V1beta1, `{"requirements":[]}`, nil, "/metadata/annotations/" +
			strings.ReplaceAll(karpenterv1.NodeClassReferenceAnnotationKey, "/", "~1"), ""},
		{"NodePool", V1, templated(`{"requirements":[]}`), kept(`{"name":"n"}`), inTemplate, ""},
		{"NodeClaim", V1, `{"nodeClassRef":{"group":"example.com","kind":"EC2NodeClass","name":"n"}}`, nil, ref,
			`{"apiVersion":"example.com/v1","kind":"EC2NodeClass","name":"n"}`},
		{"NodeClaim", V1, `{"nodeClassRef":{"group":"karpenter.k8s.aws","kind":"Other","name":"n"}}`, nil, ref,
			`{"apiVersion":"karpenter.k8s.aws/v1","kind":"Other","name":"n"}`},
		{"NodeClaim", V1, `{"nodeClassRef":{"group":"karpenter.k8s.aws","kind":"EC2NodeClass"}}`, nil, ref,
			`{"apiVersion":"karpenter.k8s.aws/v1beta1","kind":"EC2NodeClass"}`},
		{"NodeClaim", V1, `{"nodeClassRef":{"kind":"EC2NodeClass","name":"n"}}`, nil, ref,
			`{"kind":"EC2NodeClass","name":"n"}`},
		// The annotation counts only while its texts equal the reference.
		{"NodeClaim", V1, `{"nodeClassRef":{"group":"karpenter.k8s.aws","kind":"EC2NodeClass","name":"n"}}`,
			kept(`{"name":"n"}`), ref, `{"name":"n"}`},
		{"NodeClaim", V1, `{"nodeClassRef":{"group":"karpenter.k8s.aws","kind":"EC2NodeClass","name":"n"}}`,
			kept(`{"name":"n","kind":7}`), ref,
			`{"apiVersion":"karpenter.k8s.aws/v1beta1","kind":"EC2NodeClass","name":"n"}`},
		{"NodeClaim", V1, `{"nodeClassRef":{"group":"c.d","kind":"K","name":"n"}}`,
			kept(`{"apiVersion":"a.b/v1","kind":"K","name":"n"}`), ref,
			`{"apiVersion":"c.d/v1","kind":"K","name":"n"}`},
		{"NodeClaim", V1, `{"nodeClassRef":{"group":"a.b","kind":"K","name":"n"}}`,
			kept(`{"apiVersion":"a.b/v1","kind":"L","name":"n"}`), ref,
			`{"apiVersion":"a.b/v1","kind":"K","name":"n"}`},
		{"NodeClaim", V1, `{"nodeClassRef":{}}`, kept(`{"apiVersion":"v1"}`), ref, `{}`},
		// expireAfter is the pool's, whatever stands in the claim by mistake, unless a note says that the claim has
		// its own.
		{"NodeClaim", V1beta1, `{}`,
			object{karpenterv1.V1FieldsAnnotationKey: `{"fields":[{"path":"/spec","was":{},"is":{"expireAfter":"1h"}}]}`},
			"/spec/expireAfter", `"1h"`},
		{"NodeClaim", V1beta1, `{"expireAfter":"1h"}`, nil, "/spec/expireAfter", `"Never"`},
	})
}

// saying is the expected value at a path of the other version; want is "" for none.
type saying struct {
	kind, from, spec string
	annotations      object
	path, want       string
}

func says(t *testing.T, list []saying) {
	t.Helper()
	all := converter(t)
	for _, c := range list {
		to := V1
		if c.from == V1 {
			to = V1beta1
		}
		result, err := all.Convert(example(t, c.kind, c.from, c.spec, c.annotations), to)
		if err != nil || len(result.Problems) > 0 {
			t.Errorf("%s %s: error %v, %s", c.kind, c.spec, err, Describe(result.Problems))
		} else if got := shown(result.Object, c.path); got != c.want {
			t.Errorf("%s of %s %s %v: %s, want %s", c.path, c.kind, c.spec, c.annotations, got, c.want)
		}
	}
}

// V-21: an edit in one version is visible in the other, although an older note says something else.
func TestAnEditIsReadInTheOtherVersion(t *testing.T) {
	t.Parallel()
	c := converter(t)
	for _, row := range []struct{ kind, from, spec, path, edit, read string }{
		{"NodePool", V1beta1, templated(`{}`), "/spec/disruption/budgets", `[{"nodes":"5"}]`,
			"/spec/disruption/budgets"},
		{"NodePool", V1beta1, templated(`{}`), "/spec/template/spec/expireAfter", `"1h"`,
			"/spec/disruption/expireAfter"},
		{"NodePool", V1, templated(`{"expireAfter":"2h"}`), "/spec/disruption/expireAfter", `"1h"`,
			"/spec/template/spec/expireAfter"},
		{"EC2NodeClass", V1beta1, `{}`, "/spec/metadataOptions/httpPutResponseHopLimit", `3`,
			"/spec/metadataOptions/httpPutResponseHopLimit"},
	} {
		to := V1
		if row.from == V1 {
			to = V1beta1
		}
		there, err := c.Convert(example(t, row.kind, row.from, row.spec, nil), to)
		if err != nil {
			t.Fatal(err)
		}
		keys := unpointer(row.path)
		at(there.Object, keys[:len(keys)-1]...)[keys[len(keys)-1]] = decodeText(t, `{"v":`+row.edit+`}`)["v"]
		back, err := c.Convert(there.Object, row.from)
		if got := shown(back.Object, row.read); err != nil || got != row.edit {
			t.Errorf("%s of %s is edited to %s, and %s is %s, error %v", row.path, row.spec, row.edit, row.read, got,
				err)
		}
	}
}

// V-22: a NodeClaim takes the expireAfter of a known pool; without a pool, or with an unknown one, it never expires.
func TestTheExpiryOfAClaim(t *testing.T) {
	t.Parallel()
	without, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	every, err := New(Config{Expiry: func(pool string) (string, bool) { return "24h", pool != "gone" }})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		converter  *Converter
		pool, want string
	}{{without, "default", `"Never"`}, {every, "default", `"24h"`}, {every, "gone", `"Never"`}, {every, "",
		`"Never"`}} {
		claim := example(t, "NodeClaim", V1beta1, `{"requirements":[]}`, nil)
		if row.pool != "" {
			at(claim, "metadata")["labels"] = object{karpenterv1.NodePoolLabelKey: row.pool}
		}
		result, err := row.converter.Convert(claim, V1)
		if got := shown(result.Object, "/spec/expireAfter"); err != nil || got != row.want ||
			len(result.Problems) > 0 {
			t.Errorf("pool %q: %s, want %s, error %v", row.pool, got, row.want, err)
		}
	}
}

// V-20: conversion to the object's own version returns an equal copy.
func TestTheSameVersionIsTheSameObject(t *testing.T) {
	t.Parallel()
	all := converter(t)
	o := example(t, "NodePool", V1beta1, templated(`{"kubelet":{"maxPods":3},"nodeClassRef":{"name":"n"}}`),
		object{"a": "b"})
	result, err := all.Convert(o, V1beta1)
	if err != nil || len(result.Problems) > 0 || !equal(result.Object, o) {
		t.Fatalf("%s, error %v", encode(result.Object), err)
	}
	at(result.Object, "spec")["weight"] = json.Number("1")
	if at(o, "spec")["weight"] != nil {
		t.Error("an edit of the answer changes the object")
	}
}

// V-23: a node's kubelet block is that with the right spelling, otherwise that with the other; an invalid block is
// reported.
func TestTheKubeletBlockOfANode(t *testing.T) {
	t.Parallel()
	right, wrong := karpenterv1.KubeletCompatibilityAnnotationKey,
		karpenterv1.MisspelledKubeletCompatibilityAnnotationKey
	for _, c := range []struct {
		annotations map[string]string
		block       string
		ok          bool
	}{
		{nil, "", true},
		{map[string]string{"other": "{}"}, "", true},
		{map[string]string{right: `{"maxPods":1}`}, `{"maxPods":1}`, true},
		{map[string]string{wrong: `{"maxPods":2}`}, `{"maxPods":2}`, true},
		{map[string]string{wrong: `{"maxPods":2}`, right: `{"maxPods":1}`}, `{"maxPods":1}`, true},
		{map[string]string{right: `{"maxPods":"many"}`}, `{"maxPods":"many"}`, false},
		{map[string]string{right: `null`}, `null`, false},
		{map[string]string{right: `{broken`}, `{broken`, false},
	} {
		if block, ok := Kubelet(c.annotations); string(block) != c.block || ok != c.ok {
			t.Errorf("%v: %s, %t, want %s, %t", c.annotations, block, ok, c.block, c.ok)
		}
	}
}

// V-22: the result has only fields of its version. An API server would remove others, and their content would be lost.
func TestAnAnswerHasFieldsOfItsVersionOnly(t *testing.T) {
	t.Parallel()
	all := converter(t)
	for kind, spec := range map[string]string{
		"NodePool": templated(
			`{"strange":1,"nodeClassRef":{"name":"n","strange":1},"taints":[{"key":"a","strange":1}],"requirements":[]}`),
		"NodeClaim": `{"strange":1,"nodeClassRef":{"name":"n","strange":"1"},"taints":[{"key":"a","strange":1}],"requirements":[]}`,
		"EC2NodeClass": `{"strange":1,"tags":{"a":"b"},"subnetSelectorTerms":[{"id":"i","strange":1,` +
			`"tags":{"c":"d"}}],"blockDeviceMappings":[{"ebs":{"strange":1}}]}`,
	} {
		o := example(t, kind, V1beta1, spec, nil)
		o["strange"], o["status"] = "x", object{"strange": "x"}
		result, err := all.Convert(o, V1)
		if err != nil || len(result.Problems) > 0 {
			t.Fatalf("%s: error %v, %s", kind, err, Describe(result.Problems))
		}
		bare := cloneObject(result.Object)
		delete(bare, "metadata")
		if text := encode(bare); strings.Contains(text, "strange") {
			t.Errorf("%s: %s", kind, text)
		}
		if tags := shown(result.Object, "/spec/tags"); kind == "EC2NodeClass" && tags != `{"a":"b"}` {
			t.Errorf("tags %s", tags)
		}
	}
}

// V-21, V-24: a note that conversion would not write is ignored: it changes neither the object nor its labels and
// annotations.
func TestANoteThatIsNotOursChangesNothing(t *testing.T) {
	t.Parallel()
	all := converter(t)
	spec := templated(`{"taints":[{"key":"a","effect":"NoSchedule"},null],"requirements":[]}`)
	for _, note := range []string{
		`{"fields":[{"path":"spec/weight","is":5}]}`,
		`{"fields":[{"path":"","is":5}]}`,
		`{"fields":[{"path":"/metadata/labels/compatibility.karpenter.sh~1v1-fields","is":"x"}]}`,
		`{"fields":[{"path":"/metadata/annotations/compatibility.karpenter.sh~1v1beta1-kubelet-conversion","is":7}]}`,
		`{"fields":[{"path":"/metadata/annotations/compatibility.karpenter.sh~1v1beta1-fields","is":7}]}`,
		`{"fields":[{"path":"/spec/template/spec/taints/0","was":{"key":"a","effect":"NoSchedule"}}]}`,
		`{"fields":[{"path":"/spec/template/spec/taints/1","is":{"key":"b","effect":"NoSchedule"}}]}`,
		`{"fields":[{"path":"/spec/template/spec/taints/-1","was":{"key":"b"},"is":{"key":"c"}}]}`,
		`{"fields":[{"path":"/spec/limits","is":{"cpu":"1e999999999"}}]}`,
	} {
		for _, from := range []string{V1beta1, V1} {
			to, key := V1, karpenterv1.V1FieldsAnnotationKey
			if from == V1 {
				to, key = V1beta1, karpenterv1.V1beta1FieldsAnnotationKey
			}
			plainly, err := all.Convert(example(t, "NodePool", from, spec, nil), to)
			if err != nil {
				t.Fatal(err)
			}
			o := example(t, "NodePool", from, spec, object{key: note})
			at(o, "metadata")["labels"] = object{"a": "b"}
			noted, err := all.Convert(o, to)
			if err != nil || len(noted.Problems) > 0 || !equal(noted.Object["spec"], plainly.Object["spec"]) ||
				!onlyStrings(annotationsOf(noted.Object)) || shown(noted.Object, "/metadata/labels") != `{"a":"b"}` {
				t.Errorf("%s in %s: %s, error %v, want the spec of %s", note, from, encode(noted.Object), err,
					encode(plainly.Object))
			}
		}
	}
}

// V-21: two equal notes about items of one list find different items, even after the list was sorted differently.
func TestNotesFindTheirItems(t *testing.T) {
	t.Parallel()
	c := converter(t)
	pool := example(t, "NodePool", V1,
		`{"template":{"spec":{"requirements":[]}},"disruption":{"budgets":[{"nodes":5},{"nodes":"1"},{"nodes":5}]}}`,
		nil)
	there, err := c.Convert(pool, V1beta1)
	if err != nil {
		t.Fatal(err)
	}
	budgets := at(there.Object, "spec", "disruption")["budgets"].([]any)
	if text := encode(budgets); text != `[{"nodes":"5"},{"nodes":"1"},{"nodes":"5"}]` {
		t.Fatalf("budgets %s", text)
	}
	slices.SortFunc(budgets, func(a, b any) int { return strings.Compare(encode(a), encode(b)) })
	back, err := c.Convert(there.Object, V1)
	if got := shown(back.Object, "/spec/disruption/budgets"); err != nil ||
		got != `[{"nodes":"1"},{"nodes":5},{"nodes":5}]` {
		t.Errorf("budgets %s, error %v", got, err)
	}
}

// V-21: values are equal exactly if API servers and clients treat them as equal. The laws and the notes are checked
// with this.
func TestWhatIsEqual(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1}`, `{"a":1.0}`, true}, {`{"a":1}`, `{"a":2}`, false}, {`{"a":1}`, `{"b":1}`, false}, {`{"a":null}`,
			`{"b":null}`, false},
		{`{}`, `{}`, true}, {`{}`, `7`, false}, {`{}`, `null`, false}, {`{}`, `[]`, false},
		{`[]`, `[]`, true}, {`[]`, `null`, false}, {`[1]`, `[1,1]`, false}, {`[1,2]`, `[2,1]`, false},
		{`-0`, `0`, true}, {`10`, `11`, false}, {`1`, `1e0`, true}, {`1`, `"1"`, false}, {`0`, `null`, false}, {`1.5`,
			`1.50`, true}, {`1.5`, `1.6`,
			false}, {`1.5`, `1`, false},
		{`9007199254740993`, `9007199254740992`, false}, {`1e400`, `1e400`, true}, {`1e400`, `1e401`,
			false}, {`1e400`, `0`, false},
		{`9223372036854775808`, `9223372036854775808.0`, true}, {`9223372036854775807`, `0`, false},
		{`"a"`, `"a"`, true}, {`"a"`, `"b"`, false}, {`true`, `true`, true}, {`null`, `null`, true}, {`null`, `false`,
			false},
	} {
		a, b := decodeText(t, `{"v":`+c.a+`}`)["v"], decodeText(t, `{"v":`+c.b+`}`)["v"]
		if equal(a, b) != c.same || equal(b, a) != c.same {
			t.Errorf("%s and %s: %t and %t, want %t", c.a, c.b, equal(a, b), equal(b, a), c.same)
		}
	}
}

// V-21, V-25: exactly one object is read, with its numbers as written, and nothing that only looks like an object.
func TestDecodeReadsOneObject(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		`{"a":1.0}`: "", ` {} `: "", `{}{}`: "something follows it", `{} x`: "something follows it",
		`null`: "it is null", `[]`: "cannot unmarshal array", `{"a":`: "unexpected EOF", ``: "EOF",
	} {
		o, err := Decode([]byte(from))
		if want == "" && (err != nil || encode(o) != strings.TrimSpace(from)) {
			t.Errorf("%s: %s, error %v", from, encode(o), err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want) || o != nil) {
			t.Errorf("%s: %s, error %v, want %s", from, encode(o), err, want)
		}
	}
}
