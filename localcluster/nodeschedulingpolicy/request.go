package nodeschedulingpolicy

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	// The conversions from internal types to those of the API. A kube-apiserver has them anyway; a test would not.
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"

	"github.com/joiner-autoscaler/joiner/internal/admission/nodescheduling"
)

// toRequest reads a request in the types of the API. An object that cannot be converted is left out and stated: the verdict
// on it is the policy's. It returns false for what the evaluator does not look at.
func toRequest(a admission.Attributes) (nodescheduling.Request, bool) {
	resource := a.GetResource()
	if nodescheduling.NewObject(resource.Group, resource.Resource, a.GetSubresource()) == nil {
		return nodescheduling.Request{}, false
	}
	request := nodescheduling.Request{
		Operation: nodescheduling.Operation(a.GetOperation()),
		Group:     resource.Group, Resource: resource.Resource, Subresource: a.GetSubresource(),
		Namespace: a.GetNamespace(), Name: a.GetName(), DryRun: a.IsDryRun(),
	}
	if user := a.GetUserInfo(); user != nil {
		request.User = nodescheduling.User{Name: user.GetName(), Groups: user.GetGroups()}
	}
	external := func(object runtime.Object) (runtime.Object, error) {
		if object == nil {
			return nil, nil
		}
		into := nodescheduling.NewObject(resource.Group, resource.Resource, a.GetSubresource())
		return into, legacyscheme.Scheme.Convert(object, into, nil)
	}
	object, err := external(a.GetObject())
	old, oldErr := external(a.GetOldObject())
	if err = errors.Join(err, oldErr); err == nil {
		err = request.SetObjects(object, old)
	}
	if err != nil {
		request.Fault = err.Error()
	}
	return request, true
}
