package world

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// daemonEntry is what is known of a DaemonSet.
type daemonEntry struct {
	sighting
	value cluster.Daemon
}

func (e *daemonEntry) seen() *sighting {
	if e == nil {
		return nil
	}
	return &e.sighting
}

func (s *Store) applyDaemon(set *appsv1.DaemonSet) error {
	name := set.Namespace + "/" + set.Name
	e := s.daemons[name]
	if accepted, _ := s.accept(e.seen(), sight(set)); !accepted {
		return nil
	}
	if e == nil {
		e = &daemonEntry{}
		s.daemons[name] = e
	}
	e.sighting = sight(set)
	value, err := translate.Daemon(s.space, set)
	value.Shape = s.shapes.Intern(value.Shape)
	s.shapes.Release(e.value.Shape)
	if value != e.value {
		e.value = value
		s.daemonsChanged()
	}
	return err
}

func (s *Store) removeDaemon(set *appsv1.DaemonSet) {
	name := set.Namespace + "/" + set.Name
	e := s.daemons[name]
	if s.ends(e.seen(), sight(set)) {
		s.shapes.Release(e.value.Shape)
		delete(s.daemons, name)
		s.daemonsChanged()
	}
}

func (s *Store) daemonsChanged() {
	s.daemonValues = make([]cluster.Daemon, 0, len(s.daemons))
	for _, name := range slices.Sorted(maps.Keys(s.daemons)) {
		s.daemonValues = append(s.daemonValues, s.daemons[name].value)
	}
	s.changed()
}

func (s *Store) applyNamespace(namespace *corev1.Namespace) {
	known := s.namespaces[namespace.Name]
	if accepted, _ := s.accept(known, sight(namespace)); !accepted {
		return
	}
	fresh := sight(namespace)
	s.namespaces[namespace.Name] = &fresh
	if labels, listed := s.namespaceLabels[namespace.Name]; !listed || !maps.Equal(labels, namespace.Labels) {
		s.namespaceLabels = maps.Clone(s.namespaceLabels)
		s.namespaceLabels[namespace.Name] = maps.Clone(namespace.Labels)
		s.changed()
	}
}

func (s *Store) removeNamespace(namespace *corev1.Namespace) {
	if s.ends(s.namespaces[namespace.Name], sight(namespace)) {
		delete(s.namespaces, namespace.Name)
		s.namespaceLabels = maps.Clone(s.namespaceLabels)
		delete(s.namespaceLabels, namespace.Name)
		s.changed()
	}
}
