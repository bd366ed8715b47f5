package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Parse reads a cluster. Lines may come in any order, except that nodes name a type above them, and pods a node above
// them. An error quotes the line.
func Parse(input string) (*cluster.Snapshot, error) { return ParseWith(resources.NewSpace(), input) }

// ParseWith is Parse with resources whose components are known already.
func ParseWith(space *resources.Space, input string) (snapshot *cluster.Snapshot, err error) {
	defer func() {
		if stop, ok := recover().(scriptError); ok {
			err = fmt.Errorf("%s", string(stop))
		}
	}()
	p := &parser{space: space, shapes: cluster.NewShapes(), nodes: map[string]*cluster.Node{},
		coming: map[*cluster.Pod]*cluster.Node{}}
	p.parts.Namespaces = map[string]map[string]string{"default": {}}
	p.parts.Version = 1
	for _, line := range strings.Split(input, "\n") {
		p.line(line)
	}
	return p.finish(), nil
}

type parser struct {
	space  *resources.Space
	shapes *cluster.Shapes
	types  []catalog.Type
	pools  []*cluster.Pool
	nodes  map[string]*cluster.Node
	pods   []*cluster.Pod
	coming map[*cluster.Pod]*cluster.Node
	parts  cluster.Snapshot
	// devices is what the script says of devices; nil for nothing.
	devices *devices
}

func (p *parser) line(line string) {
	words := strings.Fields(line)
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return
	}
	if len(words) < 2 {
		newAttributes(line, nil).fail("want a kind and a name")
	}
	kinds := map[string]func(string, *attributes){
		"type": p.instanceType, "pool": p.pool, "node": p.node, "claim": p.claim, "pod": p.pod, "buffer": p.buffer,
		"daemon": p.daemon, "namespace": p.namespace, "pdb": p.guard, "limit": p.ceiling, "commitment": p.commitment,
		"devices": p.devicesOn, "resourceclaim": p.resourceClaim,
		"capacity": p.capacity, "volume": p.freeVolume,
	}
	kind, known := kinds[words[0]]
	if !known {
		newAttributes(line, nil).fail(
			"a line starts with type, pool, node, claim, pod, buffer, daemon, namespace, pdb, limit, commitment, devices, " +
				"resourceclaim, capacity or volume")
	}
	for _, name := range expand(words[1]) {
		a := newAttributes(line, words[2:])
		kind(name, a)
		a.done()
	}
}

// expand turns web-0..2 into web-0, web-1, web-2.
func expand(name string) []string {
	start, end, ranged := strings.Cut(name, "..")
	if !ranged {
		return []string{name}
	}
	digits := len(start) - len(strings.TrimRight(start, "0123456789"))
	stem := start[:len(start)-digits]
	low, _ := strconv.Atoi(start[len(start)-digits:])
	high, _ := strconv.Atoi(end)
	var names []string
	for n := low; n <= high; n++ {
		names = append(names, stem+strconv.Itoa(n))
	}
	return names
}

// ceiling is the limit of the whole cluster (K-53).
func (p *parser) ceiling(name string, a *attributes) {
	if name != "cluster" {
		a.fail("want limit cluster: those of pools are attributes of the pool")
	}
	p.parts.MaxNodes, p.parts.Unseen = a.number("nodes", 0), a.number("unseen", 0)
	p.parts.MaxClaims = a.number("claims", 0)
	p.parts.ClaimsUnknown = strings.ReplaceAll(a.get("unknown", ""), "_", " ")
	if p.parts.MaxNodes < 0 || p.parts.Unseen < 0 || p.parts.MaxClaims < 0 {
		a.fail("nodes, unseen and claims are 0 or more")
	}
}

// commitment is paid for whether nodes use it or not (K-55).
func (p *parser) commitment(name string, a *attributes) {
	c := cluster.Commitment{Name: name, Requirements: a.requirements(a.get("need", "")),
		PerHour: a.money(a.get("hourly", "0")), Instances: a.number("instances", 0)}
	if (c.PerHour > 0) == (c.Instances > 0) || c.Instances < 0 {
		a.fail("want either hourly=, dollars per hour, or instances=, a number, above 0")
	}
	p.parts.Commitments = append(p.parts.Commitments, c)
}

func (p *parser) namespace(name string, a *attributes) {
	p.parts.Namespaces[name] = a.labels(a.get("labels", ""))
}

// guard is a PodDisruptionBudget.
func (p *parser) guard(name string, a *attributes) {
	p.parts.Guards = append(p.parts.Guards, cluster.Guard{
		Namespace: a.get("ns", "default"), Name: name, AtOnce: int(a.number("at-once", 1)),
		Pods: cluster.Selector{Enabled: true, Labels: requirement.FromLabels(a.labels(a.get("of", "")))},
	})
}

func (p *parser) instanceType(name string, a *attributes) {
	zones, unavailable := list(a.get("zones", "a")), list(a.get("unavailable", ""))
	labels := a.labels(a.get("labels", ""))
	labels[longName("arch")], labels[longName("os")] = a.get("arch", "amd64"), a.get("os", "linux")
	t := catalog.Type{Name: name, Labels: requirement.FromLabels(labels), Overhead: a.amounts(nil)}
	for _, capacityType := range []string{catalog.OnDemand, catalog.Spot, catalog.Reserved} {
		short := map[string]string{catalog.OnDemand: "od", catalog.Spot: "spot",
			catalog.Reserved: "reserved"}[capacityType]
		price := a.get(short, "")
		if price == "" {
			continue
		}
		for _, zone := range zones {
			t.Offerings = append(t.Offerings, catalog.Offering{
				Zone: zone, CapacityType: capacityType, Price: a.money(a.get(short+"."+zone, price)),
				Available:   !slices.Contains(unavailable, zone) && !slices.Contains(unavailable, zone+"/"+short),
				Reservation: map[bool]int{true: int(a.number("reservation", 0))}[capacityType == catalog.Reserved],
			})
		}
	}
	a.has("reservation") // also where nothing is reserved
	if a.has("reserved-for-system") {
		t.Overhead[resources.NameCPU] = a.milli(a.get("reserved-for-system", "0"))
	}
	for name, amount := range a.amounts(a.prefixed("system.")) {
		t.Overhead[name] = amount
	}
	t.Capacity = a.amounts(a.rest())
	if _, given := t.Capacity[resources.NamePods]; !given {
		t.Capacity[resources.NamePods] = 110
	}
	p.types = append(p.types, t)
}

func (p *parser) pool(name string, a *attributes) {
	pool := &cluster.Pool{
		Name: name, UID: "uid-of-" + name, Weight: int32(a.number("weight", 0)),
		Blocked: strings.ReplaceAll(a.get("blocked", ""), "_", " "), Limits: limit.Unlimited(), Taints: p.taints(a),
	}
	pool.Requirements = a.requirements(a.get("need", "")).And(requirement.FromLabels(a.labels(a.get("labels", "")))).
		With(requirement.OneOf(requirement.Key(cluster.LabelPool), name))
	pool.LocalVolumes = a.has("local-volumes")
	pool.RelaxMinValues, pool.ExpiresGracefully = a.has("relax"), a.has("graceful-expiration")
	pool.TerminateFirst, pool.NoneFirst = a.has("terminate-first"), a.has("none-first")
	pool.Invalid, pool.Dormant, pool.Gentle, pool.Held = a.has("invalid"), a.has("dormant"), a.has("gentle"),
		a.has("held")
	pool.PriceTolerance = int(a.number("tolerance", 0))
	pool.NodeOverheadPrice = a.money(a.get("overhead", "0"))
	pool.MinNodes = a.number("min-nodes", 0)
	pool.OnDemandPercent = 100 - int(a.number("spot-ratio", 100))
	pool.Static, pool.Replicas = a.has("replicas"), a.number("replicas", 0)
	policy := a.get("consolidate", "underutilized")
	known := map[string]cluster.Consolidation{"underutilized": cluster.WhenUnderutilized, "empty": cluster.WhenEmpty,
		"balanced": cluster.Balanced}
	if _, found := known[policy]; !found {
		a.fail("consolidate=%s: want underutilized, empty or balanced", policy)
	}
	pool.Consolidates = known[policy]
	pool.Limits.SoftNodes = a.number("nodes", limit.None)
	pool.Limits.HardNodes = a.number("hard.nodes", limit.None)
	for _, demand := range list(a.get("minvalues", "")) {
		key, count, _ := strings.Cut(demand, ":")
		pool.MinValues = append(pool.MinValues, cluster.MinValues{Key: requirement.Key(longName(key)),
			Count: int(a.integer(count))})
	}
	for name, amount := range a.amounts(a.prefixed("limit.")) {
		pool.Limits = pool.Limits.With(p.space.Index(name), amount)
	}
	p.pools = append(p.pools, pool)
}

func (p *parser) taints(a *attributes) []cluster.Taint {
	var taints []cluster.Taint
	for _, text := range a.all("taint") {
		key, effect, found := strings.Cut(text, ":")
		if !found {
			a.fail("taint=%s: want key[=value]:effect", text)
		}
		key, value, _ := strings.Cut(key, "=")
		taints = append(taints, cluster.Taint{Key: key, Value: value, Effect: effect})
	}
	return taints
}

// node reads an existing node; claim one that is on its way.
func (p *parser) node(name string, a *attributes) {
	n := p.anyNode(name, a)
	n.Name = name
	if n.Pool != "" {
		n.Claim = name + "-claim"
	}
	n.Labels[cluster.LabelHostname] = name
	p.nodes[name] = n
}

func (p *parser) claim(name string, a *attributes) {
	n := p.anyNode(name, a)
	n.Claim, n.Initialized, n.Registered, n.Launched = name, false, false, !a.has("open") && !a.has("unlaunched")
	n.Open = a.requirements(a.get("open", ""))
	for r := range n.Open.All() {
		delete(n.Labels, string(r.Key()))
	}
	p.nodes[name] = n
}

func (p *parser) anyNode(name string, a *attributes) *cluster.Node {
	n := &cluster.Node{
		ClaimUID: "uid-of-" + name, Pool: a.get("pool", ""), Taints: p.taints(a),
		Labels:   a.labels(a.get("labels", "")),
		Deleting: a.has("deleting"), Disrupting: a.has("disrupting") || a.has("rebooting"),
		Rebooting: a.has("rebooting"), NotReady: a.has("not-ready"),
		DoNotDisrupt: a.has("do-not-disrupt"),
		DrainEnds:    a.has("drain-ends"), Fresh: a.has("fresh"), Attached: list(a.get("attached", "")),
		Drivers:  list(a.get("drivers", "")),
		Launched: true, Registered: true, Held: strings.ReplaceAll(a.get("held", ""), "_", " "),
		Foreign: a.has("foreign"), Drifted: a.has("drifted"), Expired: a.has("expired"),
		Replaces: list(a.get("replaces", "")), Replaced: a.has("replaced"),
		Together: int(a.number("together", 0)), RegisteredAt: a.number("joined", 0),
		Created: a.number("created", 0), ConsolidatableAt: a.number("quiet-at", 0), Price: resources.Unpriced,
		Initialized: !a.has("new") && !a.has("open"),
	}
	if n.Pool != "" {
		n.Labels[cluster.LabelPool] = n.Pool
	}
	if zone := a.get("zone", ""); zone != "" {
		n.Labels[longName("zone")] = zone
	}
	if name := a.get("type", ""); name != "" {
		i := slices.IndexFunc(p.types, func(t catalog.Type) bool { return t.Name == name })
		if i < 0 {
			a.fail("no type %s above", name)
		}
		p.fromType(n, p.types[i], a.get("capacity", ""))
	} else {
		n.Allocatable = p.space.Vector(a.amounts(a.rest())).With(resources.Pods, 110)
	}
	return n
}

func (p *parser) fromType(n *cluster.Node, t catalog.Type, capacity string) {
	n.InstanceType = t.Name
	n.Labels[longName("type")] = t.Name
	for r := range t.Labels.All() {
		if value, single := r.Single(); single {
			n.Labels[string(r.Key())] = value
		}
	}
	n.Allocatable = p.space.Vector(t.Capacity).Minus(p.space.Vector(t.Overhead))
	n.Price = t.Offerings[0].Price.OfNode()
	for _, o := range t.Offerings {
		if o.CapacityType == capacity {
			n.Price = o.Price.OfNode()
			n.Labels[longName("capacity")] = capacity
		}
	}
}

func (p *parser) finish() *cluster.Snapshot {
	known := map[requirement.Key]bool{}
	for _, name := range []string{"zone", "type", "capacity", "arch", "os"} {
		known[requirement.Key(longName(name))] = true
	}
	index := catalog.NewIndex(catalog.Catalog{Types: p.types, WellKnown: known}, p.space)
	var covered []requirement.Set
	for _, c := range p.parts.Commitments {
		covered = append(covered, c.Requirements)
	}
	index = index.Covered(covered)
	for _, node := range p.nodes {
		for _, pool := range p.pools {
			if pool.Name == node.Pool {
				pool.Used = pool.Used.Plus(1, node.Allocatable)
			}
		}
		p.parts.Nodes = append(p.parts.Nodes, node)
	}
	for _, pool := range p.pools {
		pool.Catalog = index
		if n := pool.Slots(); n != limit.None {
			taken := func(slot int) bool { return int64(slot) < pool.Used.Nodes }
			pool.FreeSlots = limit.Usable(n, pool.Used.Nodes, taken, int(n))
			if pool.Static {
				surge := pool.Limits.SurgeSlots(pool.Replicas, pool.Used.Nodes)
				pool.SurgeSlots = limit.Usable(surge, pool.Used.Nodes, taken, int(surge))
			}
		}
	}
	if p.parts.Claims = p.parts.Unseen; p.parts.MaxClaims != 0 {
		p.parts.Claims += cluster.CountClaims(p.parts.Nodes)
	}
	p.bind()
	for _, node := range p.parts.Nodes {
		p.attach(node)
	}
	if p.devices != nil {
		p.parts.Devices = p.devices
	}
	p.parts.Pools, p.parts.Names = p.pools, p.space.Names()
	return cluster.New(p.parts)
}

// bind puts pods on their nodes; those without, and those whose node goes, are pending. The room of those that are
// coming to a node is kept there.
func (p *parser) bind() {
	for _, pod := range p.pods {
		node := p.nodes[pod.Node]
		if to := p.coming[pod]; to != nil {
			to.Coming, to.Used = append(to.Coming, pod), to.Used.Plus(pod.Shape.Requests)
			slices.SortFunc(to.Coming, cluster.ComparePods)
			continue
		}
		if node == nil && pod.IsBuffer() {
			p.parts.Buffers = append(p.parts.Buffers, pod)
			continue
		}
		if node == nil {
			p.parts.Pending = append(p.parts.Pending, pod)
			continue
		}
		node.Pods = append(node.Pods, pod)
		if len(pod.Shape.AntiAffinity) > 0 {
			p.parts.Repelling = append(p.parts.Repelling, pod)
		}
		node.Used = node.Used.Plus(pod.Shape.Requests)
		node.Ports = append(node.Ports, pod.Shape.HostPorts...)
		if node.Deleting && !pod.Fixed {
			p.parts.Pending = append(p.parts.Pending, pod)
		}
	}
}
