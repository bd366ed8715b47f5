package enginetest

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// Check returns every rule that the plan breaks, in words: nil for a valid plan. It is deliberately naive. It builds
// the nodes that the plan leads to, with what runs already. Then it binds the pods where they were planned, one at a
// time (see bindAll), and judges each by the rules of kube-scheduler at that moment. It shares no code with the
// packer. choice picks which of its types each launch becomes.
func Check(before *cluster.Snapshot, p plan.Plan, choice int) []string {
	after := Applied(before, p, choice)
	c := checker{after: after, going: going(before), placed: map[string]bool{}, known: map[string]bool{},
		bound: map[*cluster.Node][]*cluster.Pod{}, there: map[string]bool{}}
	for _, node := range before.Nodes {
		c.there[node.ID()] = true
	}
	c.accounts(before, p)
	lost := c.broken
	c.bindAll(p.Order)
	c.broken = append(lost, c.broken...)
	c.reservations(before)
	c.ceiling(before)
	for _, l := range p.Launches {
		c.choice(before.Pool(l.Pool), l)
	}
	for _, pool := range after.Pools {
		if pool.Used.Nodes > before.Pool(pool.Name).Used.Nodes {
			c.limits(pool)
		}
	}
	return c.broken
}

type checker struct {
	after  *cluster.Snapshot
	going  []*cluster.Node // whose pods count until they have left, see leaving.go
	placed map[string]bool // by UID
	known  map[string]bool // by UID: the plan is about them
	bound  map[*cluster.Node][]*cluster.Pod
	there  map[string]bool // by ID: nodes that are no launches of the plan
	broken []string
}

// placement is a pod and where it was planned.
type placement struct {
	pod  *cluster.Pod
	node *cluster.Node
}

// orders bounds how many orders of binding are tried beside the plan's own.
const orders = 20

// bindAll binds the placed pods: at each step the first, in the plan's order, that the rules admit. When that gets
// stuck other orders are tried, as the scheduler's retries would. It notes what refuses a pod in every order.
func (c *checker) bindAll(order []string) {
	running, waiting := map[*cluster.Node][]*cluster.Pod{}, []placement(nil)
	for _, node := range c.after.Nodes {
		if node.Deleting || node.Disrupting {
			continue // its pods are bound where they go
		}
		for _, pod := range node.Pods {
			if c.placed[pod.UID] {
				waiting = append(waiting, placement{pod, node})
			} else {
				running[node] = append(running[node], pod)
			}
		}
	}
	for _, node := range c.going {
		running[node] = slices.Clone(node.Pods)
	}
	rank := map[string]int{}
	for i, uid := range order {
		rank[uid] = i
	}
	slices.SortStableFunc(waiting, func(a, b placement) int { return cmp.Compare(rank[a.pod.UID], rank[b.pod.UID]) })
	source := rand.New(rand.NewPCG(1, 1))
	for range orders {
		c.bound = map[*cluster.Node][]*cluster.Pod{}
		for node, pods := range running {
			c.bound[node] = slices.Clone(pods)
		}
		now, later := c.split(waiting)
		stuck := c.bindInOrder(now)
		c.letGo()
		stuck = append(stuck, c.bindInOrder(later)...)
		if stuck == nil {
			c.broken = nil
			return
		}
		if c.broken == nil { // what the plan's own order leads to explains best
			for _, p := range stuck {
				c.broken = append(c.broken, c.refusals(p)...)
			}
		}
		shuffleByShape(source, waiting)
	}
}

// shuffleByShape puts the pods into another order, those of one shape together: constraints tie kinds of pods to each
// other, so it is the order of the kinds that matters.
func shuffleByShape(source *rand.Rand, waiting []placement) {
	rank := map[*cluster.Shape]int{}
	for _, p := range waiting {
		if _, known := rank[p.pod.Shape]; !known {
			rank[p.pod.Shape] = source.IntN(1 << 30)
		}
	}
	slices.SortStableFunc(waiting,
		func(a, b placement) int { return cmp.Compare(rank[a.pod.Shape], rank[b.pod.Shape]) })
}

// bindInOrder binds the first pod that may be bound, again and again, and returns what is stuck in the end.
func (c *checker) bindInOrder(order []placement) []placement {
	waiting := slices.Clone(order)
	for len(waiting) > 0 {
		i := slices.IndexFunc(waiting, func(p placement) bool { return c.refusals(p) == nil })
		if i < 0 {
			return waiting
		}
		p := waiting[i]
		c.leave(p.pod)
		c.bound[p.node] = append(c.bound[p.node], p.pod)
		waiting = slices.Delete(waiting, i, i+1)
	}
	return nil
}

// refusals returns why the pod may not be bound now, nil when it may.
func (c *checker) refusals(p placement) []string {
	try := checker{after: c.after, going: c.going, bound: c.bound, there: c.there}
	if c.leaves(p.pod) {
		try.bound = maps.Clone(c.bound)
		try.leave(p.pod)
	}
	try.pod(p.node, p.pod)
	return try.broken
}

func (c *checker) fail(format string, args ...any) {
	c.broken = append(c.broken, fmt.Sprintf(format, args...))
}

// accounts: every pending pod is nominated, launched for or unplaced, exactly once.
func (c *checker) accounts(before *cluster.Snapshot, p plan.Plan) {
	count := map[string]int{}
	for _, n := range p.Nominations {
		count[n.Pod.UID]++
		c.placed[n.Pod.UID] = true
	}
	for _, l := range p.Launches {
		for _, pod := range l.Pods {
			count[pod.UID]++
			c.placed[pod.UID] = true
		}
	}
	for _, u := range p.Unplaced {
		count[u.Pod.UID]++
		if u.String() == "" {
			c.fail("%s is unplaced without a reason", u.Pod)
		}
	}
	for _, pod := range before.Pending {
		c.known[pod.UID] = true
		if count[pod.UID] != 1 {
			c.fail("%s appears %d times in the plan", pod.Ref(), count[pod.UID])
		}
	}
}

func (c *checker) pod(node *cluster.Node, pod *cluster.Pod) {
	if !selects(pod.Shape, node) {
		c.fail("%s: node selection refuses %s %v", pod.Ref(), node.ID(), node.Labels)
	}
	if taint, bad := cluster.Untolerated(node.Taints, pod.Shape.Tolerations); bad {
		c.fail("%s: does not tolerate %s of %s", pod.Ref(), taint, node.ID())
	}
	sum := pod.Shape.Requests
	for _, other := range c.bound[node] {
		sum = sum.Plus(other.Shape.Requests)
		for _, a := range pod.Shape.HostPorts {
			for _, b := range other.Shape.HostPorts {
				if a.Port == b.Port && a.Protocol == b.Protocol {
					c.fail("%s: port %d is taken on %s by %s", pod.Ref(), a.Port, node.ID(), other.Ref())
				}
			}
		}
	}
	if short := sum.Short(node.Allocatable); short >= 0 {
		c.fail("%s: %s is short: %d requested, %d allocatable", node.ID(), c.after.Names[short], sum[short],
			node.Allocatable.At(short))
	}
	c.volumes(node, pod)
	c.apart(node, pod)
	c.together(node, pod)
	for _, s := range pod.Shape.Spread {
		c.spread(node, pod, s)
	}
}

func selects(s *cluster.Shape, node *cluster.Node) bool {
	for _, alternative := range s.Alternatives {
		if alternative.Names.Has(node.Name) && alternative.Labels.Matches(node.Labels) {
			return true
		}
		if node.Name == "" && node.Admits(s) {
			return true
		}
	}
	return len(s.Alternatives) == 0
}

// ceiling: no more nodes in the whole cluster than it may have, unless there were too many before (K-53).
func (c *checker) ceiling(before *cluster.Snapshot) {
	was, is := before.Ceiling(), c.after.Ceiling()
	if was.Most != 0 && is.Used > was.Used && is.Used > was.Most {
		c.fail("%d nodes in a cluster that may have %d", is.Used, was.Most)
	}
	if was.HardMost != 0 && is.Claims > was.Claims && is.Claims > was.HardMost {
		c.fail("%d NodeClaims in a cluster that may have %d", is.Claims, was.HardMost)
	}
}

func (c *checker) limits(pool *cluster.Pool) {
	l := pool.Limits
	if l.HardNodes >= 0 && pool.Used.Nodes > l.HardNodes {
		c.fail("pool %s: %d nodes at a hard limit of %d", pool.Name, pool.Used.Nodes, l.HardNodes)
	}
	if l.HardNodes < 0 && l.SoftNodes >= 0 && pool.Used.Nodes > l.SoftNodes {
		c.fail("pool %s: %d nodes at a soft limit of %d", pool.Name, pool.Used.Nodes, l.SoftNodes)
	}
	for i, limited := range l.Limited {
		if limited && pool.Used.Capacity.At(i) > l.Resources[i] {
			c.fail("pool %s: %s is %d at a limit of %d", pool.Name, c.after.Names[i], pool.Used.Capacity.At(i),
				l.Resources[i])
		}
	}
}

// choice: a claim has as many values of a label as its pool insists on (P-09).
func (c *checker) choice(pool *cluster.Pool, l plan.Launch) {
	if pool.RelaxMinValues {
		return
	}
	for _, demand := range pool.MinValues {
		if !pool.Catalog.Known(demand.Key) {
			continue
		}
		values := map[string]bool{}
		for _, o := range pool.Catalog.Offers {
			if !o.Available || !slices.Contains(l.Types, pool.Catalog.Types[o.Type].Name) {
				continue
			}
			if listed, finite := o.Labels.Get(demand.Key).Values(); finite && admits(pool, l, o) {
				for _, value := range listed {
					values[value] = true
				}
			}
		}
		if len(values) < demand.Count || l.Relaxed != nil {
			c.fail("pool %s insists on %d values of %s, a claim has %d", pool.Name, demand.Count, demand.Key,
				len(values))
		}
	}
}

// admits reports whether a launch, types aside, leaves an offer open.
func admits(pool *cluster.Pool, l plan.Launch, o catalog.Offer) bool {
	for r := range l.Requirements.All() {
		is := requirement.Absent(r.Key())
		if o.Labels.Holds(r.Key()) {
			is = o.Labels.Get(r.Key())
		}
		if pool.Catalog.Known(r.Key()) && !is.Intersects(r) {
			return false
		}
	}
	return true
}

// reservations: no more nodes than an offering covers, unless there were too many before (P-11).
func (c *checker) reservations(before *cluster.Snapshot) {
	for _, pool := range c.after.Pools {
		for _, o := range pool.Catalog.Offers {
			was, is := standIn(before, o.Labels), standIn(c.after, o.Labels)
			if o.Reservation > 0 && is > was && is > o.Reservation {
				c.fail("%d nodes in a reservation of %d: %s", is, o.Reservation, o.Labels)
			}
		}
	}
}

func standIn(s *cluster.Snapshot, labels requirement.Set) int {
	n := 0
	for _, node := range s.Nodes {
		if labels.Matches(node.Labels) {
			n++
		}
	}
	return n
}

// matches reports whether a term is about the pod.
func (c *checker) matches(term cluster.AffinityTerm, pod *cluster.Pod) bool {
	in := term.NamespaceSelector.Matches(c.after.Namespaces[pod.Namespace])
	for _, namespace := range term.Namespaces {
		in = in || namespace == pod.Namespace
	}
	return in && term.Pods.Matches(pod.Shape.Labels)
}

// others calls f for every bound pod.
func (c *checker) others(f func(*cluster.Node, *cluster.Pod)) {
	for _, node := range c.standing() {
		for _, other := range c.bound[node] {
			f(node, other)
		}
	}
}

func sameDomain(key string, a, b *cluster.Node) bool {
	x, inA := a.Labels[key]
	y, inB := b.Labels[key]
	return inA && inB && x == y
}

func (c *checker) apart(node *cluster.Node, pod *cluster.Pod) {
	c.others(func(at *cluster.Node, other *cluster.Pod) {
		for _, term := range pod.Shape.AntiAffinity {
			if sameDomain(term.Key, node, at) && c.matches(term, other) {
				c.fail("%s: its anti-affinity over %s forbids %s", pod.Ref(), term.Key, other.Ref())
			}
		}
		for _, term := range other.Shape.AntiAffinity {
			if sameDomain(term.Key, node, at) && c.matches(term, pod) {
				c.fail("%s: the anti-affinity of %s over %s forbids it", pod.Ref(), other.Ref(), term.Key)
			}
		}
	})
}

func (c *checker) together(node *cluster.Node, pod *cluster.Pod) {
	if len(pod.Shape.Affinity) == 0 {
		return
	}
	all := func(other *cluster.Pod) bool {
		for _, term := range pod.Shape.Affinity {
			if !c.matches(term, other) {
				return false
			}
		}
		return true
	}
	found, anywhere := make([]bool, len(pod.Shape.Affinity)), false
	c.others(func(at *cluster.Node, other *cluster.Pod) {
		if !all(other) {
			return
		}
		for i, term := range pod.Shape.Affinity {
			_, has := at.Labels[term.Key]
			anywhere = anywhere || has
			found[i] = found[i] || sameDomain(term.Key, node, at)
		}
	})
	for i, term := range pod.Shape.Affinity {
		if _, has := node.Labels[term.Key]; !has || !found[i] && (anywhere || !all(pod)) {
			c.fail("%s: its affinity over %s finds nobody near %s", pod.Ref(), term.Key, node.ID())
		}
	}
}

// spread: with the pod, its domain is at most maxSkew ahead of the emptiest domain that exists.
func (c *checker) spread(node *cluster.Node, pod *cluster.Pod, s cluster.Spread) {
	counts := map[string]int32{}
	for _, at := range c.standing() {
		value, has := at.Labels[s.Key]
		_, bad := cluster.Untolerated(at.Taints, pod.Shape.Tolerations)
		for _, other := range pod.Shape.Spread {
			_, all := at.Labels[other.Key]
			has = has && all
		}
		if !has || !s.IgnoreAffinity && !selects(pod.Shape.Selecting(), at) || s.HonorTaints && bad {
			continue
		}
		counts[value] += 0
		for _, other := range c.bound[at] {
			if other.Namespace == pod.Namespace && s.Pods.Matches(other.Shape.Labels) && !other.Terminating {
				counts[value]++
			}
		}
	}
	lowest := int32(0)
	if int32(len(counts)) >= s.MinDomains {
		lowest = 1 << 30
		for _, n := range counts {
			lowest = min(lowest, n)
		}
	}
	self := int32(0)
	if s.Pods.Matches(pod.Shape.Labels) {
		self = 1
	}
	if value, has := node.Labels[s.Key]; !has || counts[value]+self-lowest > s.MaxSkew {
		c.fail("%s: spread over %s: %d in %q, %d in the emptiest, maxSkew %d", pod.Ref(), s.Key, counts[value], value,
			lowest, s.MaxSkew)
	}
}
