package operator_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// hosting is a management cluster with a HostedControlPlane in the namespace, reached by HTTP; asked gets the queries.
func hosting(t *testing.T, asked *[]url.Values) *httptest.Server {
	t.Helper()
	one := plane("one")
	one.SetAPIVersion("hypershift.openshift.io/v1beta1")
	one.SetKind("HostedControlPlane")
	list := map[string]any{"apiVersion": one.GetAPIVersion(), "kind": "HostedControlPlaneList",
		"metadata": map[string]any{"resourceVersion": "7"}, "items": []any{one.Object}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/hypershift.openshift.io/v1beta1/namespaces/"+namespace+"/hostedcontrolplanes" {
			http.NotFound(w, r)
			return
		}
		*asked = append(*asked, r.URL.Query())
		var answer any = list
		if r.URL.Query().Get("watch") != "" {
			answer = map[string]any{"type": "MODIFIED", "object": one.Object}
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// A-32, R41: the HostedControlPlanes of the namespace are listed and watched, by their path, and those of no other.
func TestA32_HowAHostedControlPlaneIsAskedFor(t *testing.T) {
	t.Parallel()
	var asked []url.Values
	config := &rest.Config{Host: hosting(t, &asked).URL}
	c, err := operator.NewManagementClient(config, namespace)
	if err != nil {
		t.Fatal(err)
	}
	found, version, err := c.HostedControlPlanes(t.Context())
	if err != nil || len(found) != 1 || found[0].GetName() != "one" || version != "7" {
		t.Errorf("found %v of version %q, error %v", found, version, err)
	}
	events, err := c.WatchHosted(t.Context(), version, 30)
	if err != nil {
		t.Fatal(err)
	}
	event := <-events.ResultChan()
	events.Stop()
	if seen, is := event.Object.(*unstructured.Unstructured); !is || seen.GetName() != "one" {
		t.Errorf("the watch brings %+v", event)
	}
	if len(asked) != 2 || asked[1].Get("watch") == "" || asked[1].Get("resourceVersion") != "7" ||
		asked[1].Get("timeoutSeconds") != "30" {
		t.Errorf("asked %v", asked)
	}
	other, err := operator.NewManagementClient(config, "another")
	if err != nil {
		t.Fatal(err)
	}
	if found, _, err := other.HostedControlPlanes(t.Context()); err == nil || found != nil ||
		!strings.Contains(err.Error(), "HostedControlPlane of namespace another") {
		t.Errorf("of another namespace: found %v, error %v", found, err)
	}
}

// a tag without a key is none.
func TestA32_ATagWithoutAKeyIsNone(t *testing.T) {
	t.Parallel()
	got := read(plane("one", func(spec map[string]any, _ map[string]string) {
		spec["platform"] = map[string]any{"aws": map[string]any{"resourceTags": []any{
			map[string]any{"value": "1"}, "a", map[string]any{"key": "b", "value": "2"}}}}
	}))
	if tags := got.Infra.ResourceTags; len(tags) != 1 || tags[0] != (merge.ResourceTag{Key: "b", Value: "2"}) {
		t.Errorf("the tags are %+v", tags)
	}
}

// the policy says how it stands with the HostedControlPlane, and nothing where none is asked for.
func TestA32_WhatThePolicySaysOfTheHostedControlPlane(t *testing.T) {
	t.Parallel()
	going := plane("one")
	going.SetDeletionTimestamp(new(metav1.Now()))
	known := read(plane("one"))
	for what, test := range map[string]struct {
		reading operator.HostedReading
		status  metav1.ConditionStatus
		reason  string
		part    string
	}{
		"not asked for": {},
		"found":         {known, metav1.ConditionTrue, hypershiftv1beta1.ReasonHostedFound, ""},
		"going": {read(going), metav1.ConditionFalse, hypershiftv1beta1.ReasonHostedDeleting,
			"is being deleted"},
		"not read": {known.Next(nil, errors.New("away"), operator.HostedGiven{}), metav1.ConditionFalse,
			hypershiftv1beta1.ReasonHostedUnreadable, "cannot be read: away"},
		"gone": {known.Next(nil, nil, operator.HostedGiven{}), metav1.ConditionFalse,
			hypershiftv1beta1.ReasonHostedMissing, "there is no HostedControlPlane"},
	} {
		s := newScene(t, nil, policyOf(1))
		s.read()
		s.board.SetHosted(test.reading)
		s.step(s.policy, "")
		said, _ := condition.Get(s.stored().Status.Conditions, hypershiftv1beta1.ConditionTypeHostedControlPlane)
		if said.Status != test.status || said.Reason != test.reason || !strings.Contains(said.Message, test.part) {
			t.Errorf("%s: the policy says %s %s %q", what, said.Status, said.Reason, said.Message)
		}
	}
}
