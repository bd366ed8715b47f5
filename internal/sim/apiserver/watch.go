package apiserver

import (
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// EventType says what happened to an object.
type EventType string

// What can happen.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
)

// Event is an entry of the log. Its objects must not be changed.
type Event struct {
	Version uint64 // the resource version of the change
	Type    EventType
	Object  client.Object // the new state, or the last one
	Old     client.Object // the state before; nil for Added
	// Listed says that comparing lists found the change. Then Version is the version of the list, and a deleted object
	// is as it was last seen.
	Listed bool

	kind *kind
}

// Kind returns the name of the object's kind.
func (e Event) Kind() string { return e.kind.gvk.Kind }

// Version returns the resource version of the last change.
func (s *Server) Version() uint64 { return s.version }

// Log returns the events after a version, oldest first.
func (s *Server) Log(after uint64) []Event { return s.log[min(after, s.version):] }

func (s *Server) publish(e Event) {
	s.log = append(s.log, e) // versions have no gaps: event n is at index n-1
	for _, w := range s.watchers {
		if w.kind == e.kind {
			w.send(watch.EventType(e.Type), e.Object.DeepCopyObject().(client.Object))
		}
	}
	if s.observer != nil {
		s.observer(e)
	}
}

// watchBuffer bounds the unread events of a watcher. More events end the watch, as for real slow watchers.
const watchBuffer = 1000

// initialEventsEnd marks the bookmark after a watch's initial objects.
const initialEventsEnd = "k8s.io/initial-events-end"

// watcher is one watch.
type watcher struct {
	kind    *kind
	events  chan watch.Event
	stopped bool
}

func (w *watcher) send(what watch.EventType, object client.Object) {
	if w.stopped {
		return
	}
	select {
	case w.events <- watch.Event{Type: what, Object: object}:
	default:
		w.Stop()
	}
}

// Stop implements watch.Interface.
func (w *watcher) Stop() {
	if !w.stopped {
		w.stopped = true
		close(w.events)
	}
}

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

// watch opens a watch on a kind. With initial it first sends the existing objects and a bookmark.
func (s *Server) watch(k *kind, initial bool) watch.Interface {
	w := &watcher{kind: k, events: make(chan watch.Event, watchBuffer)}
	if initial {
		for _, key := range s.stores[k].keys {
			w.send(watch.Added, s.stores[k].objects[key].DeepCopyObject().(client.Object))
		}
		mark := k.empty()
		mark.SetResourceVersion(formatVersion(s.version))
		mark.SetAnnotations(map[string]string{initialEventsEnd: "true"})
		w.send(watch.Bookmark, mark)
	}
	s.watchers = append(s.watchers, w)
	return w
}
