package convert

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// plain returns an object without the annotations of conversion: our notes that do not fit their object are removed.
func plain(o object) object {
	copied := cloneObject(o)
	annotations := annotationsOf(copied)
	delete(annotations, karpenterv1.V1beta1FieldsAnnotationKey)
	delete(annotations, karpenterv1.V1FieldsAnnotationKey)
	delete(annotations, karpenterv1.UnconvertedAnnotationKey)
	delete(annotations, karpenterv1.ConversionProblemAnnotationKey)
	setAnnotations(copied, annotations)
	return copied
}

// FuzzRoundTrip: for any JSON in an object and any annotations, nothing panics. The result is the same object in the
// requested version and can be decoded in it; converted back it is the original. No annotation makes an object
// unconvertible (V-21, V-24).
func FuzzRoundTrip(f *testing.F) {
	for _, spec := range []string{
		"{}", "[]", "null", `{"template":{"spec":{}}}`,
		`{"disruption":null,"template":{"spec":{"nodeClassRef":{"name":"x"},"kubelet":{"maxPods":3}}}}`,
		`{"disruption":{"consolidationPolicy":"WhenEmptyOrUnderutilized","consolidateAfter":"30s",` +
			`"budgets":[{"nodes":1},{"nodes":"10%","reasons":["Empty"]}]},"template":{"spec":{"expireAfter":"1h"}}}`,
		`{"nodeClassRef":{"group":"a","kind":"b","name":"c"},"expireAfter":"5h","resources":{"requests":{"cpu":"1e9"}}}`,
		`{"amiFamily":"Ubuntu","metadataOptions":{}}`, `{"amiFamily":"Plan9"}`,
		`{"amiSelectorTerms":[{"alias":"al2@latest"},{"ssmParameter":"x"}],"kubelet":{"a":1}}`,
	} {
		f.Add([]byte(spec), []byte("{}"), "", "")
	}
	f.Add([]byte(`{"template":{"spec":{}}}`), []byte(`{"conditions":[{"type":"Ready"}]}`),
		karpenterv1.V1FieldsAnnotationKey, `{"fields":[{"path":"/spec/template","is":1}],"filled":"x"}`)
	f.Add([]byte(`{}`), []byte(`7`), karpenterv1.UnconvertedAnnotationKey,
		`{"apiVersion":"karpenter.sh/v1beta1","spec":7,"annotations":{"a":"b"}}`)
	f.Add([]byte(`{}`), []byte(`{}`), karpenterv1.V1beta1FieldsAnnotationKey,
		`{"fields":[{"path":"/spec/0/x","was":[],"is":{}}],"filled":"720h"}`)
	f.Add([]byte(`{"template":{"spec":{}}}`), []byte(`{}`), karpenterv1.KubeletCompatibilityAnnotationKey,
		`{"maxPods":10}`)
	f.Add([]byte(`{"template":{"spec":{}}}`), []byte(`{}`), karpenterv1.V1FieldsAnnotationKey,
		`{"fields":[{"path":"/metadata/name","was":"x","is":"y"},{"path":"/spec/weight","is":"z"}]}`)
	c := converter(f)
	f.Fuzz(func(t *testing.T, spec, status []byte, key, value string) {
		if !json.Valid(spec) || !json.Valid(status) {
			return
		}
		metadata := object{"name": "x", "annotations": object{key: value}}
		for name, k := range c.kinds {
			for from, to := range map[string]string{V1: V1beta1, V1beta1: V1} {
				o := decodeText(t, `{"spec":`+string(spec)+`,"status":`+string(status)+`}`)
				o["apiVersion"], o["kind"], o["metadata"] = k.group+"/"+from, name, clone(metadata)
				o = decodeText(t, encode(o)) // strings as JSON can hold them
				roundTrip(t, c, k, o, from, to)
			}
		}
	})
}

func roundTrip(t *testing.T, c *Converter, k *kind, o object, from, to string) {
	t.Helper()
	there, err := c.Convert(o, to)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.decode[to]([]byte(encode(there.Object))); err != nil {
		if unheld := text(annotationsOf(o), karpenterv1.UnconvertedAnnotationKey); unheld != "" &&
			len(there.Problems) == 0 {
			return // it stood for this one
		}
		t.Fatalf("%s\nbecomes %s\nwhich cannot be read: %v", encode(o), encode(there.Object), err)
	}
	if !equal(identity(there.Object), identity(o)) || text(there.Object, "apiVersion") != k.group+"/"+to {
		t.Fatalf("%s\nbecomes another object: %s", encode(o), encode(there.Object))
	}
	for key := range annotationsOf(there.Object) {
		if _, had := annotationsOf(o)[key]; !had && !slices.Contains(ours(), key) {
			t.Fatalf("%s\ngets the annotation %q", encode(o), key)
		}
	}
	if len(there.Problems) > 0 {
		bare := cloneObject(o)
		setAnnotations(bare, nil)
		if result, err := c.Convert(bare, to); err != nil || len(result.Problems) == 0 {
			t.Fatalf("%s\ncannot be converted for its annotations: %s", encode(o), Describe(there.Problems))
		}
	}
	back, err := c.Convert(there.Object, from)
	if err != nil {
		t.Fatal(err)
	}
	if !equal(plain(back.Object), plain(o)) {
		t.Fatalf("\n    got %s\n   want %s\nbetween %s", encode(back.Object), encode(o), encode(there.Object))
	}
}

// identity returns what an API server requires to be unchanged: everything except the object's content, labels and
// annotations.
func identity(o object) object {
	group, _, _ := strings.Cut(text(o, "apiVersion"), "/")
	metadata := cloneObject(at(o, "metadata"))
	delete(metadata, "labels")
	delete(metadata, "annotations")
	return object{"group": group, "kind": o["kind"], "metadata": metadata}
}

// FuzzReview: no request panics, and an answer has as many objects as the request, or a reason (V-24).
func FuzzReview(f *testing.F) {
	f.Add([]byte(
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u",` +
			`"desiredAPIVersion":"karpenter.sh/v1","objects":[` +
			brokenPool + `]}}`))
	f.Add([]byte(
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview",` +
			`"request":{"objects":[{"apiVersion":"karpenter.sh/v1","kind":"NodeClaim","metadata":null}]}}`))
	f.Add([]byte(`[]`))
	c := converter(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		answer, held, err := c.Review(data)
		if err != nil {
			return
		}
		var asked, got review
		if json.Unmarshal(data, &asked) != nil || json.Unmarshal(answer, &got) != nil {
			t.Fatalf("%s\nis answered with %s", data, answer)
		}
		switch {
		case got.Response.UID != asked.Request.UID:
			t.Fatalf("uid %q, asked with %q", got.Response.UID, asked.Request.UID)
		case got.Response.Result.Status == "Success" &&
			len(got.Response.ConvertedObjects) != len(asked.Request.Objects):
			t.Fatalf("%d objects for %d", len(got.Response.ConvertedObjects), len(asked.Request.Objects))
		case got.Response.Result.Status != "Success" && (got.Response.Result.Message == "" || len(held) > 0):
			t.Fatalf("a failure without a reason: %s", answer)
		}
	})
}
