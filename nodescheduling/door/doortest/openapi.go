// Package doortest fakes the parts of an API server that decide about the live source: the schemas that it
// publishes, and the two kinds.
package doortest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	restfake "k8s.io/client-go/rest/fake"
	clienttesting "k8s.io/client-go/testing"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	groupsv1alpha1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/scheduling/v1alpha1"
)

// Schemas of Scheduler's spec that a server may publish.
const (
	// WithField has the field schedulingGroups.
	WithField = `{"properties": {"schedulingGroups": {"type": "array"}, "mastersSchedulable": {"type": "boolean"}}}`
	// WithoutField lacks it, as in OpenShift today.
	WithoutField = `{"properties": {"mastersSchedulable": {"type": "boolean"}}}`
	// AnyField keeps unknown fields.
	AnyField = `{"x-kubernetes-preserve-unknown-fields": true}`
)

// Server is a fake API server for the live source. Change its fields between calls, not during one.
type Server struct {
	// Spec is the published schema of Scheduler's spec, "" for none.
	Spec string
	// Scheduler is the object, nil if there is none. NoScheduler removes the kind.
	Scheduler   *unstructured.Unstructured
	NoScheduler bool
	// Groups are the NodeSchedulingGroups. NoGroups removes the kind.
	Groups   []*unstructured.Unstructured
	NoGroups bool
	// Fails is the error of every request for schemas, nil for none.
	Fails error

	mu    sync.Mutex
	asked []string
}

// Asked returns the paths of the schemas that were requested since the last call.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

// OpenAPI returns a client that reads the schemas.
func (s *Server) OpenAPI() rest.Interface {
	return &restfake.RESTClient{NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
		Client: restfake.CreateHTTPClient(s.answer)}
}

func (s *Server) answer(request *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.asked = append(s.asked, request.URL.Path)
	s.mu.Unlock()
	if s.Fails != nil {
		return nil, s.Fails
	}
	const path = "/openapi/v3/apis/config.openshift.io/v1"
	body := `{"paths": {}}`
	switch {
	case s.Spec == "":
	case request.URL.Path == path:
		body = fmt.Sprintf(`{"components": {"schemas": {
"List": {"x-kubernetes-group-version-kind": [{"group": "config.openshift.io", "version": "v1", "kind": "SchedulerList"}]},
"One": {"properties": {"spec": %s}, "x-kubernetes-group-version-kind": [{"group": "config.openshift.io", "version": "v1", "kind": "Scheduler"}]}}}}`,
			s.Spec)
	default:
		body = fmt.Sprintf(`{"paths": {"apis/config.openshift.io/v1": {"serverRelativeURL": "%s?hash=%x"}}}`, path,
			s.Spec)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body))}, nil
}

// Dynamic returns a client of both kinds.
func (s *Server) Dynamic() *dynamicfake.FakeDynamicClient {
	groups := groupsv1alpha1.GroupVersion().WithResource(groupsv1alpha1.Resource)
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{
			configv1.GroupVersion().WithResource("schedulers"): "SchedulerList", groups: groupsv1alpha1.Kind + "List"})
	client.PrependReactor("get", "schedulers", func(clienttesting.Action) (bool, runtime.Object, error) {
		switch {
		case s.NoScheduler:
			return true, nil, NoKind("get", "schedulers")
		case s.Scheduler == nil:
			return true, nil,
				apierrors.NewNotFound(schema.GroupResource{Group: configv1.Group, Resource: "schedulers"},
					configv1.SchedulerName)
		}
		return true, s.Scheduler, nil
	})
	client.PrependReactor("list", groupsv1alpha1.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		if s.NoGroups {
			return true, nil, NoKind("list", groupsv1alpha1.Resource)
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(groupsv1alpha1.GroupVersion().WithKind(groupsv1alpha1.Kind + "List"))
		for _, group := range s.Groups {
			list.Items = append(list.Items, *group)
		}
		return true, list, nil
	})
	return client
}

// NoKind returns the error of a server that does not serve a kind.
func NoKind(verb, resource string) error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, verb, schema.GroupResource{Resource: resource}, "",
		"404 page not found", 0, true)
}

// Scheduler returns a Scheduler with a spec.
func Scheduler(version string, spec map[string]any) *unstructured.Unstructured {
	return object(configv1.GroupVersion().String(), "Scheduler", configv1.SchedulerName, version, spec)
}

// Group returns a NodeSchedulingGroup for the control plane.
func Group(version, mode string, users ...any) *unstructured.Unstructured {
	return object(groupsv1alpha1.GroupVersion().String(), groupsv1alpha1.Kind,
		groupsv1alpha1.NameOf(configv1.ControlPlane), version,
		map[string]any{"name": string(configv1.ControlPlane), "mode": mode, "authorizedUsers": users})
}

func object(apiVersion, kind, name, version string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"name": name, "uid": "uid-of-" + name, "resourceVersion": version}, "spec": spec}}
}

// Clients returns the clients, with the server's schemas.
func (s *Server) Clients(clients kubernetes.Interface) kubernetes.Interface {
	return publishing{clients, s.OpenAPI()}
}

type publishing struct {
	kubernetes.Interface
	openAPI rest.Interface
}

// Discovery implements kubernetes.Interface.
func (p publishing) Discovery() discovery.DiscoveryInterface {
	return discoverer{p.Interface.Discovery(), p.openAPI}
}

type discoverer struct {
	discovery.DiscoveryInterface
	openAPI rest.Interface
}

// RESTClient implements discovery.DiscoveryInterface.
func (d discoverer) RESTClient() rest.Interface { return d.openAPI }
