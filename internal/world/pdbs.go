package world

import (
	"fmt"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// pdbs are the PodDisruptionBudgets, by which nodes are held (D-02).
type pdbs struct {
	byNamespace map[string][]*pdb // each list by name
	// holds caches what holds pods of a shape: their namespace and labels are all that a budget looks at. It is emptied
	// when budgets change, or shapes pile up.
	holds map[*cluster.Shape]string
}

// pdb is as much of a PodDisruptionBudget as counts here.
type pdb struct {
	name     string
	selector cluster.Selector
	closed   bool // it allows no disruption now
}

// maxHolds bounds the cache: shapes of pods that are gone stay in it until then.
const maxHolds = 50_000

func newPDBs() pdbs {
	return pdbs{byNamespace: map[string][]*pdb{}, holds: map[*cluster.Shape]string{}}
}

// putPDB takes in a budget's state, or that it is gone. Only what may hold other pods than before makes nodes be looked at.
func (s *Store) putPDB(object *policyv1.PodDisruptionBudget, gone bool) {
	list := slices.Clone(s.pdbs.byNamespace[object.Namespace])
	at, found := slices.BinarySearchFunc(list, object.Name, func(b *pdb, name string) int { return strings.Compare(b.name, name) })
	var fresh *pdb
	if !gone {
		// Until its controller has looked at this very budget, its status says nothing: the eviction API refuses too.
		unseen := object.Status.ObservedGeneration < object.Generation
		fresh = &pdb{name: object.Name, selector: translate.Selector(object.Spec.Selector), closed: unseen || object.Status.DisruptionsAllowed <= 0}
	}
	switch {
	case fresh == nil && !found:
		return
	case fresh == nil:
		list = slices.Delete(list, at, at+1)
	case !found:
		list = slices.Insert(list, at, fresh)
	case list[at].closed == fresh.closed && sameSelector(list[at].selector, fresh.selector):
		return
	default:
		list[at] = fresh
	}
	s.pdbs.byNamespace[object.Namespace] = list
	if len(list) == 0 {
		delete(s.pdbs.byNamespace, object.Namespace)
	}
	clear(s.pdbs.holds)
	s.reviseHeld()
}

func sameSelector(a, b cluster.Selector) bool {
	return a.Enabled == b.Enabled && a.Labels.Equal(b.Labels)
}

// reviseHeld brings up to date what holds each node.
func (s *Store) reviseHeld() {
	for _, e := range s.nodes {
		if e.value == nil {
			continue
		}
		held := s.heldBy(e.value.Pods)
		if held == e.value.Held {
			continue
		}
		value := *e.value
		value.Held = held
		s.machines.replace(e.value, &value)
		e.value = &value
		s.changed()
	}
}

// heldBy says which pod must not be evicted from a node now, and by which budget; "" when all may.
func (s *Store) heldBy(pods []*cluster.Pod) string {
	if len(s.pdbs.byNamespace) == 0 {
		return ""
	}
	for _, pod := range pods {
		if pod.Fixed || pod.Terminating {
			continue
		}
		if why := s.held(pod.Shape); why != "" {
			return fmt.Sprintf("pod %s is %s", pod.Ref(), why)
		}
	}
	return ""
}

// held says which budget keeps pods of a shape where they are. Pods under more than one are never evicted: the API refuses.
func (s *Store) held(shape *cluster.Shape) string {
	list := s.pdbs.byNamespace[shape.Namespace]
	if len(list) == 0 {
		return ""
	}
	if why, known := s.pdbs.holds[shape]; known {
		return why
	}
	var over []*pdb
	for _, b := range list {
		if b.selector.Matches(shape.Labels) {
			over = append(over, b)
		}
	}
	why := ""
	switch {
	case len(over) > 1:
		why = fmt.Sprintf("under more than one PodDisruptionBudget: %s and %s", over[0].name, over[1].name)
	case len(over) == 1 && over[0].closed:
		why = fmt.Sprintf("under PodDisruptionBudget %s, which allows no disruption now", over[0].name)
	}
	if len(s.pdbs.holds) >= maxHolds {
		clear(s.pdbs.holds)
	}
	s.pdbs.holds[shape] = why
	return why
}
