package door

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

const (
	// eventsOfOneEvery and eventsAMinute bound how many events are written (N67, A-15). Neither a large rollout nor
	// whoever sends requests must flood the API server with events.
	eventsOfOneEvery = time.Minute
	eventsAMinute    = 10
	// lookUpsAMinute bounds how often the API server is asked whether an object exists.
	lookUpsAMinute = 60
	// eventsWaiting is how many events may wait to be written.
	eventsWaiting = 64
	// lookUpWithin is the timeout of one such question.
	lookUpWithin = 5 * time.Second
)

// Events writes a bounded number of events, only about objects that exist. The sender of a request states the owner of
// its objects. If the API server does not have that owner, Events writes about the namespace instead.
type Events struct {
	recorder events.EventRecorder
	exists   Exists
	cut      func()
	now      func() time.Time
	waiting  chan evaluator.Event

	// Only Start uses the following fields.
	sent, lookedUp window
	told           map[corev1.ObjectReference]time.Time // objects with an event within the last minute
}

// Exists reports whether the object of a reference exists, with the same UID if the reference has one. found is the
// reference with the UID. An error says that the API server could not be asked. A kind that is not known does not
// exist.
type Exists func(context.Context, corev1.ObjectReference) (found corev1.ObjectReference, exists bool, err error)

// NewEvents returns a writer, which writes nothing until Start. With a nil recorder it never writes.
func NewEvents(recorder events.EventRecorder, exists Exists, metrics Metrics) *Events {
	return &Events{recorder: recorder, exists: exists, cut: metrics.EventsCut.Inc, now: time.Now,
		waiting: make(chan evaluator.Event, eventsWaiting),
		sent:    window{most: eventsAMinute}, lookedUp: window{most: lookUpsAMinute},
		told: map[corev1.ObjectReference]time.Time{}}
}

// Offer queues events to be written, without waiting. It counts those that do not fit.
func (e *Events) Offer(all []evaluator.Event) {
	if e.recorder == nil {
		return
	}
	for _, event := range all {
		select {
		case e.waiting <- event:
		default:
			e.cut()
		}
	}
}

// Start writes until ctx ends. It implements manager.Runnable.
func (e *Events) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-e.waiting:
			if !e.write(ctx, event) {
				e.cut()
			}
		}
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica judges.
func (e *Events) NeedLeaderElection() bool { return false }

// write writes one event, about its object or that object's namespace. It returns false if there were too many events,
// or neither exists.
func (e *Events) write(ctx context.Context, event evaluator.Event) bool {
	regarding := event.Regarding
	candidates := []corev1.ObjectReference{regarding}
	if regarding.Kind != "Namespace" {
		candidates = append(candidates, corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace",
			Name: regarding.Namespace})
	}
	for _, candidate := range candidates {
		if now := e.now(); !e.sent.free(now) || !e.lookedUp.take(now) {
			return false
		}
		bounded, cancel := context.WithTimeout(ctx, lookUpWithin)
		found, exists, err := e.exists(bounded, candidate)
		cancel()
		if err != nil || !exists {
			continue
		}
		if !e.maySend(found) {
			return false
		}
		e.recorder.Eventf(&found, nil, corev1.EventTypeWarning, string(event.Reason), string(event.Reason), "%s",
			event.Note)
		return true
	}
	return false
}

// maySend reports whether an event about an object may be sent now, and counts it.
func (e *Events) maySend(about corev1.ObjectReference) bool {
	now := e.now()
	for known, at := range e.told {
		if now.Sub(at) >= eventsOfOneEvery {
			delete(e.told, known)
		}
	}
	if _, told := e.told[about]; told || !e.sent.take(now) {
		return false
	}
	e.told[about] = now
	return true
}

// window allows at most so many within a minute.
type window struct {
	most  int
	taken []time.Time
}

func (w *window) free(now time.Time) bool {
	w.taken = slices.DeleteFunc(w.taken, func(at time.Time) bool { return now.Sub(at) >= time.Minute })
	return len(w.taken) < w.most
}

func (w *window) take(now time.Time) bool {
	if !w.free(now) {
		return false
	}
	w.taken = append(w.taken, now)
	return true
}

// ExistsIn returns an Exists that asks the API server. It knows namespaces, and the kinds whose controllers make pods.
func ExistsIn(clients kubernetes.Interface) Exists {
	return func(ctx context.Context, of corev1.ObjectReference) (corev1.ObjectReference, bool, error) {
		var object metav1.Object
		var err error
		switch of.APIVersion + " " + of.Kind {
		case "v1 Namespace":
			object, err = clients.CoreV1().Namespaces().Get(ctx, of.Name, metav1.GetOptions{})
		case "v1 ReplicationController":
			object, err = clients.CoreV1().ReplicationControllers(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
		case "apps/v1 ReplicaSet":
			object, err = clients.AppsV1().ReplicaSets(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
		case "apps/v1 StatefulSet":
			object, err = clients.AppsV1().StatefulSets(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
		case "apps/v1 DaemonSet":
			object, err = clients.AppsV1().DaemonSets(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
		case "batch/v1 Job":
			object, err = clients.BatchV1().Jobs(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
		default:
			return of, false, nil
		}
		if apierrors.IsNotFound(err) {
			return of, false, nil
		}
		if err != nil {
			return of, false, err
		}
		if of.UID != "" && of.UID != object.GetUID() {
			return of, false, nil
		}
		of.UID = object.GetUID()
		return of, true, nil
	}
}
