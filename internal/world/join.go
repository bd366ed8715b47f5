package world

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// nodeEntry is what is known of a Node object.
type nodeEntry struct {
	sighting
	object *corev1.Node
	value  *cluster.Node // joined with its claim, if it has one
	// leaving is set while a node of ours is being removed: its pods need places elsewhere (P-01). It is not set for
	// another program's node. Its removal may take long, or that program may replace it, so its pods are planned for
	// once they are pending.
	leaving bool
	// bounded is set when its drain has a deadline, whatever its pods and their budgets say (P-41).
	bounded bool
}

func (e *nodeEntry) seen() *sighting {
	if e == nil {
		return nil
	}
	return &e.sighting
}

// links finds the other half of a machine: which nodes and claims name a provider ID, and which claims name a node.
// All hold sorted names. So the result does not depend on the order of events, even if two objects name the same one.
type links struct {
	nodesByProvider, claimsByProvider, claimsByNode index
}

type index map[string][]string

func (x index) add(key, name string) {
	if key == "" {
		return
	}
	if at, found := slices.BinarySearch(x[key], name); !found {
		x[key] = slices.Insert(slices.Clone(x[key]), at, name)
	}
}

func (x index) remove(key, name string) {
	rest := slices.DeleteFunc(slices.Clone(x[key]), func(other string) bool { return other == name })
	if x[key] = rest; len(rest) == 0 {
		delete(x, key)
	}
}

// touched collects the nodes and claims whose join a change may affect. These are all that are linked with the changed
// object, in any number of steps: a half that finds another partner leaves its former one alone. Usually that is one
// node and one claim, unless objects contradict each other.
type touched struct {
	nodes, claims map[string]struct{}
}

func newTouched() touched {
	return touched{nodes: map[string]struct{}{}, claims: map[string]struct{}{}}
}

func (s *Store) linkNode(node *corev1.Node, t touched) {
	delete(t.nodes, node.Name) // look again, by the new links
	s.links.nodesByProvider.add(node.Spec.ProviderID, node.Name)
	s.touchNode(node.Name, t)
}

func (s *Store) unlinkNode(node *corev1.Node, t touched) {
	s.touchNode(node.Name, t)
	s.links.nodesByProvider.remove(node.Spec.ProviderID, node.Name)
}

func (s *Store) linkClaim(claim *karpenterv1.NodeClaim, t touched) {
	delete(t.claims, claim.Name) // look again, by the new links
	s.links.claimsByProvider.add(claim.Status.ProviderID, claim.Name)
	s.links.claimsByNode.add(claim.Status.NodeName, claim.Name)
	s.touchClaim(claim.Name, t)
}

func (s *Store) unlinkClaim(claim *karpenterv1.NodeClaim, t touched) {
	s.touchClaim(claim.Name, t)
	s.links.claimsByProvider.remove(claim.Status.ProviderID, claim.Name)
	s.links.claimsByNode.remove(claim.Status.NodeName, claim.Name)
}

func (s *Store) touchNode(name string, t touched) {
	e := s.nodes[name]
	if _, done := t.nodes[name]; done || e == nil {
		return
	}
	t.nodes[name] = struct{}{}
	s.touchProvider(e.object.Spec.ProviderID, t)
	for _, claim := range s.links.claimsByNode[name] {
		s.touchClaim(claim, t)
	}
}

func (s *Store) touchClaim(name string, t touched) {
	e := s.claims[name]
	if _, done := t.claims[name]; done || e == nil {
		return
	}
	t.claims[name] = struct{}{}
	s.touchProvider(e.object.Status.ProviderID, t)
	s.touchNode(e.object.Status.NodeName, t)
	for _, claim := range s.links.claimsByNode[e.object.Status.NodeName] {
		s.touchClaim(claim, t)
	}
}

func (s *Store) touchProvider(id string, t touched) {
	for _, node := range s.links.nodesByProvider[id] {
		s.touchNode(node, t)
	}
	for _, claim := range s.links.claimsByProvider[id] {
		s.touchClaim(claim, t)
	}
}

// claimOf returns the claim that is joined with the node: each must be the other's first choice. nil for none.
func (s *Store) claimOf(node *corev1.Node) *claimEntry {
	e := s.claimChosenBy(node)
	if e != nil && s.nodeChosenBy(e.object) == node.Name {
		return e
	}
	return nil
}

// nodeOf returns the name of the node that is joined with the claim; "" for none.
func (s *Store) nodeOf(claim *karpenterv1.NodeClaim) string {
	name := s.nodeChosenBy(claim)
	if name == "" {
		return ""
	}
	if e := s.claimChosenBy(s.nodes[name].object); e == nil || e.object.Name != claim.Name {
		return ""
	}
	return name
}

func (s *Store) claimChosenBy(node *corev1.Node) *claimEntry {
	if names := s.links.claimsByProvider[node.Spec.ProviderID]; len(names) > 0 {
		return s.claims[names[0]]
	}
	for _, name := range s.links.claimsByNode[node.Name] {
		if e := s.claims[name]; compatible(node, e.object) {
			return e
		}
	}
	return nil
}

func (s *Store) nodeChosenBy(claim *karpenterv1.NodeClaim) string {
	if names := s.links.nodesByProvider[claim.Status.ProviderID]; len(names) > 0 {
		return names[0]
	}
	if e := s.nodes[claim.Status.NodeName]; e != nil && compatible(e.object, claim) {
		return claim.Status.NodeName
	}
	return ""
}

// compatible reports whether the provider IDs allow the two to be one machine. A missing ID allows any.
func compatible(node *corev1.Node, claim *karpenterv1.NodeClaim) bool {
	return node.Spec.ProviderID == "" || claim.Status.ProviderID == "" ||
		node.Spec.ProviderID == claim.Status.ProviderID
}

func (s *Store) applyNode(node *corev1.Node) {
	fresh, e := sight(node), s.nodes[node.Name]
	if accepted, _ := s.accept(e.seen(), fresh); !accepted {
		return
	}
	t := newTouched()
	if e == nil {
		e = &nodeEntry{}
		s.nodes[node.Name] = e
	} else {
		s.unlinkNode(e.object, t)
	}
	e.sighting, e.object = fresh, node
	s.linkNode(node, t)
	s.refresh(t)
}

func (s *Store) removeNode(node *corev1.Node) {
	e := s.nodes[node.Name]
	if !s.ends(e.seen(), sight(node)) {
		return
	}
	t := newTouched()
	s.unlinkNode(e.object, t)
	delete(s.nodes, node.Name)
	delete(t.nodes, node.Name)
	s.setNode(e, nil, false)
	s.nominationsChanged(node.Name)
	s.refresh(t)
}

// refresh rebuilds the values of the nodes and claims that a change has touched.
func (s *Store) refresh(t touched) {
	for _, name := range slices.Sorted(maps.Keys(t.nodes)) {
		if e := s.nodes[name]; e != nil {
			s.refreshNode(e)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.claims)) {
		if e := s.claims[name]; e != nil {
			s.refreshClaim(e)
		}
	}
}

func (s *Store) refreshNode(e *nodeEntry) {
	from := translate.NodeSource{Node: e.object}
	claim := s.claimOf(e.object)
	switch {
	case s.othersNode(e.object, claim):
		from.Others = true
	case claim != nil:
		from = s.sourceOf(claim)
		from.Node = e.object
	}
	from.CSI, from.Limited, from.Stated = s.volumes.nodes[e.object.Name], s.volumes.known.Limited,
		s.volumes.known.Stated
	from.Needed = s.storage.needed
	value := translate.Node(s.space, from)
	l := s.loadOf(value.Name)
	value.Pods, value.Ports, value.Held = l.pods, l.ports, s.heldBy(l.pods)
	value.Used, value.Attached = s.usedOn(value, l)
	value.Coming = s.comingTo(value.Name)
	s.refreshen(value, claim)
	leaving := value.Deleting && !from.Others && s.config.Fleet.OwnsNode(e.object, nil, nil)
	was := e.bounded
	e.bounded = claim != nil && claim.object != nil &&
		claim.object.Annotations[karpenterv1.NodeClaimTerminationTimestampAnnotationKey] != ""
	if e.value == nil || e.leaving != leaving || !reflect.DeepEqual(e.value, value) {
		s.setNode(e, value, leaving)
	}
	if e.leaving && e.bounded != was {
		s.listPendingOn(e)
	}
}

// othersNode reports whether the node belongs to another program by its claim or pool. A node without either is
// nobody's and is not one of these.
func (s *Store) othersNode(node *corev1.Node, claim *claimEntry) bool {
	if claim != nil {
		return !s.config.Fleet.OwnsNode(node, claim.object, nil)
	}
	_, other := s.others[node.Labels[karpenterv1.NodePoolLabelKey]]
	return other
}

// setNode gives the entry a new value, nil for none. It updates the pods that are nominated to the claim if the claim
// changed, and the node's pods if leaving changed.
func (s *Store) setNode(e *nodeEntry, value *cluster.Node, leaving bool) {
	old, was := e.value, e.leaving
	s.machines.replace(old, value)
	e.value, e.leaving = value, leaving
	s.moveNodeRunning(old, value)
	s.sizesMoved(old, value)
	s.changed()
	s.reviseAttaching(e.object.Name)
	if old != nil && old.Claim != "" && (value == nil || value.Claim != old.Claim) {
		s.nominationsChanged(old.Claim)
	}
	if value != nil && value.Claim != "" && (old == nil || old.Claim != value.Claim) {
		s.nominationsChanged(value.Claim)
	}
	if was == leaving {
		return
	}
	s.listPendingOn(e)
}

// listPendingOn decides anew which of a node's pods count as pending.
func (s *Store) listPendingOn(e *nodeEntry) {
	for _, pod := range s.loadOf(e.object.Name).pods {
		s.listPending(s.pods[podKey{pod.Namespace, pod.Name}])
	}
}
