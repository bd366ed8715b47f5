package door

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8sschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	restfake "k8s.io/client-go/rest/fake"
	clienttesting "k8s.io/client-go/testing"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/door/doortest"
)

// N12, A-18: that an object or its kind cannot be read is no word that there is none, also where the answer comes from
// something before the API server.
func TestA18_WhatCannotBeReadIsNotNone(t *testing.T) {
	t.Parallel()
	unavailable := apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "get",
		k8sschema.GroupResource{Resource: "schedulers"}, "", "a proxy's page", 0, true)
	for _, c := range []struct {
		verb, resource, want string
		failure              error
	}{
		{"get", "schedulers", "reading Scheduler cluster: no answer", errors.New("no answer")},
		{"get", "schedulers", "reading Scheduler cluster: the server is currently unable", unavailable},
		{"list", "nodeschedulinggroups", "listing the objects of kind NodeSchedulingGroup: no answer",
			errors.New("no answer")},
	} {
		server := &doortest.Server{Spec: doortest.WithoutField}
		client := server.Dynamic()
		client.PrependReactor(c.verb, c.resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, c.failure
		})
		live, err := NewLiveReader(client, server.OpenAPI()).Read(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || live.Source != "" || errors.Is(err, errMalformed) {
			t.Errorf("%s %s: %+v (%v), want %s", c.verb, c.resource, live, err, c.want)
		}
	}
}

// N60: a Scheduler of other types than the kind has is an error that says so; one without a spec says nothing, and is
// none.
func TestN60_ASchedulerOfOtherTypes(t *testing.T) {
	t.Parallel()
	r := newReading()
	for _, spec := range []any{"none", map[string]any{"schedulingGroups": "none"}} {
		r.Scheduler = doortest.Scheduler("1", nil)
		r.Scheduler.Object["spec"] = spec
		if _, err := r.reader.Read(t.Context()); !errors.Is(err, errMalformed) || !strings.HasPrefix(err.Error(),
			"reading Scheduler cluster: its content has wrong types: ") {
			t.Errorf("spec %v: %v", spec, err)
		}
	}
	delete(r.Scheduler.Object, "spec")
	if live, err := r.reader.Read(t.Context()); err != nil || live.Scheduler == nil {
		t.Errorf("without a spec: %+v (%v)", live, err)
	}
}

// N70: only the Scheduler that counts opens the nodes.
func TestN70_OnlyTheSchedulerThatCountsOpensTheNodes(t *testing.T) {
	t.Parallel()
	of := func(name string, open bool) *configv1.Scheduler {
		return &configv1.Scheduler{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: configv1.SchedulerSpec{MastersSchedulable: open}}
	}
	for _, c := range []struct {
		scheduler *configv1.Scheduler
		want      bool
	}{{of(configv1.SchedulerName, true), true}, {of(configv1.SchedulerName, false), false}, {of("other", true), false},
		{nil, false}} {
		if got := (Live{Scheduler: c.scheduler}).MastersSchedulable(); got != c.want {
			t.Errorf("%+v: %t", c.scheduler, got)
		}
	}
}

// answer is what a server answers with.
type answer struct {
	status int
	text   string
}

// publishing makes a reader of schemas whose server answers each path.
func publishing(answers map[string]answer) *schema {
	return &schema{client: &restfake.RESTClient{NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
		Client: restfake.CreateHTTPClient(func(request *http.Request) (*http.Response, error) {
			answer := answers[request.URL.Path]
			return &http.Response{StatusCode: answer.status, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(answer.text))}, nil
		})}}
}

// what a server publishes counts for Scheduler of the version that is read, and an answer that is none is an
// error, as is a document without the kind.
func TestA18_WhatIsPublishedOfOtherKinds(t *testing.T) {
	t.Parallel()
	const list = `{"paths": {"apis/config.openshift.io/v1": {"serverRelativeURL": "/one"}}}`
	kind := func(group, version, kind string) answer {
		return answer{http.StatusOK, `{"components": {"schemas": {"One": {"x-kubernetes-preserve-unknown-fields": true,
			"x-kubernetes-group-version-kind": [{"group": "` + group + `", "version": "` + version + `", "kind": "` +
			kind + `"}]}}}}`}
	}
	for _, c := range []struct {
		what      string
		list, one answer
		keeps     bool
		want      string // of the error
	}{
		{"the kind", answer{200, list}, kind("config.openshift.io", "v1", "Scheduler"), true, ""},
		{"another group", answer{200, list}, kind("example.com", "v1", "Scheduler"), false,
			"publishes no schema of Scheduler yet"},
		{"another version", answer{200, list}, kind("config.openshift.io", "v2", "Scheduler"), false,
			"publishes no schema"},
		{"another kind", answer{200, list}, kind("config.openshift.io", "v1", "Ingress"), false,
			"publishes no schema"},
		{"a schema that is null", answer{200, list}, answer{200, `{"components": {"schemas": {"One": null}}}`}, false,
			"publishes no schema"},
		{"no JSON", answer{200, list}, answer{200, "x"}, false, "reading the schema of Scheduler from /one: "},
		{"an error with a document", answer{200, list},
			answer{500, kind("config.openshift.io", "v1", "Scheduler").text}, false,
			"reading the schema of Scheduler from /one: "},
		{"no list", answer{500, list}, answer{}, false, "reading the schema of Scheduler from /openapi/v3: "},
		{"no address", answer{200, `{"paths": {"apis/config.openshift.io/v1": {}}}`},
			kind("config.openshift.io", "v1", "Scheduler"), false, "publishes no schema"},
	} {
		s := publishing(map[string]answer{"/openapi/v3": c.list, "/one": c.one,
			"": kind("config.openshift.io", "v1", "Scheduler"), "/": kind("config.openshift.io", "v1", "Scheduler")})
		keeps, err := s.look(t.Context())
		if keeps != c.keeps || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %t (%v), want %t %q", c.what, keeps, err, c.keeps, c.want)
		}
	}
}
