package webhook_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

// FuzzReview: whatever the API server sends, nothing panics, the answer fits the review, and a denial says why. In
// mode Inform, only misuse of the override is denied. The seeds are the requests of the scripts.
func FuzzReview(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	enforced := handler(
		world(f, "override Enable\nauthorization ListsAndRBAC\nscheduler cluster users=group:admins,ops/default"))
	informed := handler(world(f, "override Enable\nscheduler cluster mode=Inform"))
	f.Fuzz(func(t *testing.T, body []byte) {
		recorder := post(enforced, body)
		if recorder.Code != http.StatusOK {
			if recorder.Code < 400 || recorder.Code > 499 || strings.TrimSpace(recorder.Body.String()) == "" {
				t.Fatalf("status %d, %q", recorder.Code, recorder.Body)
			}
			return
		}
		var asked, answer admissionv1.AdmissionReview
		if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		r := answer.Response
		if r == nil || r.UID == "" || r.Allowed == (r.Result != nil) {
			t.Fatalf("answer %s", recorder.Body)
		}
		if !r.Allowed && (!strings.HasPrefix(r.Result.Message, "NodeSchedulingPolicy [ControlPlane/") ||
			len(r.AuditAnnotations) < 5) {
			t.Fatalf("denied without a word: %s", recorder.Body)
		}
		if json.Unmarshal(body, &asked) == nil && asked.Request != nil && asked.Request.UID != "" &&
			asked.Request.UID != r.UID {
			t.Fatalf("the answer to %q is for %q", asked.Request.UID, r.UID)
		}
		recorder = post(informed, body)
		var told admissionv1.AdmissionReview
		err := json.Unmarshal(recorder.Body.Bytes(), &told)
		if err != nil || !told.Response.Allowed && !strings.Contains(told.Response.Result.Message, "/Override") {
			t.Fatalf("Inform denies: %s", recorder.Body)
		}
	})
}

// seeds are the reviews of every request in the scripts.
func seeds(f *testing.F) [][]byte {
	f.Helper()
	paths, err := filepath.Glob("../../nodescheduling/test/testdata/scripts/*.txt")
	if err != nil || len(paths) == 0 {
		f.Fatalf("no scripts: %v", err)
	}
	var all [][]byte
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			asked, err := schedulingtest.ParseRequest(strings.TrimSpace(line))
			if err != nil {
				continue // not a request
			}
			body, err := json.Marshal(review(asked))
			if err != nil {
				f.Fatal(err)
			}
			all = append(all, body)
		}
	}
	if len(all) < 100 {
		f.Fatalf("only %d requests in the scripts", len(all))
	}
	return all
}
