package convert

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// V-24: every type of a field is checked, and the error says what is wrong, where, and what is allowed.
func TestEachTypeIsChecked(t *testing.T) {
	t.Parallel()
	all := converter(t)
	for _, c := range []struct{ kind, from, spec, want string }{
		{"NodePool", V1beta1, templated(`{"taints":{}}`), `spec.template.spec.taints is {}: it must be a list`},
		{"NodePool", V1beta1, templated(`{"taints":[7]}`), `spec.template.spec.taints[0] is 7: it must be an object`},
		{"NodePool", V1beta1, templated(`{"taints":[{"timeAdded":"yesterday"}]}`),
			`spec.template.spec.taints[0].timeAdded is "yesterday": it must be a time such as 2026-01-02T03:04:05Z`},
		{"NodePool", V1beta1, templated(`{"taints":[{"timeAdded":5}]}`),
			`spec.template.spec.taints[0].timeAdded is 5: it must be a time such as 2026-01-02T03:04:05Z`},
		{"NodePool", V1beta1, `{"limits":{"cpu":1.5}}`, `spec.limits.cpu is 1.5: it must be a whole number`},
		{"NodePool", V1beta1, `{"limits":{"cpu":true}}`,
			`spec.limits.cpu is true: it must be a whole number or a string`},
		{"NodePool", V1beta1, `{"limits":{"cpu":99999999999999999999}}`,
			`spec.limits.cpu is 99999999999999999999: it must be a whole number`},
		{"NodePool", V1beta1, `{"weight":3000000000}`,
			`spec.weight is 3000000000: it must be a whole number of at most 32 bits`},
		{"NodePool", V1beta1, `{"weight":"3"}`, `spec.weight is "3": it must be a whole number of at most 32 bits`},
		{"NodePool", V1, `{"disruption":{"budgets":[{"nodes":"1e999999999"}]}}`,
			`spec.disruption.budgets[0].nodes is "1e999999999": it must be a whole number or a string`},
		{"NodePool", V1, `{"disruption":{"budgets":[{"nodes":true}]}}`,
			`spec.disruption.budgets[0].nodes is true: it must be a whole number or a string`},
		{"EC2NodeClass", V1beta1, `{"detailedMonitoring":"yes"}`,
			`spec.detailedMonitoring is "yes": it must be true or false`},
		{"EC2NodeClass", V1beta1, `{"blockDeviceMappings":[{"ebs":{"iops":1e400}}]}`,
			`spec.blockDeviceMappings[0].ebs.iops is 1e400: it must be a whole number of at most 64 bits`},
		{"EC2NodeClass", V1beta1, `{"blockDeviceMappings":[{"ebs":{"volumeSize":"1e999999999"}}]}`,
			`spec.blockDeviceMappings[0].ebs.volumeSize is "1e999999999": it must be a string`},
		{"EC2NodeClass", V1beta1, `{"blockDeviceMappings":[{"ebs":{"volumeSize":"much"}}]}`,
			`spec.blockDeviceMappings[0].ebs.volumeSize is "much": it must be a string`},
		{"EC2NodeClass", V1, `{"blockDeviceMappings":[{"ebs":{"volumeSize":""}}]}`,
			`spec.blockDeviceMappings[0].ebs.volumeSize is "": it must be a string`},
		{"NodePool", V1beta1, `{"limits":{"cpu":"much"}}`,
			`spec.limits.cpu is "much": it must be a whole number or a string`},
		{"NodePool", V1beta1, `{"disruption":{"budgets":[{"duration":"soon"}]}}`,
			`spec.disruption.budgets[0].duration is "soon": it must be a string`},
		{"NodePool", V1beta1, `{"disruption":{"consolidateAfter":"soon"}}`,
			`spec.disruption.consolidateAfter is "soon": it must be a string`},
		{"NodePool", V1beta1, `{"weight":"<&>"}`,
			`spec.weight is "<&>": it must be a whole number of at most 32 bits`},
		{"EC2NodeClass", V1beta1, `{"tags":{"a":7}}`, `spec.tags.a is 7: it must be a string`},
		{"EC2NodeClass", V1beta1, `{"role":7}`, `spec.role is 7: it must be a string`},
		{"EC2NodeClass", V1, `{"kubelet":{"featureGates":{"A":true},"maxPods":"x"}}`,
			`spec.kubelet.maxPods is "x": it must be a whole number of at most 32 bits`},
		// Valid objects.
		{"NodePool", V1beta1, `{"weight":null,"limits":null,"disruption":{"budgets":null}}`, ""},
		{"NodePool", V1beta1, templated(`{"taints":[null]}`), ""},
		{"NodePool", V1beta1, `{"weight":2000000000}`, ""},
		{"NodePool", V1beta1, `{"weight":3,"limits":{"cpu":5,"memory":"1e3"}}`, ""},
		{"EC2NodeClass", V1beta1,
			`{"role":"1e1234","detailedMonitoring":false,"blockDeviceMappings":[{"ebs":{"volumeSize":"1Gi","iops":9223372036854775807}}]}`,
			""},
		{"EC2NodeClass", V1, `{"kubelet":{"featureGates":{"A":true},"maxPods":3}}`, ""},
	} {
		to := V1
		if c.from == V1 {
			to = V1beta1
		}
		result, err := all.Convert(example(t, c.kind, c.from, c.spec, nil), to)
		got := Describe(result.Problems)
		if err != nil || len(result.Problems) > 1 || c.want == "" && got != "" ||
			c.want != "" && got != c.want && (!strings.HasPrefix(got, c.want+". ") || len(got) < len(c.want)+5) {
			t.Errorf("%s %s %s: %s, error %v, want %s", c.kind, c.from, c.spec, got, err, c.want)
		}
	}
}

// V-24: an amount with an exponent of three digits is refused, since decoding it would take for ever; what only looks
// like one is not.
func TestHugeExponents(t *testing.T) {
	t.Parallel()
	all := converter(t)
	for nodes, fine := range map[string]bool{
		"1e99": true, "10%": true, "1e10x": true, "xe100": true, "1xe1000": true, "12": true, "": true,
		"1e100": false, "1E100": false, "e999": false, "1e+100": false, "-1.5e-1000": false, "12e4567": false,
		".5e1.55": false,
	} {
		spec := `{"disruption":{"budgets":[{"nodes":"` + nodes + `"}]}}`
		result, err := all.Convert(example(t, "NodePool", V1, spec, nil), V1beta1)
		if err != nil || (len(result.Problems) == 0) != fine {
			t.Errorf("%s: %s, error %v", nodes, Describe(result.Problems), err)
		}
	}
}

// V-24: at most five problems are told, in order, and of a long value its beginning. A reference that is no reference
// is one problem, and so is a family that is no text.
func TestHowMuchIsTold(t *testing.T) {
	t.Parallel()
	all := converter(t)
	row := func(n int) string {
		var parts []string
		for i := range n {
			parts = append(parts, fmt.Sprintf(`"l%d":true`, i))
		}
		return `"limits":{` + strings.Join(parts, ",") + `}`
	}
	foreign := `"template":{"spec":{"nodeClassRef":{"kind":"Foo","name":"n"}}}`
	for _, c := range []struct {
		kind, spec string
		fields     []string
	}{
		{"NodePool", `{` + row(4) + `,` + foreign + `}`, []string{"spec.limits.l0", "spec.limits.l1",
			"spec.limits.l2", "spec.limits.l3", "spec.template.spec.nodeClassRef.apiVersion"}},
		{"NodePool", `{` + row(5) + `,` + foreign + `}`, []string{"spec.limits.l0", "spec.limits.l1",
			"spec.limits.l2", "spec.limits.l3", "spec.limits.l4"}},
		{"NodePool", `{` + row(6) + `}`, []string{"spec.limits.l0", "spec.limits.l1", "spec.limits.l2",
			"spec.limits.l3", "spec.limits.l4"}},
		{"NodePool", `{"template":{"spec":{"nodeClassRef":{"kind":"Foo","name":7}}}}`,
			[]string{"spec.template.spec.nodeClassRef.name"}},
		{"EC2NodeClass", `{"amiFamily":7}`, []string{"spec.amiFamily"}},
	} {
		result, err := all.Convert(example(t, c.kind, V1beta1, c.spec, nil), V1)
		var fields []string
		for _, p := range result.Problems {
			fields = append(fields, p.Field)
		}
		if err != nil || strings.Join(fields, " ") != strings.Join(c.fields, " ") {
			t.Errorf("%s: %q, error %v, want %q", c.spec, fields, err, c.fields)
		}
	}
	result, err := all.Convert(example(t, "NodePool", V1, `{"disruption":{"consolidationPolicy":7}}`, nil), V1beta1)
	if err != nil || len(result.Problems) != 1 {
		t.Fatalf("%s, error %v", Describe(result.Problems), err)
	}
	if told := strings.TrimPrefix(result.Problems[0].Allowed, "it must be a string. "); len(told) != 300+len("...") {
		t.Errorf("%d bytes of the documentation are told: %s", len(told), told)
	}
	for length, want := range map[int]string{118: `"` + strings.Repeat("x", 118) + `"`, 119: `"` +
		strings.Repeat("x", 119) + "..."} {
		result, err := all.Convert(example(t, "NodePool", V1beta1, `{"weight":"`+strings.Repeat("x", length)+`"}`,
			nil), V1)
		if err != nil || len(result.Problems) != 1 || result.Problems[0].Value != want {
			t.Errorf("%d bytes: %+v, error %v", length, result.Problems, err)
		}
	}
}

// V-24: an error that only decoding finds is reported too, without a field, and the object is held.
func TestWhatOnlyDecodingFinds(t *testing.T) {
	t.Parallel()
	all := converter(t)
	o := example(t, "NodePool", V1beta1, templated(`{"requirements":[]}`), nil)
	at(o, "metadata")["labels"] = object{"a": json.Number("7")}
	result, err := all.Convert(o, V1)
	if err != nil || len(result.Problems) != 1 || !strings.HasPrefix(Describe(result.Problems), "the object: ") ||
		!strings.Contains(Describe(result.Problems), "labels") {
		t.Errorf("%s, error %v", Describe(result.Problems), err)
	}
}

// V-24: the stand-in of an object causes no action, and has what its version requires, whatever parts the object
// has; its readable parts stay.
func TestWhatStandsForWhat(t *testing.T) {
	t.Parallel()
	all := converter(t)
	for _, c := range []struct {
		kind, from, object string
		want               map[string]string
	}{
		{"NodePool", V1beta1, `"spec":7`, map[string]string{
			"/spec/limits": `{"nodes":"0"}`, "/spec/template/spec/requirements": "[]",
			"/spec/template/spec/expireAfter":   `"Never"`,
			inTemplate:                          `{"group":"","kind":"","name":""}`,
			"/spec/disruption/consolidateAfter": `"Never"`, "/spec/disruption/budgets": `[{"nodes":"0"}]`}},
		{"NodePool", V1, `"spec":7`, map[string]string{
			"/spec/template/spec/requirements": "[]", inTemplate: `{"name":""}`,
			"/spec/disruption/expireAfter": `"Never"`}},
		{"NodePool", V1beta1, `"status":7`, map[string]string{"/spec/limits": `{"nodes":"0"}`,
			"/spec/template/spec/requirements": "[]"}},
		{"NodePool", V1beta1, `"status":7,"spec":{"weight":3}`, map[string]string{"/spec/weight": "3"}},
		{"NodePool", V1beta1, `"status":{"resources":7},"spec":{"weight":3}`,
			map[string]string{"/spec/weight": "3", "/status/resources": ""}},
		{"NodePool", V1beta1, `"spec":{"weight":"x","template":{"spec":{"nodeClassRef":{"kind":"Foo","name":7}}}}`,
			map[string]string{
				inTemplate: `{"group":"","kind":"Foo","name":""}`}},
		{"NodePool", V1beta1, `"spec":{"weight":"x","template":{"spec":{"taints":[{"key":"a"},7]}}}`,
			map[string]string{
				"/spec/weight": "", "/spec/template/spec/taints": ""}},
		{"NodePool", V1beta1, `"spec":{"weight":"x","strange":1,"template":{"spec":{"taints":[{"key":"a"},null]}}}`,
			map[string]string{
				"/spec/template/spec/taints": `[{"key":"a"},null]`, "/spec/strange": ""}},
		{"NodePool", V1beta1, `"spec":{"weight":"x","template":null}`,
			map[string]string{"/spec/template/spec/requirements": "[]"}},
		{"NodeClaim", V1beta1, `"spec":7`, map[string]string{
			"/spec/requirements": "[]", ref: `{"name":""}`, "/spec/expireAfter": `"Never"`}},
		{"NodeClaim", V1, `"spec":7`, map[string]string{"/spec/requirements": "[]", ref: `{"name":""}`,
			"/spec/expireAfter": ""}},
		{"NodeClaim", V1beta1, `"status":7,"spec":{"requirements":[{"key":"a","operator":"Exists"}]}`,
			map[string]string{
				"/spec/requirements": `[{"key":"a","operator":"Exists"}]`}},
		{"NodeClaim", V1beta1, `"status":7`, map[string]string{"/spec/requirements": "[]"}},
		{"EC2NodeClass", V1beta1, `"spec":7`, map[string]string{"/spec/metadataOptions/httpPutResponseHopLimit": "1"}},
		{"EC2NodeClass", V1, `"spec":7`, map[string]string{"/spec/metadataOptions/httpPutResponseHopLimit": "2"}},
		{"EC2NodeClass", V1, `"spec":{"amiSelectorTerms":[7,{"alias":"al2@latest"},{"id":"a"}]}`, map[string]string{
			"/spec/amiSelectorTerms": "", "/spec/amiFamily": `"AL2"`}},
		{"EC2NodeClass", V1beta1,
			`"spec":{"detailedMonitoring":1,"tags":{"a":"b"},"subnetSelectorTerms":[{"id":"i"}]}`, map[string]string{
				"/spec/tags": `{"a":"b"}`, "/spec/subnetSelectorTerms": `[{"id":"i"}]`,
				"/spec/detailedMonitoring": ""}},
	} {
		k, to := all.kinds[c.kind], V1
		if c.from == V1 {
			to = V1beta1
		}
		o := decodeText(t, `{"apiVersion":"`+k.group+`/`+c.from+`","kind":"`+c.kind+`","metadata":{"name":"x"},`+
			c.object+`}`)
		result, err := all.Convert(o, to)
		if err != nil || len(result.Problems) == 0 {
			t.Errorf("%s %s: no problem, error %v", c.kind, c.object, err)
			continue
		}
		for path, want := range c.want {
			if got := shown(result.Object, path); got != want {
				t.Errorf("%s of %s %s %s: %s, want %s", path, c.kind, c.from, c.object, got, want)
			}
		}
		if err := k.decode[to]([]byte(encode(result.Object))); err != nil {
			t.Errorf("%s %s: %v", c.kind, c.object, err)
		}
		if back, err := all.Convert(result.Object, c.from); err != nil || !equal(back.Object, o) {
			t.Errorf("%s %s: the way back gives %s, error %v", c.kind, c.object, encode(back.Object), err)
		}
	}
}

// V-24: the condition of a stand-in gives the reason, in at most 1024 bytes.
func TestTheConditionIsShort(t *testing.T) {
	t.Parallel()
	all := converter(t)
	var parts []string
	for i := range 5 {
		parts = append(parts, fmt.Sprintf(`"%s%d":[]`, strings.Repeat("x", 300), i))
	}
	result, err := all.Convert(example(t, "NodePool", V1beta1, `{"limits":{`+strings.Join(parts, ",")+`}}`, nil), V1)
	if err != nil {
		t.Fatal(err)
	}
	condition := at(result.Object, "status")["conditions"].([]any)[0].(object)
	if message := text(condition, "message"); message != Describe(result.Problems)[:1024]+"..." {
		t.Errorf("a message of %d bytes: %s", len(message), message)
	}
}

// V-24: an object that already has annotations of a held object is held with them, and gets them back.
func TestAHeldObjectKeepsAnnotationsOfTheSameName(t *testing.T) {
	t.Parallel()
	all := converter(t)
	for _, key := range heldKeys() {
		o := decodeText(t, brokenPool)
		annotationsOf(o)[key] = "mine"
		there, err := all.Convert(o, V1)
		if err != nil || len(there.Problems) == 0 {
			t.Fatalf("error %v", err)
		}
		if back, err := all.Convert(there.Object, V1beta1); err != nil || !equal(back.Object, o) {
			t.Errorf("%s: the way back gives %s, error %v", key, encode(back.Object), err)
		}
	}
}

// V-24: what an annotation holds counts only if conversion put it there: an object that could be converted, or that
// has annotations which no object can have, is made by hand.
func TestWhatIsHeldByHandDoesNotCount(t *testing.T) {
	t.Parallel()
	c := converter(t)
	stand, err := c.Convert(decodeText(t, brokenPool), V1)
	if err != nil {
		t.Fatal(err)
	}
	kept := text(annotationsOf(stand.Object), karpenterv1.UnconvertedAnnotationKey)
	for _, held := range []string{
		`{"annotations":7,` + kept[1:],
		`{"annotations":{"` + karpenterv1.ConversionProblemAnnotationKey + `":7},` + kept[1:],
		strings.Replace(kept, "v1beta1", "v9", 1),
	} {
		o := cloneObject(stand.Object)
		annotationsOf(o)[karpenterv1.UnconvertedAnnotationKey] = held
		back, err := c.Convert(o, V1beta1)
		if err != nil || strings.Contains(encode(back.Object["spec"]), "banana") ||
			!onlyStrings(annotationsOf(back.Object)) {
			t.Errorf("%s: %s, error %v", held, encode(back.Object), err)
		}
	}
	good, err := c.Convert(example(t, "NodePool", V1beta1, templated(`{"requirements":[]}`), nil), V1)
	if err != nil {
		t.Fatal(err)
	}
	setAnnotations(good.Object,
		object{karpenterv1.UnconvertedAnnotationKey: `{"apiVersion":"karpenter.sh/v1beta1","spec":` +
			templated(`{"requirements":[]}`) + `,"status":{"resources":{"cpu":"5"}}}`})
	back, err := c.Convert(good.Object, V1beta1)
	if got := shown(back.Object, "/status/resources"); err != nil || got != "" {
		t.Errorf("the status is that of the annotation: %s, error %v", got, err)
	}
}

// V-24: annotations may have 256 KiB, to the byte, also those of an object that is held.
func TestHowManyAnnotationsThereMayBe(t *testing.T) {
	t.Parallel()
	c := converter(t)
	padded := func(o object, size int) Result {
		setAnnotations(o, object{"pad": ""})
		result, err := c.Convert(o, V1)
		if err != nil {
			t.Fatal(err)
		}
		setAnnotations(o, object{"pad": strings.Repeat("x", size-sizeOf(annotationsOf(result.Object)))})
		if result, err = c.Convert(o, V1); err != nil {
			t.Fatal(err)
		}
		return result
	}
	fine := templated(`{"nodeClassRef":{"name":"n"},"requirements":[]}`)
	large := templated(`{"kubelet":{"clusterDNS":["` + strings.Repeat("x", maxAnnotations) + `"]}}`)
	for over, want := range map[int]bool{0: true, 1: false} {
		if result := padded(example(t, "NodePool", V1beta1, fine, nil),
			maxAnnotations+over); (len(result.Problems) == 0) != want {
			t.Errorf("%d bytes too many: %s", over, Describe(result.Problems))
		}
		result := padded(decodeText(t, brokenPool), maxAnnotations+over)
		if kept := text(annotationsOf(result.Object), karpenterv1.UnconvertedAnnotationKey) != ""; kept != want {
			t.Errorf("%d bytes too many: the object is kept: %t", over, kept)
		}
		result = padded(example(t, "NodePool", V1beta1, large, nil), maxAnnotations+over)
		if told := text(annotationsOf(result.Object), karpenterv1.ConversionProblemAnnotationKey) != ""; told != want {
			t.Errorf("%d bytes too many: the problem is told: %t", over, told)
		}
	}
}
