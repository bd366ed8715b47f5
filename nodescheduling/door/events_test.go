package door

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
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
	objects := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "app", UID: "n"}}, &appsv1.ReplicaSet{ObjectMeta: meta},
		&appsv1.StatefulSet{ObjectMeta: meta}, &appsv1.DaemonSet{ObjectMeta: meta}, &batchv1.Job{ObjectMeta: meta}, &corev1.ReplicationController{ObjectMeta: meta})
	recorder := events.NewFakeRecorder(1000)
	e := NewEvents(recorder, ExistsIn(objects), NewMetrics(prometheus.NewRegistry()))
	e.now = func() time.Time { return *now }
	return e, recorder, objects
}

// whoever sends requests says who owns their pods. An event is about an owner that exists with its UID, else about the namespace, and
// about nothing if that does not exist. What cannot be asked for is not written about.
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
		if written := e.write(t.Context(), c.event); written != (c.want != "") || regarding != c.want || len(recorder.Events) != len(c.want) {
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
