package webhook_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/convert"
	"github.com/joiner-autoscaler/joiner/internal/webhook"
)

const conversionReview = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u1","desiredAPIVersion":"karpenter.sh/v1","objects":[
{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePool","metadata":{"name":"good"},"spec":{"template":{"spec":{"requirements":[],"nodeClassRef":{"name":"default"}}}}},
{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePool","metadata":{"name":"bad"},"spec":{"weight":"heavy","template":{"spec":{"requirements":[],"nodeClassRef":{"name":"default"}}}}}]}}`

// V-20, V-24: a review goes in and comes out; what cannot be converted is told apart.
func TestTheDoorOfConversion(t *testing.T) {
	t.Parallel()
	converter, err := convert.New(convert.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var held []convert.Held
	told := 0
	door, err := webhook.NewConversion(webhook.ConversionConfig{Converter: converter, Observe: func(h []convert.Held) {
		held = append(held, h...)
		told++
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		method, kind, body, want string
		status                   int
	}{
		"a review": {http.MethodPost, "application/json", conversionReview, `"result":{"status":"Success"}`,
			200},
		"another method": {http.MethodGet, "application/json", "", "it must be POST", 405},
		"another type":   {http.MethodPost, "text/plain", conversionReview, "must be application/json", 415},
		"no review": {http.MethodPost, "application/json", `{"kind":"List"}`, "it must be ConversionReview",
			400},
		"another kind": {http.MethodPost, "application/json", strings.ReplaceAll(conversionReview, "NodePool",
			"Pod"), `"status":"Failure","message":"object 0, \"good\": kind is \"Pod\"`, 200},
		"too large a body": {http.MethodPost, "application/json", strings.Repeat(" ", convert.MaxReview+1),
			"has more than", 413},
	} {
		request := httptest.NewRequestWithContext(t.Context(), row.method, webhook.ConversionPath,
			strings.NewReader(row.body))
		request.Header.Set("Content-Type", row.kind)
		recorder := httptest.NewRecorder()
		door.ServeHTTP(recorder, request)
		said, answered := recorder.Body.String(), row.status == http.StatusOK
		if recorder.Code != row.status || !strings.Contains(said, row.want) {
			t.Errorf("%s: status %d, %s; want %d and %s", name, recorder.Code, said, row.status, row.want)
		}
		// What is refused is told in one line of text.
		if kind := recorder.Header().Get("Content-Type"); answered != (kind == "application/json") || !answered &&
			strings.Index(said, "\n") != len(said)-1 {
			t.Errorf("%s: %s %q", name, kind, said)
		}
	}
	silent, err := webhook.NewConversion(webhook.ConversionConfig{Converter: converter})
	if err != nil {
		t.Fatal(err)
	}
	if recorder := post(silent, []byte(conversionReview)); recorder.Code != http.StatusOK {
		t.Errorf("where nobody is told: status %d", recorder.Code)
	}
	if told != 1 {
		t.Errorf("told %d times, want of the review that has one which cannot be converted", told)
	}
	if len(held) != 1 ||
		held[0].String() != `NodePool bad: spec.weight is "heavy": it must be a whole number of at most 32 bits` {
		t.Errorf("held %v", held)
	}
	if _, err := webhook.NewConversion(webhook.ConversionConfig{}); err == nil {
		t.Error("a door without a converter")
	}
}
