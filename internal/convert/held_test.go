package convert

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

func decodeText(t testing.TB, content string) object {
	t.Helper()
	o, err := Decode([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// brokenPool is an invalid NodePool of v1beta1 that an older CRD accepted.
const brokenPool = `{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePool","metadata":{"name":"broken","uid":"7","annotations":{"a":"b"}},
"spec":{"disruption":{"expireAfter":"banana","budgets":[{"nodes":"5"}]},"limits":{"cpu":"100"},
"template":{"spec":{"requirements":[],"nodeClassRef":{"name":"default","kind":"EC2NodeClass"},"taints":[{"key":"a","effect":"NoSchedule"}]}}}}`

// V-24: a list with one object that cannot be converted has the others, and says which one and why.
func TestAListWithABrokenObjectHasTheOthers(t *testing.T) {
	t.Parallel()
	good := strings.NewReplacer("banana", "1h", "broken", "good").Replace(brokenPool)
	request :=
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u1",` +
			`"desiredAPIVersion":"karpenter.sh/v1","objects":[` +
			good + "," + brokenPool + "," + good + "]}}"
	answer, held, err := converter(t).Review([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	var got review
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Fatal(err)
	}
	if got.Response.Result.Status != "Success" || got.Response.UID != "u1" || len(got.Response.ConvertedObjects) != 3 {
		t.Fatalf("answer %s", answer)
	}
	if len(held) != 1 || held[0].Name != "broken" || !strings.HasPrefix(held[0].String(),
		`NodePool broken: spec.disruption.expireAfter is "banana": it must be a string. ExpireAfter is how long`) {
		t.Fatalf("held %v", held)
	}
	for i, data := range got.Response.ConvertedObjects {
		var pool karpenterv1.NodePool
		if err := json.Unmarshal(data, &pool); err != nil {
			t.Fatal(err)
		}
		problem := pool.Annotations[karpenterv1.ConversionProblemAnnotationKey]
		if (i == 1) != strings.Contains(problem, "spec.disruption.expireAfter") ||
			pool.APIVersion != "karpenter.sh/v1" {
			t.Errorf("object %d: %s", i, data)
		}
		if nodes := pool.Spec.Limits["nodes"]; i == 1 &&
			(nodes.String() != "0" || pool.Spec.Disruption.Budgets[0].Nodes.String() != "0" ||
				pool.Annotations["a"] != "b" || len(pool.Spec.Template.Spec.Taints) != 1) {
			t.Errorf("the pool is not at rest: %s", data)
		}
	}
}

// V-24: for any error in an object, its stand-in can be decoded, and becomes the original when converted back, even
// after an API server has set defaults. Once its spec is edited, the edit counts.
func TestWhatStandsForABrokenObjectKeepsIt(t *testing.T) {
	t.Parallel()
	eachKind(t, func(r *rapid.T, c *Converter, g, other generator) {
		k := c.kinds[g.kind]
		o := g.object(r)
		damage(r, o)
		result, err := c.Convert(o, other.version)
		if err != nil {
			r.Fatal(err)
		}
		if err := k.decode[other.version]([]byte(encode(result.Object))); err != nil {
			r.Fatalf("%s\ncannot be read: %v", encode(result.Object), err)
		}
		if len(result.Problems) == 0 {
			return // the damage did not matter
		}
		same(r, "the way back", mustBack(r, c, result.Object, g.version), o)
		same(r, "through an API server", mustBack(r, c, other.serve(k, result.Object), g.version), o, result.Object)

		edited := cloneObject(result.Object)
		edited["spec"] = other.object(r)["spec"]
		back := mustBack(r, c, edited, g.version)
		if annotationsOf(back)[karpenterv1.UnconvertedAnnotationKey] != nil {
			r.Fatalf("%s\nstill stands for another", encode(back))
		}
		same(r, "the edit", at(mustBack(r, c, back, other.version), "spec"), at(edited, "spec"), back)
	})
}

func mustBack(r *rapid.T, c *Converter, o object, version string) object {
	result, err := c.Convert(o, version)
	if err != nil || len(result.Problems) > 0 {
		r.Fatalf("%s\nerror %v, %s", encode(o), err, Describe(result.Problems))
	}
	return result.Object
}

// damage replaces some value in spec or status by one of another type, or by a text without meaning.
func damage(r *rapid.T, o object) {
	part := sample(r, "spec", "spec", "status")
	if sometimes(r) {
		o[part] = wreck(r)
		return
	}
	for current, _ := o[part].(object); current != nil; {
		names := keys(current, nil)
		if len(names) == 0 {
			return
		}
		key := names[rapid.IntRange(0, len(names)-1).Draw(r, "key")]
		next, isObject := current[key].(object)
		if !isObject || sometimes(r) {
			current[key] = wreck(r)
			return
		}
		current = next
	}
}

func wreck(r *rapid.T) any {
	return []any{"banana", json.Number("1e400"), json.Number("7"), true, object{"x": []any{}},
		[]any{json.Number("1"), "x"}, "1e999999999", ""}[rapid.IntRange(0, 7).Draw(r, "wreck")]
}

// V-24: each error names the field, the value, and what is allowed.
func TestProblemsNameFieldValueAndWhatIsAllowed(t *testing.T) {
	t.Parallel()
	c := converter(t)
	class :=
		`{"apiVersion":"karpenter.k8s.aws/v1beta1","kind":"EC2NodeClass","metadata":{"name":"c"},"spec":{"amiFamily":"AL2"}}`
	for want, row := range map[string][3]string{
		`spec.weight is "x": it must be a whole number of at most 32 bits`: {
			brokenPool, `"limits"`, `"weight":"x","limits"`,
		},
		`spec.limits.cpu is "1e999999999": it must be a whole number or a string`: {
			brokenPool, `"100"`, `"1e999999999"`,
		},
		`spec.template is 5: it must be an object`: {
			brokenPool, `"template":{`, `"template":5,"other":{`,
		},
		`spec.template.spec.nodeClassRef.apiVersion is "": it is missing, and the group of the kind "Foo"`: {
			brokenPool, `"EC2NodeClass"`, `"Foo"`,
		},
		`spec.template.spec.nodeClassRef.apiVersion is "v1": it must be a group and a version`: {
			brokenPool, `"kind":"EC2NodeClass"`, `"apiVersion":"v1"`,
		},
		`spec.template.spec.nodeClassRef.kind is "": it is missing, and the kind of the group "a.b"`: {
			brokenPool, `"kind":"EC2NodeClass"`, `"apiVersion":"a.b/v1"`,
		},
		`spec.template.spec.taints[0].key is 1: it must be a string`: {
			brokenPool, `"key":"a"`, `"key":1`,
		},
		`spec.amiFamily is "SUSE": it must be one of AL2, AL2023, Bottlerocket`: {
			class, `AL2`, `SUSE`,
		},
		`spec.userData is 7: it must be a string. UserData is run or read`: {
			class, `"amiFamily"`, `"userData":7,"amiFamily"`,
		},
	} {
		from := strings.Replace(strings.Replace(row[0], row[1], row[2], 1), "banana", "1h", 1)
		result, err := c.Convert(decodeText(t, from), V1)
		if err != nil || !strings.Contains(Describe(result.Problems), want) {
			t.Errorf("%s\n got %s, error %v\nwant %s", from, Describe(result.Problems), err, want)
		}
	}
	fine := strings.Replace(strings.Replace(brokenPool, "banana", "1h", 1), `"template":{`,
		`"template":{"metadata":{"labels":{"commit":"12e4567"}},`, 1)
	if result, err := c.Convert(decodeText(t, fine), V1); err != nil || len(result.Problems) > 0 {
		t.Errorf("a label that looks like an amount: %s, error %v", Describe(result.Problems), err)
	}
	large := strings.Replace(strings.Replace(brokenPool, "banana", "1h", 1), `"taints"`, `"kubelet":{"clusterDNS":["`+
		strings.Repeat("x", maxAnnotations)+`"]},"taints"`, 1)
	result, err := c.Convert(decodeText(t, large), V1)
	if err != nil || !strings.Contains(Describe(result.Problems), "at most 262144 bytes are allowed") {
		t.Errorf("a block of %d bytes: %s, error %v", maxAnnotations, Describe(result.Problems), err)
	}
}

// V-24: if the annotation that holds the original is forged to contain an annotation that no API server accepts, the
// object does not get it.
func TestAHeldObjectByHandGetsNoAnnotations(t *testing.T) {
	t.Parallel()
	c := converter(t)
	stand, err := c.Convert(decodeText(t, brokenPool), V1)
	if err != nil {
		t.Fatal(err)
	}
	annotations := annotationsOf(stand.Object)
	kept := text(annotations, karpenterv1.UnconvertedAnnotationKey)
	annotations[karpenterv1.UnconvertedAnnotationKey] = `{"annotations":{"no key":"x"},` + kept[1:]
	back, err := c.Convert(stand.Object, V1beta1)
	if err != nil || annotationsOf(back.Object)["no key"] != nil {
		t.Errorf("error %v, %s", err, encode(back.Object))
	}
}

// V-24: the stand-in of an object that is too large has no more annotations than an API server accepts, and as many
// of them as fit.
func TestWhatStandsForALargeObjectHasRoom(t *testing.T) {
	t.Parallel()
	c := converter(t)
	for _, row := range []struct {
		kubelet, annotation int
		problem             string
	}{
		{maxAnnotations, 10, "the object is too large to be kept here"},
		{maxAnnotations / 2, maxAnnotations / 2, "the object is too large to be kept here"},
		{10, maxAnnotations - 1, ""},
	} {
		o := decodeText(t, strings.Replace(strings.Replace(brokenPool, "banana", "1h", 1), `"taints"`,
			`"kubelet":{"clusterDNS":["`+strings.Repeat("x", row.kubelet)+`"]},"taints"`, 1))
		setAnnotations(o, object{"a": strings.Repeat("x", row.annotation)})
		result, err := c.Convert(o, V1)
		if err != nil || len(result.Problems) == 0 {
			t.Fatalf("%+v: error %v, %d problems", row, err, len(result.Problems))
		}
		annotations := annotationsOf(result.Object)
		if size := sizeOf(annotations); size > maxAnnotations || annotations["a"] != annotationsOf(o)["a"] {
			t.Errorf("%+v: annotations of %d bytes", row, size)
		}
		if problem := text(annotations, karpenterv1.ConversionProblemAnnotationKey); !strings.Contains(problem,
			row.problem) || annotations[karpenterv1.UnconvertedAnnotationKey] != nil {
			t.Errorf("%+v: the problem is %q", row, problem)
		}
	}
}

// V-24: a request that makes no sense fails as a whole, with a reason, and within bounds.
func TestARequestWithoutSenseIsRefused(t *testing.T) {
	t.Parallel()
	c := converter(t)
	ask := func(version, objects string) string {
		answer, _, err :=
			c.Review([]byte(
				`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"` +
					version + `","objects":[` + objects + `]}}`))
		if err != nil {
			return err.Error()
		}
		return string(answer)
	}
	for want, got := range map[string]string{
		`NodePool is converted between karpenter.sh/v1 and karpenter.sh/v1beta1`: ask("karpenter.sh/v2", brokenPool),
		`cannot be converted to \"other/v1\"`:                                    ask("other/v1", brokenPool),
		`kind is \"Pod\"`: ask("v1",
			`{"apiVersion":"v1","kind":"Pod"}`),
		`metadata is missing`: ask("karpenter.sh/v1",
			`{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePool"}`),
		`metadata.annotations must hold strings`: ask("karpenter.sh/v1",
			`{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePool","metadata":{"annotations":[]}}`),
		`annotations must hold strings only`: ask("karpenter.sh/v1",
			`{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePool","metadata":{"annotations":{"a":1}}}`),
		`object 0: reading the object`: ask("karpenter.sh/v1", `7`),
		`at most 20000 are converted`: ask("karpenter.sh/v1",
			strings.TrimSuffix(strings.Repeat("1,", maxObjects+1), ",")),
	} {
		if !strings.Contains(got, want) || strings.Contains(got, `"Success"`) {
			t.Errorf("answer %s, want %s", got, want)
		}
	}
	for want, body := range map[string]string{
		"the review has no request": `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`,
		"it must be Conversion":     `{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"ConversionReview","request":{}}`,
		"reading the review":        `[`,
		"at most 67108864 are read": strings.Repeat(" ", MaxReview+1),
	} {
		if _, _, err := c.Review([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// V-24: an annotation of ours that was forged by hand is ignored: the object is not held, keeps its name and kind, and
// becomes the original on the way back. Otherwise one annotation could block the list of all objects.
func TestANoteByHandNeverMakesAnObjectFail(t *testing.T) {
	t.Parallel()
	c := converter(t)
	for _, note := range []string{
		`{"fields":[{"path":"/spec/weight","is":"heavy"}]}`,
		`{"fields":[{"path":"/spec","was":{},"is":7},{"path":"/spec/weight","is":"heavy"}]}`,
		`{"fields":[{"path":"/metadata/name","was":"good","is":"other"}]}`,
		`{"fields":[{"path":"/metadata/uid","was":"7"}]}`,
		`{"fields":[{"path":"/metadata/annotations/x","is":7}]}`,
		`{"fields":[{"path":"/metadata/annotations/no key","is":"x"}]}`,
		`{"fields":[{"path":"/metadata/annotations","was":{"a":"b"},"is":{"a":7}}]}`,
		`{"fields":[{"path":"/metadata","is":7}]}`,
		`{"fields":[{"path":"/kind","was":"NodePool","is":"Pod"}]}`,
		`{"fields":[{"path":"/apiVersion","was":"karpenter.sh/v1","is":"v1"},{"path":"/apiVersion",` +
			`"was":"karpenter.sh/v1beta1","is":"v1"}]}`,
		`7`, `{"fields":7}`, `{"filled":7}`,
	} {
		for from, key := range map[string]string{V1beta1: karpenterv1.V1FieldsAnnotationKey,
			V1: karpenterv1.V1beta1FieldsAnnotationKey} {
			o := decodeText(t, strings.NewReplacer("banana", "1h", "broken", "good").Replace(brokenPool))
			to := V1
			if from == V1 {
				to = V1beta1
				result, err := c.Convert(o, V1)
				if err != nil {
					t.Fatal(err)
				}
				o = result.Object
			}
			annotationsOf(o)[key] = note
			there, err := c.Convert(o, to)
			if err != nil || len(there.Problems) > 0 {
				t.Errorf("%s in %s: error %v, %s", note, from, err, Describe(there.Problems))
				continue
			}
			if text(at(there.Object, "metadata"), "name") != "good" ||
				text(at(there.Object, "metadata"), "uid") != "7" || text(there.Object, "kind") != "NodePool" ||
				text(there.Object, "apiVersion") != "karpenter.sh/"+to {
				t.Errorf("%s in %s makes it %s", note, from, encode(there.Object))
			}
			if back, err := c.Convert(there.Object, from); err != nil || !equal(back.Object, o) {
				t.Errorf("%s in %s: the way back gives %s, error %v, want %s", note, from, encode(back.Object), err,
					encode(o))
			}
		}
	}
}
