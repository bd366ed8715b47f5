package convert

import (
	"strings"
	"testing"
)

// V-24: an invalid request is refused in the form of the API server's protocol, with no objects and nothing held, even
// if some of its objects could be converted.
func TestAFailureIsAnAnswer(t *testing.T) {
	t.Parallel()
	all := converter(t)
	answer, held,
		err := all.Review([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":
		{"uid":"u1","desiredAPIVersion":"karpenter.sh/v1","objects":[` + brokenPool + `,7]}}`))
	want :=
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"u1","convertedObjects":[],` +
			`"result":{"status":"Failure","message":"object 1: reading the object: json: cannot unmarshal number ` +
			`into Go value of type map[string]interface {}"}}}`
	if err != nil || len(held) > 0 || string(answer) != want {
		t.Errorf("%s, held %v, error %v, want %s", answer, held, err, want)
	}
}

// V-24: the exact bounds of a review in bytes and objects, and how much of an invalid one is shown.
func TestHowLargeAReviewMayBe(t *testing.T) {
	t.Parallel()
	c := converter(t)
	if _, _, err := c.Review([]byte(strings.Repeat(" ", MaxReview))); err == nil ||
		!strings.HasPrefix(err.Error(), "reading the review: ") {
		t.Errorf("%d bytes: error %v", MaxReview, err)
	}
	answer, _, err :=
		c.Review([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"objects":[` +
			strings.TrimSuffix(strings.Repeat("1,", maxObjects), ",") + `]}}`))
	if err != nil || !strings.Contains(string(answer), "object 0: reading the object") {
		t.Errorf("%d objects: %s, error %v", maxObjects, answer, err)
	}
	kind, version := strings.Repeat("k", 64), strings.Repeat("v", 64)
	for body, want := range map[string]string{
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"Other","request":{}}`: "the review is Other of " +
			"apiextensions.k8s.io/v1: it must be ConversionReview of apiextensions.k8s.io/v1",
		`{"apiVersion":"` + version + `","kind":"` + kind + `","request":{}}`: "the review is " + kind[:63] +
			"... of " + version[:63] +
			"...: it must be ConversionReview of apiextensions.k8s.io/v1",
	} {
		if _, _, err := c.Review([]byte(body)); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", body, err, want)
		}
	}
}

// V-20: an object of another group or of an unknown version is not treated as one of ours.
func TestOtherVersionsAreNotConverted(t *testing.T) {
	t.Parallel()
	all := converter(t)
	for _, version := range []string{"example.com/v1beta1", "karpenter.sh/v9", "v1beta1", ""} {
		o := decodeText(t, brokenPool)
		o["apiVersion"] = version
		if _, err := all.Convert(o, V1); err == nil || !strings.Contains(err.Error(),
			"NodePool is converted between karpenter.sh/v1 and karpenter.sh/v1beta1") {
			t.Errorf("%s: error %v", version, err)
		}
	}
}
