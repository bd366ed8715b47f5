package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

const (
	// MaxReviewBytes is the largest review that is read. An API server stores objects of at most 1.5 MiB and accepts
	// requests of 3 MiB. An update carries two objects.
	MaxReviewBytes = 8 << 20
	// DefaultTimeout is how long a verdict may take. It is shorter than the API server waits
	// (docs/control-plane-protection.md). So a user reads the reason, not that a webhook did not answer.
	DefaultTimeout = 2 * time.Second
)

// NodeSchedulingConfig is the configuration of a [NodeScheduling].
type NodeSchedulingConfig struct {
	// Judge returns the verdict on a request, by the policy in force.
	Judge func(*evaluator.Request, evaluator.Cluster) evaluator.Verdict
	// Cluster returns the ports for one request; they keep the deadline of the context.
	Cluster func(context.Context) evaluator.Cluster
	// Group judges writes of NodeSchedulingGroups. Nil lets them pass.
	Group GroupWrites
	// Observe is called with every verdict, for metrics and events. It may be nil. It must not wait.
	Observe func(evaluator.Request, evaluator.Verdict)
	// Took is called with the duration of each verdict, from the first byte of the review. It may be nil.
	Took func(evaluator.Request, time.Duration)
	// Timeout bounds a verdict; 0 is DefaultTimeout.
	Timeout time.Duration
}

// GroupWrites judges writes of NodeSchedulingGroups. Refusal returns the text for the user, "" to let the write pass.
type GroupWrites interface {
	Concern(group, resource, subresource string) bool
	Refusal(ctx context.Context, object, old map[string]any) string
}

// NodeScheduling is an http.Handler for AdmissionReviews of version v1. Its verdicts are those of every other door.
type NodeScheduling struct {
	config NodeSchedulingConfig
}

// NewNodeScheduling returns the door, or an error that names what is missing or wrong in its configuration.
func NewNodeScheduling(config NodeSchedulingConfig) (*NodeScheduling, error) {
	switch {
	case config.Judge == nil:
		return nil, errors.New("node scheduling webhook: Judge is missing")
	case config.Cluster == nil:
		return nil, errors.New("node scheduling webhook: Cluster is missing")
	case config.Timeout < 0:
		return nil, fmt.Errorf("node scheduling webhook: Timeout is %s: it must not be negative", config.Timeout)
	case config.Timeout == 0:
		config.Timeout = DefaultTimeout
	}
	return &NodeScheduling{config: config}, nil
}

// ServeHTTP answers a review with status 200, whatever the verdict. It answers anything else with a status of 400 to
// 499 and one line of text.
func (h *NodeScheduling) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	review, status, err := readReview(w, r)
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.config.Timeout)
	defer cancel()
	if refusal, concerns := h.refuseGroup(ctx, review.Request); concerns {
		h.answer(w, review, evaluator.Verdict{Allowed: refusal == "", Message: refusal})
		return
	}
	request := toRequest(review.Request)
	verdict := h.config.Judge(&request, h.config.Cluster(ctx))
	if h.config.Observe != nil {
		h.config.Observe(request, verdict)
	}
	if h.config.Took != nil {
		h.config.Took(request, time.Since(began))
	}
	h.answer(w, review, verdict)
}

// answer writes a verdict.
func (h *NodeScheduling) answer(w http.ResponseWriter, review *admissionv1.AdmissionReview,
	verdict evaluator.Verdict) {
	answer, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: review.TypeMeta,
		Response: toResponse(review.Request, verdict)})
	if err != nil {
		http.Error(w, fmt.Sprintf("writing the review: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // a client that is gone is not our concern
}

// refuseGroup judges a write of a NodeSchedulingGroup (N70); concerns says whether the review is about one. An object
// that cannot be read counts as one without a mode: the API server has checked it against its CRD.
func (h *NodeScheduling) refuseGroup(ctx context.Context, request *admissionv1.AdmissionRequest) (refusal string,
	concerns bool) {
	resource := request.Resource
	if h.config.Group == nil || !h.config.Group.Concern(resource.Group, resource.Resource, request.SubResource) {
		return "", false
	}
	content := func(raw runtime.RawExtension) (object map[string]any) {
		if err := utiljson.Unmarshal(raw.Raw, &object); err != nil {
			return nil
		}
		return object
	}
	return h.config.Group.Refusal(ctx, content(request.Object), content(request.OldObject)), true
}

// readReview reads a review, at most MaxReviewBytes. With an error it returns the HTTP status to answer.
func readReview(w http.ResponseWriter, r *http.Request) (*admissionv1.AdmissionReview, int, error) {
	body, status, err := readBody(w, r, MaxReviewBytes)
	if err != nil {
		return nil, status, err
	}
	review, err := decodeReview(body)
	if err != nil {
		return nil, http.StatusBadRequest, err
	}
	return review, http.StatusOK, nil
}

func decodeReview(body []byte) (*admissionv1.AdmissionReview, error) {
	review := &admissionv1.AdmissionReview{}
	if err := utiljson.Unmarshal(body, review); err != nil {
		return nil, fmt.Errorf("reading the review: %w", err)
	}
	switch want := admissionv1.SchemeGroupVersion.String(); {
	case review.APIVersion != want || review.Kind != "AdmissionReview":
		return nil, fmt.Errorf("the review is %q of %q: it must be AdmissionReview of %s", review.Kind,
			review.APIVersion, want)
	case review.Request == nil:
		return nil, errors.New("the review has no request")
	case review.Request.UID == "":
		return nil, errors.New("request.uid is missing")
	}
	return review, nil
}

// toRequest converts a request of the API server. An object that cannot be read is left out, and Fault says why: the
// policy decides about it.
func toRequest(from *admissionv1.AdmissionRequest) evaluator.Request {
	request := evaluator.Request{
		Operation: evaluator.Operation(from.Operation),
		Group:     from.Resource.Group, Resource: from.Resource.Resource, Subresource: from.SubResource,
		Namespace: from.Namespace, Name: from.Name,
		User: toUser(&from.UserInfo), DryRun: from.DryRun != nil && *from.DryRun,
	}
	if evaluator.NewObject(request.Group, request.Resource, request.Subresource) == nil {
		return request
	}
	read := func(raw runtime.RawExtension) (runtime.Object, error) {
		object := evaluator.NewObject(request.Group, request.Resource, request.Subresource)
		if len(raw.Raw) == 0 { // also if the review has null
			return nil, nil
		}
		return object, utiljson.Unmarshal(raw.Raw, object)
	}
	object, err := read(from.Object)
	old, oldErr := read(from.OldObject)
	if err = errors.Join(err, oldErr); err == nil {
		err = request.SetObjects(object, old)
	}
	if err != nil {
		request.Fault = err.Error()
	}
	return request
}

func toUser(from *authenticationv1.UserInfo) evaluator.User {
	user := evaluator.User{Name: from.Username, UID: from.UID, Groups: from.Groups}
	if len(from.Extra) > 0 {
		user.Extra = make(map[string][]string, len(from.Extra))
		for key, values := range from.Extra {
			user.Extra[key] = values
		}
	}
	return user
}

func toResponse(request *admissionv1.AdmissionRequest, verdict evaluator.Verdict) *admissionv1.AdmissionResponse {
	response := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: verdict.Allowed, Warnings: verdict.Warnings,
		AuditAnnotations: verdict.Audit()}
	if !verdict.Allowed {
		response.Result = &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden,
			Reason: metav1.StatusReasonForbidden, Message: verdict.Message}
	}
	return response
}
