package joiner

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/app/serve/readers"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/dump"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// asked asks a read API.
func asked(t *testing.T, api readAPI, method, path string) (int, []byte) {
	t.Helper()
	server := httptest.NewServer(api.handler())
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, body
}

// leads is closed: this process leads.
func leads() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// TestU41_TheLeaderTellsWhatItPlannedWith: a standby names the leader, and nothing can be written.
func TestU41_TheLeaderTellsWhatItPlannedWith(t *testing.T) {
	t.Parallel()
	s := newStage(t, manifests()...)
	leader := func(context.Context) string { return "the leader is joiner-b" }
	api := newReadAPI(&s.inputs, newDecisions(DefaultConfig(), nil, nil, logr.Discard()), s.parts.standing,
		make(chan struct{}), leader, "e", logr.Discard())
	if code, body := asked(t, api, http.MethodGet, pathDump); code != http.StatusServiceUnavailable ||
		string(body) != "this pod does not lead: the leader is joiner-b\n" {
		t.Errorf("standby: %d %s", code, body)
	}
	api.elected = leads()
	if code, body := asked(t, api, http.MethodGet, pathDump); code != http.StatusNotFound ||
		string(body) != "nothing was planned yet\n" {
		t.Errorf("before any plan: %d %s", code, body)
	}
	s.provision()
	s.run(Disruption, "")
	code, body := asked(t, api, http.MethodGet, pathDump)
	d, warnings, err := dump.Read(bytes.NewReader(body), dump.Options{Strict: true})
	if code != http.StatusOK || err != nil || len(warnings) > 0 {
		t.Fatalf("%d, %v, %v", code, err, warnings)
	}
	if d.Header.Source != dump.FromController || len(d.Plans) != 1 || d.Plans[0].Question != dump.AskProvision ||
		len(d.Plans[0].Plan.Launches) != 1 {
		t.Errorf("%+v %+v", d.Header, d.Plans)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		if code, _ := asked(t, api, method, pathDump); code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, code)
		}
	}
	if code, _ := asked(t, api, http.MethodGet, "/joiner/v1/nothing"); code != http.StatusNotFound {
		t.Errorf("an unknown path: %d", code)
	}
}

// TestU41_WhatControllersPlanReplays: a dump knows each question that the controllers ask, and its input leads to the
// same plan.
func TestU41_WhatControllersPlanReplays(t *testing.T) {
	t.Parallel()
	s := newStage(t, manifests()...)
	s.provision()
	s.run(Disruption, "")
	seen := map[dump.Question]bool{}
	for _, noted := range s.noted {
		seen[noted.question] = true
		if differences, err := dump.Replay(noted.dump("test")); err != nil || len(differences) > 0 {
			t.Errorf("%s: %v %v", noted.question, err, differences)
		}
	}
	for _, question := range []dump.Question{dump.AskProvision, dump.AskReplicas, dump.AskTrim, dump.AskEmptiness,
		dump.AskExpire, dump.AskDrift, dump.AskConsolidate} {
		if !seen[question] {
			t.Errorf("nothing is noted of %s: %v", question, seen)
		}
	}
}

// TestU41_TheNewestPlanThatSaysSomethingIsKept: rounds that have nothing to do do not push it out.
func TestU41_TheNewestPlanThatSaysSomethingIsKept(t *testing.T) {
	t.Parallel()
	var in inputs
	version := uint64(0)
	told := func(what string, p plan.Plan, want uint64) {
		t.Helper()
		version++
		in.noted("trim", &cluster.Snapshot{Version: version}, engine.Terms{}, p)
		if newest, planned := in.newest(); !planned || newest.snapshot.Version != want {
			t.Errorf("%s: %t, version %d, want %d", what, planned, newest.snapshot.Version, want)
		}
	}
	if _, planned := in.newest(); planned {
		t.Error("something was planned before anything was")
	}
	told("nothing to do", plan.Plan{}, 1)
	told("nothing again", plan.Plan{Names: resources.Names{"cpu"}, BasedOn: 7}, 2)
	for i, p := range []plan.Plan{
		{Removes: []plan.Remove{{Claim: "c"}}}, {Launches: []plan.Launch{{Pool: "p"}}},
		{Stays: []plan.Stay{{Claim: "c"}}},
		{Nominations: []plan.Nominate{{Node: "n"}}}, {Unplaced: []plan.Unplaced{{}}}, {Held: map[string]int{"p": 1}},
	} {
		told(fmt.Sprintf("plan %d", i), p, version+1)
		told(fmt.Sprintf("nothing after plan %d", i), plan.Plan{}, version)
	}
}

// TestU41_TheLeaseNamesTheLeader.
func TestU41_TheLeaseNamesTheLeader(t *testing.T) {
	t.Parallel()
	name := types.NamespacedName{Namespace: "joiner", Name: "lease"}
	server := controllertest.NewServer(t).Build()
	if err := coordinationv1.AddToScheme(server.Scheme()); err != nil {
		t.Fatal(err)
	}
	if got := leaderIn(server, name)(t.Context()); !strings.HasPrefix(got, "who does cannot be read: ") {
		t.Error(got)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	if err := server.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if got := leaderIn(server, name)(t.Context()); got != "nobody does" {
		t.Error(got)
	}
	lease.Spec.HolderIdentity = new("joiner-a_with_underscores_1f2e")
	if err := server.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if got := leaderIn(server, name)(t.Context()); got != "the leader is joiner-a_with_underscores" {
		t.Error(got)
	}
}

// TestU41_TheLeaderTellsHowItsClusterStands: from the snapshot that its controllers planned with, and with the causes
// that they report. A standby names the leader.
func TestU41_TheLeaderTellsHowItsClusterStands(t *testing.T) {
	t.Parallel()
	s := newStage(t, manifests()...)
	s.provision()
	leader := func(context.Context) string { return "the leader is joiner-b" }
	api := newReadAPI(&s.inputs, newDecisions(DefaultConfig(), nil, nil, logr.Discard()), s.parts.standing,
		make(chan struct{}), leader, "e", logr.Discard())
	if code, body := asked(t, api, http.MethodGet, readers.PathView); code != http.StatusServiceUnavailable ||
		string(body) != "this pod does not lead: the leader is joiner-b\n" {
		t.Errorf("standby: %d %s", code, body)
	}
	api = newReadAPI(&s.inputs, newDecisions(DefaultConfig(), nil, nil, logr.Discard()), s.parts.standing, leads(),
		leader, "e", logr.Discard())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- api.readers.Start(ctx) }()
	code, body := asked(t, api, http.MethodGet, readers.PathView)
	for _, want := range []string{`"apiVersion":"view.joiner.sh/v1"`, `"name":"default"`, `"state":"launching"`,
		s.only().Name} {
		if code != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%d %s lacks %s", code, body, want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
