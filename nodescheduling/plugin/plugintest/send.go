// Package plugintest sends the requests of scripts (package schedulingtest) to an admission plugin, as a server would.
// It returns what a client and the audit log see of the answer.
package plugintest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

// Server is what a kube-apiserver does around a plugin.
type Server struct {
	// Internal converts an object of the API's types to the one that the plugin gets. If nil, the plugin gets the
	// API's types.
	Internal func(group string, object runtime.Object) (runtime.Object, error)
	// Interfaces converts such an object back.
	Interfaces admission.ObjectInterfaces
}

// Send sends a request: the plugin first changes it, if it can, and then judges it.
func (s Server) Send(ctx context.Context, plugin admission.ValidationInterface,
	asked schedulingtest.Asked) (schedulingtest.Answer, error) {
	inner, err := s.Record(asked)
	if err != nil {
		return schedulingtest.Answer{}, err
	}
	attributes, warnings := &recorded{Attributes: inner}, &heard{}
	if changing, changes := plugin.(admission.MutationInterface); changes {
		if err := changing.Admit(ctx, attributes, s.Interfaces); err != nil {
			return schedulingtest.Answer{}, err
		}
	}
	err = plugin.Validate(warning.WithWarningRecorder(ctx, warnings), attributes, s.Interfaces)
	given := schedulingtest.Answer{Allowed: err == nil, Warnings: warnings.texts, Audit: attributes.audit}
	if err != nil {
		if !apierrors.IsForbidden(err) {
			return given, fmt.Errorf("refused with something else than 403: %w", err)
		}
		_, given.Message, _ = strings.Cut(err.Error(), " is forbidden: ")
	}
	return given, nil
}

// Record returns a request as the plugin gets it.
func (s Server) Record(asked schedulingtest.Asked) (admission.Attributes, error) {
	given, before := asked.Objects()
	object, err := s.internal(asked.Group, given)
	old, oldErr := s.internal(asked.Group, before)
	if err = errors.Join(err, oldErr); err != nil {
		return nil, err
	}
	var options runtime.Object = &metav1.CreateOptions{}
	switch asked.Operation {
	case evaluator.Connect:
		options = nil
	case evaluator.Update:
		options = &metav1.UpdateOptions{}
	}
	return admission.NewAttributesRecord(object, old, asked.Object.GetObjectKind().GroupVersionKind(), asked.Namespace,
		asked.Name,
		schema.GroupVersionResource{Group: asked.Group, Version: "v1", Resource: asked.Resource}, asked.Subresource,
		admission.Operation(asked.Operation), options, asked.DryRun,
		&user.DefaultInfo{Name: asked.User.Name, UID: asked.User.UID, Groups: asked.User.Groups,
			Extra: asked.User.Extra}), nil
}

func (s Server) internal(group string, object runtime.Object) (runtime.Object, error) {
	if object == nil || s.Internal == nil {
		return object, nil
	}
	return s.Internal(group, object)
}

// recorded wraps attributes to keep the audit annotations.
type recorded struct {
	admission.Attributes
	audit map[string]string
}

// AddAnnotation implements admission.Attributes.
func (r *recorded) AddAnnotation(key, value string) error {
	short, found := strings.CutPrefix(key, evaluator.AuditPrefix+"/")
	if !found {
		return fmt.Errorf("audit annotation %q has no prefix", key)
	}
	if r.audit == nil {
		r.audit = map[string]string{}
	}
	r.audit[short] = value
	return r.Attributes.AddAnnotation(key, value) // it refuses keys that are not qualified names
}

type heard struct{ texts []string }

// AddWarning implements warning.Recorder.
func (h *heard) AddWarning(_, text string) { h.texts = append(h.texts, text) }
