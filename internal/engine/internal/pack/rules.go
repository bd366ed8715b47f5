package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// rule is one constraint on where pods may be placed. Code that places or explains goes through the list of rules and
// knows none by name. A rule that has nothing to say to a question embeds the answer that says so (anyNode, anyOffer,
// anyPool, untied, unexplained). So a rule's author answers every question, and its head shows what the rule does not
// do.
type rule interface {
	// reads names the fields of cluster.Shape that the rule looks at.
	reads() []string

	// refuses says whether an existing node refuses the pods: Never, for this whole round, or Now. Yes is no refusal.
	// placedOn notes that they were placed there.
	refuses(s *solver, n *existing, a *attempt) topology.Verdict
	placedOn(s *solver, n *existing, a *attempt)

	// narrows removes from a.outlook, what a planned node would become, all that would refuse the pods. It says
	// whether enough is left. placedIn notes that they were placed there; n has then become what was left.
	narrows(s *solver, n *planned, a *attempt) topology.Verdict
	placedIn(s *solver, n *planned, a *attempt)

	// opens narrows the ways in which new nodes of a pool can take pods of the shape. What it removes is gone for the
	// whole round, so it is for what no placed pod changes.
	opens(s *solver, p *pool, info *shape, ways []way) []way

	// ties reports whether pods of the shape must be placed one by one, since each changes what the rule says of
	// the next.
	ties(info *shape) bool
	// alike appends to text what pods must have in common, beyond their ways, to be one group for the rule.
	alike(text []byte, info *shape) []byte

	// explains applies the rule to what earlier rules have left of a pool, for a pod without a place. If that leaves
	// nothing, it notes so and returns false. A rule that depends on pods and nodes rather than on offers suspects
	// itself.
	explains(s *solver, e *explainer) bool
}

// rules are all constraints, in the order in which a refusal is explained: what is wrong with the pod or the pool,
// then the filters of offers, then pods beside it. A planned node goes through them in the same order, so
// reservations, limits and minValues judge what the others leave.
var rules = listed(
	blockedRule{},     // Shape.Blocked
	deviceRule{},      // ResourceClaims
	poolRule{},        // the pool launches, and for pods
	taintRule{},       // taints and tolerations
	offerRule{},       // the pool's requirements, and what is available
	selectionRule{},   // node selector, node affinity, volumes
	stockRule{},       // reservations that are used up
	roomRule{},        // requests
	attachRule{},      // volumes that count once
	storageRule{},     // claims without a volume
	driverRule{},      // CSI drivers that pods may not be without
	brakeRule{},       // launches in vain
	passedOverRule{},  // nodes that the scheduler passed over
	daemonRule{},      // daemons that are still to come
	spotShareRule{},   // how much of a pool is spot
	topologyRule{},    // spread, pod affinity and anti-affinity
	portRule{},        // host ports
	reservationRule{}, // a node is in one reservation or in none
	commitmentRule{},  // a node is on one commitment or on none
	limitRule{},       // resource limits of the pool
	minValuesRule{},   // flexibility of the claim
	preferenceRule{},  // what pods would rather have
)

// ruleList is a list of rules, and of those that have something to say to a question.
type ruleList struct {
	all []rule
	// that may refuse an existing node, in any order: room first, since it refuses most
	existing []rule
	planned  []rule // that may narrow a planned node
	pools    []rule // that may narrow ways
}

func listed(all ...rule) ruleList {
	list := ruleList{all: all}
	for _, r := range all {
		if _, all := r.(interface{ takesAnyNode() }); !all {
			list.existing = append(list.existing, r)
		}
		if _, all := r.(interface{ takesAnyOffer() }); !all {
			list.planned = append(list.planned, r)
		}
		if _, all := r.(interface{ takesAnyPool() }); !all {
			list.pools = append(list.pools, r)
		}
	}
	if room := slices.Index(list.existing, rule(roomRule{})); room > 0 {
		list.existing = slices.Insert(slices.Delete(list.existing, room, room+1), 0, rule(roomRule{}))
	}
	if devices := slices.Index(list.existing, rule(deviceRule{})); devices >= 0 { // it costs most
		list.existing = append(slices.Delete(list.existing, devices, devices+1), deviceRule{})
	}
	return list
}

// anyNode is embedded by rules that refuse no existing node.
type anyNode struct{}

func (anyNode) takesAnyNode()                                         {}
func (anyNode) refuses(*solver, *existing, *attempt) topology.Verdict { return topology.Yes }
func (anyNode) placedOn(*solver, *existing, *attempt)                 {}

// anyOffer is embedded by rules that narrow no planned node.
type anyOffer struct{}

func (anyOffer) takesAnyOffer()                                       {}
func (anyOffer) narrows(*solver, *planned, *attempt) topology.Verdict { return topology.Yes }
func (anyOffer) placedIn(*solver, *planned, *attempt)                 {}

// anyPool is embedded by rules that leave all ways.
type anyPool struct{}

func (anyPool) takesAnyPool()                                        {}
func (anyPool) opens(_ *solver, _ *pool, _ *shape, ways []way) []way { return ways }

// untied is embedded by rules that need no pods to be placed one by one.
type untied struct{}

func (untied) ties(*shape) bool                   { return false }
func (untied) alike(text []byte, _ *shape) []byte { return text }

// unexplained is embedded by rules that leave no pod without a place, or only where another rule explains it.
type unexplained struct{}

func (unexplained) explains(*solver, *explainer) bool { return true }

// attempt is the question whether a node takes pods, on its way through the rules.
type attempt struct {
	info  *shape
	pods  []*cluster.Pod   // of this shape; several only where no rule ties it
	want  resources.Vector // what these request together
	index int              // of the node's bin

	// Of an existing node:
	devices cluster.Devices // what is left if the pods come there

	// Of either:
	more resources.Vector // what volumes take that other pods may bring too
	take take             // what the pods' new volumes take

	// Of a planned node:
	outlook                   // what it would become
	way      *way             // the alternative of node selection that is tried
	first    bool             // no pod is placed on it yet
	labels   requirement.Set  // demands that the claim would have to carry beside those of the way
	fixed    []fix            // decisions on labels
	cheapest int              // the first offer that limits allow
	holds    resources.Vector // what the plan would count against resource limits, if there are any
	again    retry            // of the rule that narrowed more than it must; nil for none
	waived   bool             // this is its retry
}

// retry tries a planned node once more after the rules left nothing of it, because one of them narrowed more than it
// must. It reports whether they now leave something that this rule lets pass.
type retry func(*solver, *planned, *attempt, *way) bool

// ask begins an attempt to place pods of one shape. There is one at a time, so its memory is used again.
func (s *solver) ask(pods []*cluster.Pod, info *shape) *attempt {
	a := &s.attempt
	a.info, a.pods, a.want = info, pods, info.Requests.Times(len(pods))
	return a
}

// askOne is ask for one pod.
func (s *solver) askOne(pod *cluster.Pod, info *shape) *attempt {
	s.one[0] = pod
	return s.ask(s.one[:], info)
}

// of prepares the attempt for a planned node and one of the ways. The rules set what else belongs to it. It is called
// for each node that a pod is tried on. So it writes only what differs, since writing pointers costs.
func (a *attempt) of(n *planned, w *way) {
	if cap(n.scratch) < len(n.offers) {
		n.scratch = make(catalog.Bits, len(n.offers))
	}
	a.offers = n.scratch[:len(n.offers)]
	copy(a.offers, n.offers)
	if a.pool != n.pool {
		a.pool = n.pool
	}
	if a.custom.Len()+n.custom.Len() > 0 {
		a.custom = n.custom
	}
	if a.labels.Len() > 0 {
		a.labels = requirement.Set{}
	}
	if len(a.fixed) > 0 {
		a.fixed = a.fixed[:0]
	}
	a.way, a.first, a.again, a.waived = w, len(n.pods) == 0, nil, false
}

// tryExisting places pods, all or none, on an existing node.
func (s *solver) tryExisting(index int, a *attempt) topology.Verdict {
	n := s.existing[index]
	a.index = index
	if verdict := s.refuses(n, a); verdict != topology.Yes {
		return verdict
	}
	s.placedOn(n, a)
	s.order = appendUIDs(s.order, a.pods)
	return topology.Yes
}

// refuses says whether some rule refuses pods on an existing node.
func (s *solver) refuses(n *existing, a *attempt) topology.Verdict {
	if n.closed {
		return topology.Never
	}
	n.settle(s.snapshot.Daemons)
	for _, r := range s.rules.existing {
		if verdict := r.refuses(s, n, a); verdict != topology.Yes {
			return verdict
		}
	}
	return topology.Yes
}

func (s *solver) placedOn(n *existing, a *attempt) {
	n.pods = append(n.pods, a.pods...)
	for _, r := range s.rules.existing {
		r.placedOn(s, n, a)
	}
}

// tryPlanned places pods, all or none, on a planned node. It needs a way in which the rules leave some offering that
// fits all pods of the node and these.
func (s *solver) tryPlanned(index int, a *attempt) topology.Verdict {
	verdict := s.weigh(index, a)
	if verdict == topology.Yes {
		s.placedIn(s.planned[index-len(s.existing)], a)
		s.order = appendUIDs(s.order, a.pods)
	}
	return verdict
}

// weigh says whether there is such a way for pods on a planned node. If so, the attempt holds what the node would
// become.
func (s *solver) weigh(index int, a *attempt) topology.Verdict {
	n, answer := s.planned[index-len(s.existing)], topology.Never
	a.index = index
	ways := a.info.ways[n.pool.index]
	for i := range ways {
		a.of(n, &ways[i])
		verdict := s.narrows(n, a)
		if verdict != topology.Yes && a.again != nil && a.again(s, n, a, &ways[i]) {
			verdict = topology.Yes
		}
		switch verdict {
		case topology.Yes:
			return topology.Yes
		case topology.Now:
			answer = topology.Now
		}
	}
	return answer
}

// narrows says whether the rules leave something of a planned node for pods.
func (s *solver) narrows(n *planned, a *attempt) topology.Verdict {
	for _, r := range s.rules.planned {
		if verdict := r.narrows(s, n, a); verdict != topology.Yes {
			return verdict
		}
	}
	return topology.Yes
}

func (s *solver) placedIn(n *planned, a *attempt) {
	old := n.offers
	n.outlook, n.scratch = a.outlook, nil
	if !a.first {
		n.scratch = old // the node's own; before the first pod it is the pool's
	}
	n.labels = n.labels.And(a.way.labels).And(a.labels)
	n.pods = append(n.pods, a.pods...)
	for _, r := range s.rules.planned {
		r.placedIn(s, n, a)
	}
}

func appendUIDs(list []string, pods []*cluster.Pod) []string {
	for _, pod := range pods {
		list = append(list, pod.UID)
	}
	return list
}

// opens returns the ways in which new nodes of a pool can take pods of the shape; nil when they never do.
func (s *solver) opens(p *pool, info *shape) []way {
	ways := []way{{offers: p.offers}}
	for _, r := range s.rules.pools {
		if ways = r.opens(s, p, info, ways); len(ways) == 0 {
			return nil
		}
	}
	return ways
}

// plain reports whether pods of the shape can be packed as a group: no rule ties them.
func (info *shape) plain() bool { return !info.tied }

// alike returns what pods must have in common to be one group, as text: what rules say, and the ways that they have
// left.
func (s *solver) alike(info *shape) string {
	var text []byte
	for _, r := range s.rules.all {
		text = r.alike(text, info)
	}
	return string(appendWays(text, info))
}
