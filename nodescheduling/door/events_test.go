package door

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// about is an event about an owner in a namespace.
func about(kind, version, namespace, name string, uid types.UID) evaluator.Event {
	return evaluator.Event{Reason: evaluator.EventInform, Note: namespace + "/" + name,
		Regarding: corev1.ObjectReference{APIVersion: version, Kind: kind, Namespace: namespace, Name: name, UID: uid}}
}

// writer is one whose clock the test moves, in a cluster with some objects.
func writer(t *testing.T, now *time.Time) (*Events, *events.FakeRecorder, *fake.Clientset) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: "app", Name: "web", UID: "1"}
	objects := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "app", UID: "n"}},
		&appsv1.ReplicaSet{ObjectMeta: meta}, &appsv1.StatefulSet{ObjectMeta: meta},
		&appsv1.DaemonSet{ObjectMeta: meta}, &batchv1.Job{ObjectMeta: meta},
		&corev1.ReplicationController{ObjectMeta: meta})
	recorder := events.NewFakeRecorder(1000)
	e := NewEvents(recorder, ExistsIn(objects), NewMetrics(prometheus.NewRegistry()))
	e.now = func() time.Time { return *now }
	return e, recorder, objects
}

// the sender of a request states the owner of its pods. An event is about an owner that exists with its UID,
// otherwise about the namespace, and is not written if neither exists or can be read.
func TestA15_EventsAreAboutWhatExists(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		event evaluator.Event
		want  types.UID
	}{
		{about("ReplicaSet", "apps/v1", "app", "web", "1"), "1"},
		{about("StatefulSet", "apps/v1", "app", "web", "1"), "1"},
		{about("DaemonSet", "apps/v1", "app", "web", "1"), "1"},
		{about("Job", "batch/v1", "app", "web", ""), "1"},
		{about("ReplicationController", "v1", "app", "web", "1"), "1"},
		{about("ReplicaSet", "apps/v1", "app", "web", "2"), "n"},
		{about("ReplicaSet", "apps/v1", "app", "none", "1"), "n"},
		{about("Gadget", "example.com/v1", "app", "web", "1"), "n"},
		{evaluator.Event{Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "app"}}, "n"},
		{about("ReplicaSet", "apps/v1", "none", "web", "1"), ""},
		{evaluator.Event{Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "none"}}, ""},
	} {
		e, recorder, _ := writer(t, &now)
		var regarding types.UID
		exists := e.exists
		e.exists = func(ctx context.Context, of corev1.ObjectReference) (corev1.ObjectReference, bool, error) {
			found, there, err := exists(ctx, of)
			if there {
				regarding = found.UID
			}
			return found, there, err
		}
		if written := e.write(t.Context(), c.event); written != (c.want != "") || regarding != c.want ||
			len(recorder.Events) != len(c.want) {
			t.Errorf("%+v: written %t about %q, want %q", c.event.Regarding, written, regarding, c.want)
		}
	}
	e, recorder, _ := writer(t, &now)
	e.exists = func(_ context.Context, of corev1.ObjectReference) (corev1.ObjectReference, bool, error) {
		return of, true, errors.New("no answer")
	}
	if e.write(t.Context(), about("Job", "batch/v1", "app", "web", "1")) || len(recorder.Events) > 0 {
		t.Error("written about what could not be asked for")
	}
}

// A-15, N67: one event a minute about an object, ten in all, and no more questions to the API server than sixty.
func TestA15_EventsAreFew(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	e, recorder, clients := writer(t, &now)
	web := about("ReplicaSet", "apps/v1", "app", "web", "1")
	for _, c := range []struct {
		after   time.Duration
		written bool
	}{{0, true}, {0, false}, {59 * time.Second, false}, {time.Second, true}} {
		now = now.Add(c.after)
		if written := e.write(t.Context(), web); written != c.written {
			t.Errorf("after %s: written %t", c.after, written)
		}
	}
	for range 10_000 { // names that do not exist, in a namespace that does not
		e.write(t.Context(), about("ReplicaSet", "apps/v1", "none", fmt.Sprint(len(clients.Actions())), ""))
	}
	if asked := len(clients.Actions()); len(recorder.Events) != 2 || asked > lookUpsAMinute+10 {
		t.Errorf("%d events, %d questions", len(recorder.Events), asked)
	}
	now = now.Add(time.Hour)
	e.exists = func(_ context.Context, of corev1.ObjectReference) (corev1.ObjectReference, bool, error) {
		return of, true, nil
	}
	written := 0
	for i := range 20 {
		if e.write(t.Context(), about("ReplicaSet", "apps/v1", "app", fmt.Sprint(i), "")) {
			written++
		}
	}
	if written != eventsAMinute {
		t.Errorf("%d events in a minute, want %d", written, eventsAMinute)
	}
}

// who judges never waits for an event; what is too many is counted, and without a recorder nothing is kept.
func TestA15_OffersDoNotWait(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	e := NewEvents(events.NewFakeRecorder(1), nil, NewMetrics(registry))
	for range eventsWaiting + 7 {
		e.Offer([]evaluator.Event{about("Job", "batch/v1", "app", "web", "")})
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	cut := 0.0
	for _, family := range families {
		if strings.HasSuffix(family.GetName(), "events_dropped_total") {
			cut = family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	if cut != 7 || len(e.waiting) != eventsWaiting {
		t.Errorf("%v were dropped, %d wait", cut, len(e.waiting))
	}
	silent := NewEvents(nil, nil, NewMetrics(prometheus.NewRegistry()))
	silent.Offer([]evaluator.Event{about("Job", "batch/v1", "app", "web", "")})
	if len(silent.waiting) > 0 {
		t.Error("without a recorder an event waits")
	}
}

// what is not known to exist is said as it was asked for, and an error is one.
func TestA15_WhatIsNotThere(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	e, _, clients := writer(t, &now)
	for _, of := range []corev1.ObjectReference{
		{APIVersion: "example.com/v1", Kind: "Gadget", Namespace: "app", Name: "web"},
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "app", Name: "none"},
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "app", Name: "web", UID: "other"},
	} {
		if found, exists, err := e.exists(t.Context(), of); found != of || exists || err != nil {
			t.Errorf("%+v: %+v, %t, %v", of, found, exists, err)
		}
	}
	answering(clients, "get", "*", func(clienttesting.Action) (runtime.Object, error) {
		return nil, errors.New("no answer")
	})
	of := corev1.ObjectReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "app", Name: "web"}
	if found, exists, err := e.exists(t.Context(), of); found != of || exists || err == nil {
		t.Errorf("without an answer: %+v, %t, %v", found, exists, err)
	}
}

// sixty questions a minute, none once ten events were written, one about a namespace that is itself the object;
// each within five seconds, after which nothing of it is left.
func TestA15_QuestionsAreFew(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	asked, there := 0, false
	var left time.Duration
	var last context.Context
	count := func(ctx context.Context, of corev1.ObjectReference) (corev1.ObjectReference, bool, error) {
		deadline, _ := ctx.Deadline()
		asked, left, last = asked+1, max(left, time.Until(deadline)), ctx
		return of, there, nil
	}
	e, recorder, _ := writer(t, &now)
	e.exists = count
	for range 100 {
		e.write(t.Context(), about("ReplicaSet", "apps/v1", "none", "web", ""))
	}
	if asked != 60 || left > 5*time.Second || left < 4*time.Second || last.Err() == nil {
		t.Errorf("asked %d times, with %s, and left a context with %v", asked, left, last.Err())
	}
	e, recorder, _ = writer(t, &now)
	e.exists, asked, there = count, 0, true
	for i := range 20 {
		e.write(t.Context(), about("ReplicaSet", "apps/v1", "app", fmt.Sprint(i), ""))
	}
	if asked != 10 || len(recorder.Events) != 10 {
		t.Errorf("asked %d times about %d events, want 10", asked, len(recorder.Events))
	}
	e, _, _ = writer(t, &now)
	e.exists, asked, there = count, 0, false
	e.write(t.Context(),
		evaluator.Event{Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "none"}})
	if asked != 1 {
		t.Errorf("asked %d times about a namespace", asked)
	}
}

// a minute is a minute.
func TestA15_TheWindowIsAMinute(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	w := window{most: 1}
	for _, c := range []struct {
		after time.Duration
		taken bool
	}{{0, true}, {0, false}, {time.Minute - 1, false}, {time.Minute, true}, {time.Minute, false}} {
		if taken := w.take(at.Add(c.after)); taken != c.taken {
			t.Errorf("after %s: taken %t", c.after, taken)
		}
	}
}

// what is offered is written, with the clock of the machine, by every replica; what is not written is counted.
func TestA15_WhatIsOfferedIsWritten(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	metrics, recorder := NewMetrics(registry), events.NewFakeRecorder(10)
	there := func(_ context.Context, of corev1.ObjectReference) (corev1.ObjectReference, bool, error) {
		return of, true, nil
	}
	e := NewEvents(recorder, there, metrics)
	if e.NeedLeaderElection() {
		t.Error("only one replica writes")
	}
	observe := Observer(e, metrics, logr.Discard())
	for _, name := range []string{"a", "a", "b"} {
		observe(evaluator.Request{},
			evaluator.Verdict{Events: []evaluator.Event{about("Job", "batch/v1", "app", name, "")},
				Samples: []evaluator.Sample{{Group: "ControlPlane"}}})
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Start(ctx) }()
	until(t, func() bool {
		return len(recorder.Events) == 2 && gauge(t, registry, "events_dropped_total") == 1
	})
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := gauge(t, registry, "decisions_total"); got != 3 {
		t.Errorf("%v verdicts are counted", got)
	}
}

// until polls for what another goroutine does.
func until(t *testing.T, done func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 20*time.Second, true,
		func(context.Context) (bool, error) { return done(), nil }); err != nil {
		t.Fatal(err)
	}
}

// gauge is the sum of a metric whose labels have these values among them.
func gauge(t *testing.T, registry *prometheus.Registry, name string, values ...string) (sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			given := map[string]bool{}
			for _, label := range metric.GetLabel() {
				given[label.GetValue()] = true
			}
			if family.GetName() == "node_scheduling_policy_"+name &&
				!slices.ContainsFunc(values, func(v string) bool { return !given[v] }) {
				sum += metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// N67: a verdict that refuses or overrides is logged; that somebody may is no news.
func TestN67_WhatIsLogged(t *testing.T) {
	t.Parallel()
	for verbosity, want := range map[int][]string{0: {"deny", "inform", "override"},
		1: {"deny", "inform", "override", "authorized"}} {
		var got []string
		log := funcr.New(func(_, text string) {
			_, rest, _ := strings.Cut(text, `"decision"="`)
			decision, _, _ := strings.Cut(rest, `"`)
			got = append(got, decision)
		}, funcr.Options{Verbosity: verbosity})
		metrics := NewMetrics(prometheus.NewRegistry())
		observe := Observer(NewEvents(nil, nil, metrics), metrics, log)
		observe(evaluator.Request{}, evaluator.Verdict{Findings: []evaluator.Finding{{Decision: evaluator.Deny},
			{Decision: evaluator.InformOnly}, {Decision: evaluator.Overridden}, {Decision: evaluator.Authorized}}})
		if !slices.Equal(got, want) {
			t.Errorf("verbosity %d: %v, want %v", verbosity, got, want)
		}
	}
}
