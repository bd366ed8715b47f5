package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/cockroachdb/datadriven"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/joiner-autoscaler/joiner/internal/webhook"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

// TestScripts runs the scripts of the evaluator through this door: the words must be the same (the preamble of
// docs/spec/node-scheduling-policy.md).
func TestScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "../../nodescheduling/test/testdata/scripts", func(t *testing.T, path string) {
		world, function := schedulingtest.NewWorld(), schedulingtest.NewWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			want, err := function.Run(d.Cmd, d.HasArg("text"), d.Input, schedulingtest.Function)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			got, err := world.Run(d.Cmd, d.HasArg("text"), d.Input, door)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			if got != want {
				t.Errorf("%s: the webhook says\n%s\nand the evaluator\n%s", d.Pos, got, want)
			}
			return want
		})
	})
}

// door asks the webhook, as an API server does after its mutating policies have written; what these are is
// tested in localcluster/doors.
func door(w *schedulingtest.World, asked schedulingtest.Asked) (schedulingtest.Answer, error) {
	asked, err := w.Admit(asked)
	if err != nil {
		return schedulingtest.Answer{}, err
	}
	body, err := json.Marshal(review(asked))
	if err != nil {
		return schedulingtest.Answer{}, err
	}
	recorder := post(handler(w), body)
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil || recorder.Code != http.StatusOK {
		return schedulingtest.Answer{}, fmt.Errorf("status %d, %q: %w", recorder.Code, recorder.Body, err)
	}
	response := answer.Response
	if response.UID != "42" || answer.Kind != "AdmissionReview" || answer.APIVersion != "admission.k8s.io/v1" {
		return schedulingtest.Answer{}, fmt.Errorf("the answer does not fit the review: %s", recorder.Body)
	}
	given := schedulingtest.Answer{Allowed: response.Allowed, Warnings: response.Warnings,
		Audit: response.AuditAnnotations}
	if !response.Allowed {
		if response.Result.Code != http.StatusForbidden || response.Result.Reason != metav1.StatusReasonForbidden {
			return given, fmt.Errorf("denied with %d %s", response.Result.Code, response.Result.Reason)
		}
		given.Message = response.Result.Message
	}
	return given, nil
}

func review(asked schedulingtest.Asked) admissionv1.AdmissionReview {
	object, old := asked.Objects()
	request := &admissionv1.AdmissionRequest{
		UID: "42", Operation: admissionv1.Operation(asked.Operation),
		Resource:    metav1.GroupVersionResource{Group: asked.Group, Version: "v1", Resource: asked.Resource},
		SubResource: asked.Subresource, Namespace: asked.Namespace, Name: asked.Name, DryRun: &asked.DryRun,
		UserInfo: userInfo(asked.User), Object: runtime.RawExtension{Object: object},
	}
	if old != nil {
		request.OldObject = runtime.RawExtension{Object: old}
	}
	return admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	}
}

func userInfo(user evaluator.User) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: user.Name, UID: user.UID, Groups: user.Groups,
		Extra: map[string]authenticationv1.ExtraValue{}}
	for key, values := range user.Extra {
		info.Extra[key] = values
	}
	return info
}

func handler(w *schedulingtest.World) http.Handler {
	policy, _, err := evaluator.New(w.Sources)
	if err != nil {
		panic(err) // the script printed it
	}
	h, err := webhook.NewNodeScheduling(webhook.NodeSchedulingConfig{
		Judge:   policy.Evaluate,
		Cluster: func(context.Context) evaluator.Cluster { return w.Cluster() },
	})
	if err != nil {
		panic(err)
	}
	return h
}

func post(h http.Handler, body []byte) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request)
	return recorder
}

// world is a small cluster with a policy in force.
func world(t testing.TB, more string) *schedulingtest.World {
	t.Helper()
	w := schedulingtest.NewWorld()
	if _, err := w.Run("cluster", false, `
		group ControlPlane select=cp mode=Enable users=system:kube-scheduler
		node cp1 labels=cp taints=master:NoSchedule
		node w1
		`+more, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

// A body that is no review is refused with a sentence, without asking the policy.
func TestWhatIsNoReviewIsRefused(t *testing.T) {
	t.Parallel()
	h := handler(world(t, ""))
	for _, c := range []struct {
		name, method, kind, body string
		status                   int
		says                     string
	}{
		{"method", http.MethodGet, "application/json", "", http.StatusMethodNotAllowed,
			`method is "GET": it must be POST`},
		{"type", http.MethodPost, "text/plain", "{}", http.StatusUnsupportedMediaType, `Content-Type is "text/plain"`},
		{"no type", http.MethodPost, "", "{}", http.StatusUnsupportedMediaType, `Content-Type is ""`},
		{"type with nonsense behind it", http.MethodPost, "application/json; charset", "{}",
			http.StatusUnsupportedMediaType, `Content-Type is "application/json; charset"`},
		{"no JSON", http.MethodPost, "application/json", "{", http.StatusBadRequest, "reading the review"},
		{"other kind", http.MethodPost, "application/json", `{"kind": "Pod", "apiVersion": "v1"}`,
			http.StatusBadRequest, "must be AdmissionReview of admission.k8s.io/v1"},
		{"other version", http.MethodPost, "application/json",
			`{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1",
			"request": {"uid": "42"}}`, http.StatusBadRequest,
			`the review is "AdmissionReview" of "admission.k8s.io/v1beta1"`},
		{"other kind of that version", http.MethodPost, "application/json",
			`{"kind": "Review", "apiVersion": "admission.k8s.io/v1",
			"request": {"uid": "42"}}`, http.StatusBadRequest, `the review is "Review" of "admission.k8s.io/v1"`},
		{"no request", http.MethodPost, "application/json",
			`{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}`, http.StatusBadRequest,
			"has no request"},
		{"no uid", http.MethodPost, "application/json",
			`{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {}}`, http.StatusBadRequest,
			"request.uid is missing"},
		{"too large", http.MethodPost, "application/json", strings.Repeat(" ", webhook.MaxReviewBytes+1),
			http.StatusRequestEntityTooLarge, "more than 8388608 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			request := httptest.NewRequest(c.method, "/", strings.NewReader(c.body))
			request.Header.Set("Content-Type", c.kind)
			recorder := httptest.NewRecorder()
			h.ServeHTTP(recorder, request)
			if recorder.Code != c.status || !strings.Contains(recorder.Body.String(), c.says) {
				t.Errorf("status %d, %q; want %d, %q", recorder.Code, recorder.Body, c.status, c.says)
			}
			allowed := recorder.Header().Get("Allow")
			if (allowed == "POST") != (c.status == http.StatusMethodNotAllowed) {
				t.Errorf("Allow is %q", allowed)
			}
		})
	}
}

// A review that ends too early, since the client went away, is no empty review.
func TestAReviewThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	request := httptest.NewRequest(http.MethodPost, "/", iotest.ErrReader(errors.New("cut off")))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	handler(world(t, "")).ServeHTTP(recorder, request)
	if want := "reading the review: cut off\n"; recorder.Code != http.StatusBadRequest ||
		recorder.Body.String() != want {
		t.Errorf("status %d, %q; want %q", recorder.Code, recorder.Body, want)
	}
}

// An object that cannot be read is denied with the reason where the policy is enforced, and passes with a warning
// where it is not: Inform denies nothing (N40).
func TestAnObjectThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const body = `{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {"uid": "42", "operation": "CREATE",
		"resource": {"version": "v1", "resource": "pods"}, "object": {"spec": {"nodeName": 3}}}}`
	for more, allowed := range map[string]bool{"": false, "scheduler cluster mode=Inform": true} {
		absent := post(handler(world(t, more)), []byte(strings.Replace(body, `{"spec": {"nodeName": 3}}`, "null", 1)))
		if said := absent.Body.String(); !strings.Contains(said, "has no object to judge. ") || strings.Contains(said,
			`"status":"Failure"`) == allowed {
			t.Errorf("%q: without an object: %s", more, said)
		}
		recorder := post(handler(world(t, more)), []byte(body))
		var answer admissionv1.AdmissionReview
		if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		said := fmt.Sprint(answer.Response.Result, answer.Response.Warnings)
		if answer.Response.Allowed != allowed || !strings.Contains(said, "nodeName") ||
			!strings.Contains(said, "/Malformed]") {
			t.Errorf("%q: allowed %t, said %s", more, answer.Response.Allowed, said)
		}
	}
}

// seen is what a door tells those who watch it.
type seen struct {
	left     time.Duration // that the ports have
	requests []evaluator.Request
	verdicts []evaluator.Verdict
	took     []time.Duration
}

// watched posts a review to a door in a world, and returns what it tells.
func watched(t *testing.T, w *schedulingtest.World, timeout time.Duration,
	body []byte) (seen, *httptest.ResponseRecorder) {
	t.Helper()
	policy, _, err := evaluator.New(w.Sources)
	if err != nil {
		t.Fatal(err)
	}
	var s seen
	h, err := webhook.NewNodeScheduling(webhook.NodeSchedulingConfig{
		Judge: policy.Evaluate,
		Cluster: func(ctx context.Context) evaluator.Cluster {
			deadline, _ := ctx.Deadline()
			s.left = time.Until(deadline)
			return w.Cluster()
		},
		Observe: func(r evaluator.Request, v evaluator.Verdict) {
			s.requests, s.verdicts = append(s.requests, r), append(s.verdicts, v)
		},
		Took:    func(_ evaluator.Request, took time.Duration) { s.took = append(s.took, took) },
		Timeout: timeout,
	})
	if err != nil {
		t.Fatal(err)
	}
	recorder := post(h, body)
	return s, recorder
}

// The ports get a deadline, and who watches is told.
func TestDeadlineAndObserver(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]time.Duration{0: webhook.DefaultTimeout, time.Hour: time.Hour} {
		for line, dry := range map[string]bool{"alice bind app/web to=cp1": false,
			"alice bind app/web to=cp1 dry-run": true} {
			asked, err := schedulingtest.ParseRequest(line)
			if err != nil {
				t.Fatal(err)
			}
			body, err := json.Marshal(review(asked))
			if err != nil {
				t.Fatal(err)
			}
			s, recorder := watched(t, world(t, ""), timeout, body)
			if s.left <= want*3/4 || s.left > want || len(s.verdicts) != 1 || s.verdicts[0].Allowed ||
				s.requests[0].DryRun != dry || len(s.took) != 1 || s.took[0] <= 0 {
				t.Errorf("timeout %s, %s: %+v", timeout, line, s)
			}
			if kind := recorder.Header().Get("Content-Type"); kind != "application/json" ||
				!strings.Contains(recorder.Body.String(),
					`"status":"Failure"`) {
				t.Errorf("%s %s", kind, recorder.Body)
			}
		}
	}
	judge, cluster := (*evaluator.Policy)(nil).Evaluate, func(context.Context) evaluator.Cluster {
		return evaluator.Cluster{}
	}
	for want, config := range map[string]webhook.NodeSchedulingConfig{
		"Judge is missing":                         {Cluster: cluster},
		"Cluster is missing":                       {Judge: judge},
		"Timeout is -1ns: it must not be negative": {Judge: judge, Cluster: cluster, Timeout: -1},
		"node scheduling webhook: Timeout is -2s: it must": {Judge: judge, Cluster: cluster,
			Timeout: -2 * time.Second},
	} {
		if _, err := webhook.NewNodeScheduling(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// What the evaluator does not look at is judged without its object, as what it is.
func TestWhatIsNotLookedAtIsNotRead(t *testing.T) {
	t.Parallel()
	const body = `{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {"uid": "42", "operation": "CREATE",
		"resource": {"version": "v1", "resource": "configmaps"}, "namespace": "app", "object": {"data": {"a": "b"}}}}`
	s, _ := watched(t, world(t, ""), 0, []byte(body))
	if len(s.requests) != 1 || s.requests[0].Resource != "configmaps" || s.requests[0].Namespace != "app" ||
		s.requests[0].Fault != "" || !s.verdicts[0].Allowed {
		t.Errorf("%+v", s)
	}
}

// refusing refuses the mode Enable.
type refusing struct{}

// Concern implements webhook.GroupWrites.
func (refusing) Concern(group, resource, _ string) bool {
	return group == "scheduling.joiner.sh" && resource == "nodeschedulinggroups"
}

// Refusal implements webhook.GroupWrites.
func (refusing) Refusal(_ context.Context, object, old map[string]any) string {
	if object["mode"] == "Inform" {
		return ""
	}
	return fmt.Sprintf("object %v, old %v", object["mode"], old["mode"])
}

// A-18, N70: a write of a NodeSchedulingGroup is answered by who judges those, and counts as no verdict.
func TestA18_WritesOfGroupsAreAnswered(t *testing.T) {
	t.Parallel()
	counted := 0
	h, err := webhook.NewNodeScheduling(webhook.NodeSchedulingConfig{Group: refusing{},
		Judge: func(*evaluator.Request, evaluator.Cluster) evaluator.Verdict {
			return evaluator.Verdict{Allowed: true}
		},
		Cluster: func(context.Context) evaluator.Cluster { return evaluator.Cluster{} },
		Observe: func(evaluator.Request, evaluator.Verdict) { counted++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {"uid": "42", "operation": "UPDATE",
		"resource": {"group": "%s", "version": "v1alpha1", "resource": "nodeschedulinggroups"}, "object": %s, "oldObject": {"mode": "Inform"}}}`
	const enable = `{"mode": "Enable"}`
	for _, c := range []struct{ group, object, refusal string }{
		{"scheduling.joiner.sh", enable, "object Enable, old Inform"},
		{"scheduling.joiner.sh", `{"mode": "Inform"}`, ""},
		// too large a number: not read
		{"scheduling.joiner.sh", `{"mode": "Enable", "n": 1e999}`, "object <nil>, old Inform"},
		{"scheduling.openshift.io", enable, ""},
	} {
		var answer admissionv1.AdmissionReview
		if err := json.Unmarshal(post(h, fmt.Appendf(nil, body, c.group, c.object)).Body.Bytes(),
			&answer); err != nil {
			t.Fatal(err)
		}
		if r := answer.Response; r.Allowed != (c.refusal == "") || !r.Allowed && r.Result.Message != c.refusal {
			t.Errorf("group %s, %s: %+v", c.group, c.object, r)
		}
	}
	if counted != 1 {
		t.Errorf("%d verdicts were counted, want that of the other group", counted)
	}
}
