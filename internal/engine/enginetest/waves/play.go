package waves

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Config is how a play goes. All times are in milliseconds.
type Config struct {
	// Plan plans for the snapshot's pending pods.
	Plan func(*cluster.Snapshot) plan.Plan
	Seed uint64
	// Launch is the least time that a machine takes until its node joins, Spread how much longer the slowest takes.
	Launch, Spread int64
	// Try is how long the scheduler takes for a pod.
	Try int64
	// Every is how long after a plan pending pods are planned for again, if something has changed.
	Every int64
	// Hold is how long a node that has joined is kept closed at most, until all of its plan have joined.
	Hold int64
	// Quiet is how long nothing must happen before further nodes are launched: no pod is bound, no node opens, and
	// none is on its way. PutOff is how long launches are put off at most, or longer if the pods that wait then take
	// longer at the pace of the scheduler. Slowest is the bound in any case.
	Quiet, PutOff, Slowest int64
	// Nominate lets the scheduler bind each pod where it was planned, if that still has room.
	Nominate bool
	// Keep returns the pods for which the scheduler keeps room on a node that opens, by claim and name. opens holds
	// the claims whose nodes open just then; now is in seconds. nil keeps none.
	Keep func(s *cluster.Snapshot, claim, node string, opens map[string]bool, now int64) []*cluster.Pod
	// Limit ends a play that does not come to rest.
	Limit int64
}

// Outcome is what a play came to.
type Outcome struct {
	Planned, Launched     int // nodes: of the first plan, and in all
	Waves                 int // plans that launched something
	PlannedPrice, Price   float64
	Elsewhere, Left, Pods int   // pods bound elsewhere than first planned, not bound at the end, and all
	Took                  int64 // until the last pod was bound
}

// String is a line for people.
func (o Outcome) String() string {
	return fmt.Sprintf(
		"planned %d for %.3f $/h, launched %d for %.3f $/h in %d waves, %d of %d pods elsewhere, %d left, %.1f s",
		o.Planned, o.PlannedPrice, o.Launched, o.Price, o.Waves, o.Elsewhere, o.Pods, o.Left, float64(o.Took)/1000)
}

// play is one course of events.
type play struct {
	Config
	Outcome
	start     *cluster.Snapshot
	scheduler *Scheduler
	dice      *rand.Rand
	now       int64

	nodes   []*coming
	queue   []*cluster.Pod // to be tried, the next one first
	waiting []*cluster.Pod // tried in vain since a node opened last
	bound   map[string]bool
	planned map[string]string // by UID: the node that the last plan has a pod on
	first   map[string]string // the same, of the first plan
	dirty   bool
	nextTry int64
	last    int64 // when a pod was bound or a node opened
	plans   int64 // when the next plan may be made
	off     int64 // since when launches are put off; -1 while they are not
	behind  int   // how many pods had a place and were not bound then
	caught  int   // how many were bound from then on
}

// coming is a node that was launched or there from the start.
type coming struct {
	node  *cluster.Node
	opens int64
	open  bool
}

// Play plans for the pending pods of a snapshot, and lets nodes open and the scheduler bind until nothing happens any
// more.
func Play(start *cluster.Snapshot, c Config) Outcome {
	p := &play{Config: c, start: start, dice: rand.New(rand.NewPCG(c.Seed, 1)), bound: map[string]bool{},
		planned: map[string]string{}, first: map[string]string{}, dirty: true, off: -1}
	p.scheduler = NewScheduler(p.dice, start.Namespaces)
	for _, node := range start.Nodes {
		p.nodes = append(p.nodes, &coming{node: node, open: true})
		p.scheduler.Open(node)
	}
	p.waiting, p.Pods = arrival(start.Pending, p.dice), len(start.Pending)
	for p.now < p.Limit && p.step() {
	}
	p.Left = len(p.queue) + len(p.waiting)
	return p.Outcome
}

// workers is how many workloads make their pods at the same time, as kube-controller-manager does.
const workers = 5

// arrival returns pods in the order in which they come into being: workload by workload, a few of these at the same
// time.
func arrival(pods []*cluster.Pod, dice *rand.Rand) []*cluster.Pod {
	var groups [][]*cluster.Pod
	at := map[*cluster.Shape]int{}
	ordered := slices.Clone(pods)
	slices.SortStableFunc(ordered, func(a, b *cluster.Pod) int { return cmp.Compare(a.Created, b.Created) })
	for _, pod := range ordered {
		i, known := at[pod.Shape]
		if !known {
			i = len(groups)
			at[pod.Shape], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], pod)
	}
	var order []*cluster.Pod
	for len(groups) > 0 {
		i := dice.IntN(min(workers, len(groups)))
		order = append(order, groups[i][0])
		if groups[i] = groups[i][1:]; len(groups[i]) == 0 {
			groups = slices.Delete(groups, i, i+1)
		}
	}
	return order
}

// step lets the next thing happen. It reports false when there is none.
func (p *play) step() bool {
	at, what := int64(-1), func() {}
	sooner := func(t int64, do func()) {
		if t = max(t, p.now); at < 0 || t < at {
			at, what = t, do
		}
	}
	for _, c := range p.nodes {
		if !c.open {
			sooner(c.opens, func() { p.openNode(c) })
		}
	}
	if len(p.queue) > 0 {
		sooner(p.nextTry, p.try)
	}
	if t, due := p.planAt(); due {
		sooner(t, p.plan)
	}
	if at < 0 {
		return false
	}
	p.now = at
	what()
	return true
}

func (p *play) openNode(c *coming) {
	var kept []*cluster.Pod
	if p.Keep != nil {
		kept = p.Keep(p.picture(), c.node.Claim, c.node.Name, nil, p.now/1000)
	}
	c.open, p.dirty, p.last = true, true, p.now
	p.scheduler.Open(c.node)
	for _, pod := range kept {
		p.scheduler.Nominate(pod.UID, pod.Shape, c.node.Name)
	}
	p.queue, p.waiting = append(p.queue, p.waiting...), nil
}

func (p *play) try() {
	pod := p.queue[0]
	p.queue, p.nextTry = p.queue[1:], p.now+p.Try
	target := p.scheduler.Confirm(pod.UID, pod.Shape)
	if target == "" && p.Nominate {
		target = p.scheduler.confirm(pod.Shape, p.planned[pod.UID])
	}
	if target == "" {
		target = p.scheduler.Place(pod.Shape)
	}
	p.dirty = true
	if target == "" {
		p.waiting = append(p.waiting, pod)
		return
	}
	if target != p.first[pod.UID] {
		p.Elsewhere++
	}
	p.scheduler.Bind(pod.Shape, target)
	p.bound[pod.UID], p.Took, p.last = true, p.now, p.now
	p.caught++
	for _, c := range p.nodes {
		if c.node.Name == target {
			own := *c.node
			own.Pods = append(slices.Clone(own.Pods), pod)
			own.Used = own.Used.Plus(pod.Shape.Requests)
			own.Ports = append(slices.Clone(own.Ports), pod.Shape.HostPorts...)
			c.node = &own
		}
	}
}

// confirm returns the node if it is open and takes the pod.
func (s *Scheduler) confirm(shape *cluster.Shape, name string) string {
	if n := s.byName[name]; n != nil && n.takes(shape) && s.tiesOf(shape).allow(n) {
		return name
	}
	return ""
}

// planAt returns when the next plan is made, if one is.
func (p *play) planAt() (int64, bool) {
	if !p.dirty || len(p.queue)+len(p.waiting) == 0 {
		return 0, false
	}
	return p.plans, true
}

// turn returns how much longer the scheduler has its turn before further nodes are launched.
func (p *play) turn(nominated int) int64 {
	if p.Quiet == 0 || p.Waves == 0 {
		return 0
	}
	if p.off < 0 {
		p.off, p.behind, p.caught = p.now, nominated, 0
	}
	if slices.ContainsFunc(p.nodes, func(c *coming) bool { return !c.open }) {
		p.last = p.now
	}
	most := p.PutOff
	if p.caught > 0 {
		most = max(most, min(p.Slowest, int64(p.behind)*(p.now-p.off)/int64(p.caught)))
	}
	return max(0, min(p.last+p.Quiet, p.off+most)-p.now)
}

// picture is the cluster at this moment.
func (p *play) picture() *cluster.Snapshot {
	parts := *p.start
	parts.Nodes, parts.Pending, parts.Repelling = nil, nil, nil
	for _, c := range p.nodes {
		node := c.node
		if !c.open {
			own := *node
			own.Initialized = false
			node = &own
		}
		parts.Nodes = append(parts.Nodes, node)
		for _, pod := range node.Pods {
			if len(pod.Shape.AntiAffinity) > 0 {
				parts.Repelling = append(parts.Repelling, pod)
			}
		}
	}
	for _, pod := range slices.Concat(p.queue, p.waiting) {
		own := *pod
		own.Promised = p.planned[pod.UID]
		parts.Pending = append(parts.Pending, &own)
	}
	return cluster.New(parts)
}

func (p *play) plan() {
	p.dirty, p.plans = false, p.now+p.Every
	result := p.Plan(p.picture())
	for _, n := range result.Nominations {
		p.planned[n.Pod.UID] = n.Node
	}
	p.launch(result)
}

// launch starts the launches of a plan.
func (p *play) launch(result plan.Plan) {
	if len(result.Launches) == 0 {
		p.off = -1
		return
	}
	if wait := p.turn(len(result.Nominations)); wait > 0 {
		p.dirty, p.plans = true, max(p.plans, p.now+min(wait, p.Quiet))
		return
	}
	p.off = -1
	p.Waves++
	var batch []*coming
	latest := int64(0)
	for _, l := range result.Launches {
		node := NodeOf(p.start.Pool(l.Pool), l, 0, fmt.Sprintf("node-%04d", len(p.nodes)))
		node.Created = p.now / 1000
		c := &coming{node: node, opens: p.now + p.Launch}
		if p.Spread > 0 {
			c.opens += p.dice.Int64N(p.Spread)
		}
		latest = max(latest, c.opens)
		p.nodes, batch = append(p.nodes, c), append(batch, c)
		p.Launched++
		p.Price += l.Cheapest.Price.Dollars()
		for _, pod := range l.Pods {
			p.planned[pod.UID] = node.Name
		}
	}
	for _, c := range batch {
		c.opens = min(latest, c.opens+p.Hold)
	}
	if p.Waves == 1 {
		p.Planned, p.PlannedPrice = p.Launched, p.Price
		for uid, node := range p.planned {
			p.first[uid] = node
		}
	}
}

// NodeOf returns the node that a launch becomes: of the given choice among its instance types (0: the cheapest), in
// the cheapest offering.
func NodeOf(pool *cluster.Pool, l plan.Launch, choice int, name string) *cluster.Node {
	index := pool.Catalog
	wanted := l.Types[choice%len(l.Types)]
	var offer catalog.Offer
	for i := range index.OfType(wanted).All() {
		o := index.Offers[i]
		if o.Available && l.Requirements.Get(catalog.LabelZone).Has(o.Zone) &&
			l.Requirements.Get(catalog.LabelCapacityType).Has(o.CapacityType) {
			offer = o
			break
		}
	}
	node := &cluster.Node{
		Name: name, Claim: name, Pool: l.Pool, Initialized: true, Taints: pool.Taints,
		Allocatable: index.Types[offer.Type].Allocatable, Price: offer.Sold().OfNode(), InstanceType: wanted,
		Labels: map[string]string{cluster.LabelHostname: name, cluster.LabelPool: l.Pool},
	}
	for r := range offer.Labels.All() {
		if value, single := r.Single(); single {
			node.Labels[string(r.Key())] = value
		}
	}
	for key, value := range l.Labels {
		node.Labels[key] = value
	}
	return node
}
