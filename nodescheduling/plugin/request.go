package plugin

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// toRequest converts a request to the types of the API. The server provides the conversion from its internal types, so
// this module needs none of them. An object that cannot be converted is left out, and Fault says why: the policy
// decides about it. toRequest returns false for resources that the evaluator does not judge.
func toRequest(a admission.Attributes, server admission.ObjectInterfaces) (evaluator.Request, bool) {
	resource := a.GetResource()
	if evaluator.NewObject(resource.Group, resource.Resource, a.GetSubresource()) == nil {
		return evaluator.Request{}, false
	}
	request := evaluator.Request{
		Operation: evaluator.Operation(a.GetOperation()),
		Group:     resource.Group, Resource: resource.Resource, Subresource: a.GetSubresource(),
		Namespace: a.GetNamespace(), Name: a.GetName(), DryRun: a.IsDryRun(),
	}
	if user := a.GetUserInfo(); user != nil {
		request.User = evaluator.User{Name: user.GetName(), UID: user.GetUID(), Groups: user.GetGroups(),
			Extra: user.GetExtra()}
	}
	external := func(object runtime.Object) (runtime.Object, error) {
		switch {
		case object == nil:
			return nil, nil
		case server == nil:
			return nil, errors.New("the server brought no conversion to the types of the API")
		}
		into := evaluator.NewObject(resource.Group, resource.Resource, a.GetSubresource())
		return into, server.GetObjectConvertor().Convert(object, into, nil)
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
