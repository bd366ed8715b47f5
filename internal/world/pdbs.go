package world

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// pdbs are the PodDisruptionBudgets. They can hold nodes (D-02).
type pdbs struct {
	byNamespace map[string][]*pdb // each list by name
	// guards are the budgets as snapshots show them; nil when they must be built anew.
	guards []cluster.Guard
}

// pdb is the part of a PodDisruptionBudget that matters here.
type pdb struct {
	name     string
	selector cluster.Selector
	closed   bool // it allows no disruption now
	never    bool // nor later, unless it or the number of its pods changes (P-42)
	// lets is set when it does not protect pods that run but are not ready: its policy says so, or enough others are
	// healthy.
	lets bool
	// atOnce is how many of its pods may leave now, before others become healthy.
	atOnce int
}

// hold is what keeps pods of a shape where they are, "" for nothing. lets is set when those that are not ready may go
// anyway.
type hold struct {
	why  string
	lets bool
	// never is set when waiting does not help.
	never bool
}

func newPDBs() pdbs { return pdbs{byNamespace: map[string][]*pdb{}} }

// putPDB stores a budget's state, or its deletion. Nodes are updated only if the change may hold other pods than
// before.
func (s *Store) putPDB(object *policyv1.PodDisruptionBudget, gone bool) {
	list := slices.Clone(s.pdbs.byNamespace[object.Namespace])
	at, found := slices.BinarySearchFunc(list, object.Name, func(b *pdb, name string) int {
		return strings.Compare(b.name, name)
	})
	var fresh *pdb
	var about []cluster.Selector // the pods before and after
	if found {
		about = append(about, list[at].selector)
	}
	if !gone {
		fresh = &pdb{name: object.Name, selector: translate.Selector(object.Spec.Selector),
			closed: translate.Unseen(object) || object.Status.DisruptionsAllowed <= 0,
			never:  translate.NeverAllows(object) != "",
			lets:   translate.LetsUnready(object),
			atOnce: translate.MayLeave(object)}
		about = append(about, fresh.selector)
	}
	switch {
	case fresh == nil && !found:
		return
	case fresh != nil && found && list[at].atOnce != fresh.atOnce && list[at].sameFor(fresh):
		list[at] = fresh
		s.pdbs.byNamespace[object.Namespace], s.pdbs.guards = list, nil
		s.changed()
		return
	case fresh == nil:
		list = slices.Delete(list, at, at+1)
	case !found:
		list = slices.Insert(list, at, fresh)
	case list[at].sameFor(fresh):
		return
	default:
		list[at] = fresh
	}
	s.pdbs.byNamespace[object.Namespace] = list
	if len(list) == 0 {
		delete(s.pdbs.byNamespace, object.Namespace)
	}
	s.pdbs.guards = nil
	s.changed()
	s.reviseHeld(object.Namespace, about)
}

// sameFor reports whether the budget holds the same pods as another state of it.
func (b *pdb) sameFor(other *pdb) bool {
	return b.closed == other.closed && b.lets == other.lets && b.never == other.never &&
		sameSelector(b.selector, other.selector)
}

// guardList returns the budgets by namespace and name, as planning sees them.
func (s *Store) guardList() []cluster.Guard {
	if s.pdbs.guards == nil {
		s.pdbs.guards = []cluster.Guard{}
		for _, namespace := range slices.Sorted(maps.Keys(s.pdbs.byNamespace)) {
			for _, b := range s.pdbs.byNamespace[namespace] {
				s.pdbs.guards = append(s.pdbs.guards,
					cluster.Guard{Namespace: namespace, Name: b.name, Pods: b.selector, AtOnce: b.atOnce})
			}
		}
	}
	return s.pdbs.guards
}

func sameSelector(a, b cluster.Selector) bool {
	return a.Enabled == b.Enabled && a.Labels.Equal(b.Labels)
}

// reviseHeld updates what holds the nodes with pods that a changed budget of a namespace is or was about, and which of
// the pods will leave nodes that are being removed. A budget that lets one pod go at a time closes and opens with each
// pod that is made anew, so it must not cost a look at all pods of the cluster.
func (s *Store) reviseHeld(namespace string, about []cluster.Selector) {
	nodes := map[string]struct{}{}
	for shape, use := range s.running.shapes[namespace] {
		if !slices.ContainsFunc(about, func(of cluster.Selector) bool { return of.Matches(shape.Labels) }) {
			continue
		}
		use.known = false
		for name := range use.nodes {
			nodes[name] = struct{}{}
		}
	}
	for name := range nodes {
		e := s.nodes[name]
		s.reviseHeldOf(e)
		if e != nil && e.leaving {
			s.listPendingOn(e)
		}
	}
}

// stays reports whether a pod may stay on its leaving node as long as it likes: no eviction will ever be allowed, and
// the drain has no deadline that forces it out.
func (s *Store) stays(pod *cluster.Pod) bool {
	if pod.DoNotDisrupt {
		return true
	}
	if node := s.nodes[pod.Node]; node == nil || node.bounded {
		return false
	}
	return s.holdOf(pod).never
}

func (s *Store) reviseHeldOf(e *nodeEntry) {
	if e == nil || e.value == nil {
		return
	}
	held := s.heldBy(e.value.Pods)
	if held == e.value.Held {
		return
	}
	value := *e.value
	value.Held = held
	s.machines.replace(e.value, &value)
	e.value = &value
	s.changed()
}

// heldBy returns a text with the first pod that must not be evicted now, and its budget; "" when all may be evicted.
func (s *Store) heldBy(pods []*cluster.Pod) string {
	if len(s.pdbs.byNamespace) == 0 {
		return ""
	}
	for _, pod := range pods {
		if pod.Terminating {
			continue
		}
		if h := s.holdOf(pod); h.why != "" {
			return fmt.Sprintf("pod %s is %s", pod.Ref(), h.why)
		}
	}
	return ""
}

// holdOf returns what keeps a pod where it is. Nothing keeps one that no drain evicts, and one that the eviction API
// lets go all the same.
func (s *Store) holdOf(pod *cluster.Pod) hold {
	h := s.held(pod.Shape)
	if h.why == "" {
		return h
	}
	e := s.pods[podKey{pod.Shape.Namespace, pod.Name}]
	if e == nil || !e.exit.evicted || e.exit.ignoresBudgets || h.lets && e.exit.unready {
		return hold{}
	}
	return h
}

// held returns which budget keeps pods of a shape where they are. Pods under more than one budget are never evicted:
// the API refuses.
func (s *Store) held(shape *cluster.Shape) hold {
	list := s.pdbs.byNamespace[shape.Namespace]
	if len(list) == 0 {
		return hold{}
	}
	use := s.running.use(shape)
	if use != nil && use.known {
		return use.hold
	}
	var over []*pdb
	for _, b := range list {
		if b.selector.Matches(shape.Labels) {
			over = append(over, b)
		}
	}
	var h hold
	switch {
	case len(over) > 1:
		h.never = true
		h.why = fmt.Sprintf("under more than one PodDisruptionBudget: %s and %s", over[0].name, over[1].name)
	case len(over) == 1 && over[0].closed:
		h.why, h.lets = fmt.Sprintf("under PodDisruptionBudget %s, which allows no disruption now", over[0].name),
			over[0].lets
		h.never = over[0].never
	}
	if use != nil {
		use.hold, use.known = h, true
	}
	return h
}

// exit is what decides whether budgets hold a pod, beside the budgets.
type exit struct {
	evicted        bool // by a drain of its node
	ignoresBudgets bool // it is pending still
	unready        bool
}

// exitOf returns what the object says. One without a status is of a file: it stands for a pod that is ready.
func exitOf(pod *corev1.Pod) exit {
	return exit{translate.Evicted(pod), translate.IgnoresBudgets(pod), pod.Status.Phase != "" && !translate.Ready(pod)}
}
