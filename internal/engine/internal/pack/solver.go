package pack

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/mix"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Solve places pods and returns the plan. The pods must be among the snapshot's pending ones.
func Solve(snapshot *cluster.Snapshot, pods []*cluster.Pod) plan.Plan {
	return solve(snapshot, pods, mix.Solve, leastFree)
}

// Sketch is [Solve] with less effort spent on the price of the nodes, for questions that are asked often.
func Sketch(snapshot *cluster.Snapshot, pods []*cluster.Pod) plan.Plan {
	return solve(snapshot, pods, mix.Sketch, leastFree)
}

// SketchByName is [Sketch] with pods on the first existing nodes, by name, that take them. If pods have room in this
// order too, that depends less on the order in which they come.
func SketchByName(snapshot *cluster.Snapshot, pods []*cluster.Pod) plan.Plan {
	return solve(snapshot, pods, mix.Sketch, firstName)
}

// AsScheduled is [Sketch] with pods on existing nodes as kube-scheduler may place them: one by one, on the node with
// most free. The smallest pods come first, since then most of the large ones find no place. It launches nodes for
// these.
func AsScheduled(snapshot *cluster.Snapshot, pods []*cluster.Pod) plan.Plan {
	return solve(snapshot, pods, mix.Sketch, mostFree)
}

func solve(snapshot *cluster.Snapshot, pods []*cluster.Pod, packing mix.Way, choice choice) plan.Plan {
	p := try(snapshot, pods, packing, trial{choice: choice})
	p, without := roomier(p, func(without map[prepaid]bool) plan.Plan {
		return try(snapshot, pods, packing, trial{without: without, choice: choice})
	})
	first := firstOf(p, pods)
	if first != nil {
		other := try(snapshot, pods, packing, trial{first: first, without: without, choice: choice})
		if better(other, p) {
			return other
		}
	}
	if len(p.Unplaced) > 0 && slices.ContainsFunc(pods, followsOthers) {
		other := try(snapshot, pods, packing, trial{first: first, without: without, choice: choice, stay: true})
		if better(other, p) {
			return other
		}
	}
	return p
}

type solver struct {
	snapshot   *cluster.Snapshot
	pools      []*pool
	existing   []*existing // the first bins
	planned    []*planned  // the bins after these
	rules      ruleList
	attempt    attempt         // memory of ask
	one        [1]*cluster.Pod // and of askOne
	topology   *topology.Tracker
	devices    cluster.Devices           // what the plan has left of them
	broken     map[*cluster.Shape]string // shapes on whose devices kube-scheduler gives up, and why
	storage    storage                   // what the plan has given away of it
	shapes     map[*cluster.Shape]*shape
	tied       []*cluster.Shape // with constraints on others
	byNode     map[string]int   // node and claim name → index of existing
	failed     []*cluster.Pod
	selected   map[selection][]way
	order      []string // UIDs of placed pods, as they were placed
	choices    map[string]*choices
	leavers    map[string]*leaver // by UID: pods to place that run on nodes which go
	asking     bool               // some taint is PreferNoSchedule
	packing    mix.Way            // finds cheap nodes for groups of pods
	first      map[string]bool    // UIDs of pods that are placed before all others (see again.go)
	care       care
	plainFirst bool   // see orders.go
	stay       bool   // see topology.go
	thrifty    bool   // see thrifty.go
	drafted    bool   // see draft.go
	hosts      hosts  // see hosts.go
	choice     choice // see tightest.go
	fits       []fit  // memory of inOrder
}

// shape is a kind of pod with what this round has found out about it.
type shape struct {
	*cluster.Shape
	topology *topology.Rules
	tied     bool     // some rule ties its pods: they are placed one by one
	ways     [][]way  // by pool, what the rules have left; nil where they refuse it
	afar     bool     // its anti-affinity, or a daemon's, reaches beyond the node: see repelledAfar
	refused  []bool   // by bin: final
	first    int      // no bin before this one need be asked
	apart    []string // terms by which its pods keep apart from each other, a node for each
	later    []bool   // by pool: a new node of it only when no other pool gives one; nil for none (see likings.go)
	likes    []liking // by existing bin; computed when it is first needed
}

func newSolver(snapshot *cluster.Snapshot, pods []*cluster.Pod, floors topology.Floors) *solver {
	s := &solver{snapshot: snapshot, rules: rules, shapes: map[*cluster.Shape]*shape{}, leavers: map[string]*leaver{},
		byNode: map[string]int{}, choices: map[string]*choices{}, selected: map[selection][]way{},
		asking: asks(snapshot), devices: snapshot.Devices, storage: newStorage(snapshot)}
	left, ceiling := newLeft(snapshot), snapshot.Ceiling()
	for i, p := range snapshot.Pools {
		s.pools = append(s.pools, newPool(i, p, snapshot.Daemons, left, &ceiling))
	}
	s.tied = s.constrained(pods)
	s.topology = topology.New(s.tied, snapshot.Namespaces)
	s.topology.SetFloors(floors)
	s.addNodes(pods)
	return s
}

// addNodes makes a bin of each node that may matter: of all nodes if constraints count them, else of those with room
// for what every pod requests at least. Most nodes of a large cluster are full, and not worth a bin.
func (s *solver) addNodes(pods []*cluster.Pod) {
	least := leastOf(pods)
	promised := slices.ContainsFunc(pods, func(p *cluster.Pod) bool { return p.Promised != "" })
	slab := make([]existing, 0, len(s.snapshot.Nodes))
	for _, node := range s.snapshot.Nodes {
		if node.Deleting || node.Disrupting || !s.topology.Constrained() && !node.HasRoom(least) {
			continue
		}
		slab = append(slab, existing{node: node})
		s.addNode(&slab[len(slab)-1], promised)
	}
	s.addLeaving(pods)
}

func (s *solver) addNode(n *existing, promised bool) {
	s.existing = append(s.existing, n)
	index, node := len(s.existing)-1, n.node
	if promised && node.Name != "" {
		s.byNode[node.Name] = index
	}
	if promised && node.Claim != "" {
		s.byNode[node.Claim] = index
	}
	if !s.topology.Constrained() {
		return
	}
	s.stand(s.topology, n)
}

// bins returns how many bins there are, and bin the one with an index. Existing nodes come first, then planned ones.
func (s *solver) bins() int { return len(s.existing) + len(s.planned) }

func (s *solver) bin(index int) *bin {
	if index < len(s.existing) {
		return &s.existing[index].bin
	}
	return &s.planned[index-len(s.existing)].bin
}

func (s *solver) info(c *cluster.Shape) *shape {
	if known, found := s.shapes[c]; found {
		return known
	}
	info := &shape{Shape: c, topology: s.topology.Rules(c), afar: s.repelledAfar(c)}
	info.tied = slices.ContainsFunc(s.rules.all, func(r rule) bool { return r.ties(info) })
	for _, p := range s.pools {
		info.ways = append(info.ways, s.opens(p, info))
	}
	for _, term := range apartBy(c) {
		info.apart = append(info.apart, term.String())
	}
	s.shapes[c] = info
	info.later = s.dislikes(info)
	s.offerDomains(info)
	return info
}

// selection is a question to solver.selection.
type selection struct {
	shape *cluster.Shape
	pool  *pool
}

// selection returns the ways in which new nodes of a pool satisfy the shape's node selection. It is computed once.
func (s *solver) selection(c *cluster.Shape, p *pool) []way {
	key := selection{c, p}
	if known, found := s.selected[key]; found {
		return known
	}
	ways := p.ways(c)
	s.selected[key] = ways
	return ways
}

// run places the pods: first those with a promise of an earlier plan, then by priority. Within a priority, tied pods
// come one by one and plain pods in groups. Pods spread over hostnames come last, since every opened node counts for
// them. If some pod that waits now is tied, all that wait now come before those that still run and will wait later.
func (s *solver) run(pods []*cluster.Pod) {
	order := slices.Clone(pods)
	if len(s.care.barred) > 0 {
		barred := func(pod *cluster.Pod) bool { return s.care.barred[pod.UID] }
		s.failed = slices.DeleteFunc(slices.Clone(pods), func(pod *cluster.Pod) bool { return !barred(pod) })
		order = slices.DeleteFunc(order, barred)
	}
	slices.SortStableFunc(order, compare)
	if s.choice == mostFree {
		slices.SortStableFunc(order, smallestFirst)
	}
	tied := func(pod *cluster.Pod) bool { return !s.leaving(pod) && !s.info(pod.Shape).plain() }
	if len(s.leavers) > 0 && slices.ContainsFunc(order, tied) {
		s.runOrder(slices.DeleteFunc(slices.Clone(order), s.leaving))
		order = slices.DeleteFunc(order, func(pod *cluster.Pod) bool { return !s.leaving(pod) })
	}
	s.letGo(s.topology)
	if s.drafted {
		order = s.runDraft(order)
	}
	s.runOrder(order)
}

// runOrder places pods in this order, class by class.
func (s *solver) runOrder(order []*cluster.Pod) {
	order, failed := s.placeFirst(slices.DeleteFunc(order, s.keepPromise))
	for len(order) > 0 {
		n := 1
		for n < len(order) && order[n].Priority == order[0].Priority {
			n++
		}
		failed = append(failed, s.runClass(order[:n])...)
		order = order[n:]
	}
	s.failed = append(s.failed, s.placeEach(failed)...)
}

// runClass places pods of one priority and returns those that found no place.
func (s *solver) runClass(pods []*cluster.Pod) []*cluster.Pod {
	if s.choice == mostFree {
		return s.placeEach(pods)
	}
	var tied, plain, late []*cluster.Pod
	for _, pod := range pods {
		switch {
		case s.info(pod.Shape).plain() && !comesAlone(pod):
			plain = append(plain, pod)
		case lateness(pod.Shape) == lastOfAll:
			late = append(late, pod)
		default:
			tied = append(tied, pod)
		}
	}
	var rest []*cluster.Pod
	if s.hosts.nodes > 0 {
		rest, late = s.placeLate(late), nil
	}
	if s.plainFirst {
		rest = append(rest, s.packLeaving(plain)...)
		rest = append(rest, s.placeEach(tied)...)
	} else {
		rest = append(rest, s.placeEach(tied)...)
		rest = append(rest, s.packLeaving(plain)...)
	}
	return append(s.placeEach(rest), s.placeEach(late)...)
}

// placeEach places pods one by one, in passes, and returns those that found no place.
func (s *solver) placeEach(pods []*cluster.Pod) []*cluster.Pod {
	waiting := pods
	for {
		var rest []*cluster.Pod
		for _, pod := range waiting {
			if !s.placeOne(pod) {
				rest = append(rest, pod)
			}
		}
		if len(rest) == len(waiting) || !slices.ContainsFunc(rest, s.mayComeLater) {
			return rest
		}
		waiting = rest
	}
}

// compare orders pods for placing. Higher priority comes first, as with kube-scheduler. Then come pods without
// constraints on others, pods that follow others (affinity), and pods that are spread, which count all of these. Pods
// spread over hostnames come last, because every opened node may change their minimum. Then come larger pods before
// smaller ones, and equals in a fixed order.
func compare(a, b *cluster.Pod) int {
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority),
		cmp.Compare(lateness(a.Shape), lateness(b.Shape)),
		compareSize(b.Shape.Requests, a.Shape.Requests),
		strings.Compare(a.Shape.Key(), b.Shape.Key()),
		cmp.Compare(a.Created, b.Created),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID),
	)
}

// smallestFirst orders pods that are placed as kube-scheduler may have them (see AsScheduled).
func smallestFirst(a, b *cluster.Pod) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), compareSize(a.Shape.Requests, b.Shape.Requests))
}

func compareSize(a, b resources.Vector) int {
	for i := range max(len(a), len(b)) {
		if c := cmp.Compare(a.At(i), b.At(i)); c != 0 {
			return c
		}
	}
	return 0
}

// keepPromise places a pod where an earlier plan placed it, if it still fits there (P-23).
func (s *solver) keepPromise(pod *cluster.Pod) bool {
	if pod.Promised == "" {
		return false
	}
	index, found := s.byNode[pod.Promised]
	return found && s.moved(pod, func(info *shape) bool {
		return s.tryExisting(index, s.askOne(pod, info)) == topology.Yes
	})
}

// placeInBins places the pod in the first bin that takes it: existing capacity first, then nodes planned so far.
func (s *solver) placeInBins(pod *cluster.Pod, info *shape) bool {
	for len(info.refused) < s.bins() {
		info.refused = append(info.refused, false)
	}
	a := s.askOne(pod, info)
	if s.placeInExisting(a) {
		return true
	}
	for _, later := range info.sweeps() {
		for i := max(info.first, len(s.existing)); i < s.bins(); i++ {
			if info.refused[i] || info.isLater(s.planned[i-len(s.existing)].pool) != later {
				continue
			}
			if info.note(i, s.tryPlanned(i, a)) {
				return true
			}
		}
	}
	return false
}

// placeInExisting places the pod of an attempt on the existing node where least stays free, or the first that takes
// it.
func (s *solver) placeInExisting(a *attempt) bool {
	info := a.info
	for len(info.refused) < len(s.existing) {
		info.refused = append(info.refused, false)
	}
	if s.choosy() {
		if placed, rest := s.placeTightest(a); !rest {
			return placed
		}
	}
	for i := info.first; i < len(s.existing); i++ {
		if !info.refused[i] && info.note(i, s.tryExisting(i, a)) {
			return true
		}
	}
	return false
}

// note remembers it if a bin refuses the shape for good, and reports whether the bin took a pod.
func (info *shape) note(index int, verdict topology.Verdict) bool {
	if verdict == topology.Never {
		info.refused[index] = true
		for info.first < len(info.refused) && info.refused[info.first] {
			info.first++
		}
	}
	return verdict == topology.Yes
}
