package event_test

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"

	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// server takes events as the API server does.
type server chan string

func (s server) Create(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	s <- e.Note
	return e, nil
}

func (s server) Update(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) { return e, nil }

func (s server) Patch(_ context.Context, e *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	s <- "again: " + e.Note
	return e, nil
}

// two events of one reason about one version of an object both keep their text.
func TestTextsOfOneReasonAreNotMerged(t *testing.T) {
	t.Parallel()
	took := make(server, 10)
	broadcaster := events.NewBroadcaster(took)
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	sink := event.To(broadcaster.NewRecorder(scheme.Scheme, "karpenter"))
	about := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "1",
		ResourceVersion: "7"}}
	texts := []string{"annotation a is wrong", "annotation b is wrong", "annotation a is wrong"}
	for _, text := range texts {
		sink(about, event.Warning, event.IgnoredField, text)
	}
	var got []string
	for range texts {
		select {
		case note := <-took:
			got = append(got, note)
		case <-time.After(time.Minute):
			t.Fatalf("the server has %q", got)
		}
	}
	slices.Sort(got)
	if want := []string{"again: annotation a is wrong", "annotation a is wrong",
		"annotation b is wrong"}; !slices.Equal(got, want) {
		t.Errorf("the server has %q, want %q", got, want)
	}
}
