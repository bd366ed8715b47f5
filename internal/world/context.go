package world

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

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
