package pack

import (
	"maps"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// daemonRule: no pod goes where a daemon will come that must not run beside it (P-06). The reason is a host port that
// both want, anti-affinity on either side, or a spread constraint that counts the daemon.
type daemonRule struct {
	anyOffer
	untied
}

// reads: the constraints themselves are those of topologyRule and portRule.
func (daemonRule) reads() []string {
	return []string{"Namespace", "Labels", "Spread", "Affinity", "AntiAffinity", "HostPorts"}
}

func (daemonRule) refuses(s *solver, n *existing, a *attempt) topology.Verdict {
	if a.info.afar {
		return topology.Never
	}
	for _, daemon := range n.awaiting { // their ports are taken
		if s.topology.Repel(a.info.Shape, daemon.Shape) || s.minds(a.info.Shape, daemon.Shape) {
			return topology.Never
		}
	}
	return topology.Yes
}

func (daemonRule) placedOn(*solver, *existing, *attempt) {}

func (daemonRule) opens(s *solver, p *pool, info *shape, ways []way) []way {
	if info.afar {
		return nil
	}
	return s.besideDaemons(p, info.Shape, ways)
}

func (daemonRule) explains(s *solver, e *explainer) bool {
	if len(s.info(e.shape).ways[e.pool.index]) > 0 && !s.care.wary[e.shape] {
		return true
	}
	if by, code, detail := s.keptOut(e.pool, e.shape); detail != "" {
		e.suspect(by, code, detail)
	}
	return true
}

// repelledAfar reports whether anti-affinity over more than the node keeps the shape and some daemon apart. Where
// daemons will run in the end is not worked out for that: such a pod waits, and the plan says so.
func (s *solver) repelledAfar(c *cluster.Shape) bool {
	return slices.ContainsFunc(s.snapshot.Daemons,
		func(d cluster.Daemon) bool { return s.topology.RepelAfar(c, d.Shape) })
}

// care is what the next try avoids because daemons would be in the way of pods in this one (P-03, P-04, P-06). A
// spread constraint may count pods of DaemonSets, by a selector such as "all but". They come first on a new node,
// which then may have too many for the pod that it was meant for. With pod affinity, a daemon elsewhere may be the
// companion that the pod must join. That is rare, so it is checked only after a plan is made.
type care struct {
	// wary shapes go to no node that waits for a daemon which their spread constraints count.
	wary map[*cluster.Shape]bool
	// barred pods, by UID, go nowhere.
	barred map[string]bool
}

// inTheWay returns the care of the next try; nil when no daemon is in the way of a pod. Each try avoids more than the
// one before. First the shapes of stuck pods become wary, then stuck pods are barred. With all, all pods of these
// shapes are.
func (s *solver) inTheWay(pods []*cluster.Pod, all bool) *care {
	counted := func(owner *cluster.Shape) bool {
		why, _ := s.counted(owner)
		return why != ""
	}
	if !slices.ContainsFunc(s.tied, counted) {
		return nil
	}
	stuck := slices.DeleteFunc(s.rehearse(true), func(pod *cluster.Pod) bool { return !counted(pod.Shape) })
	if len(stuck) == 0 {
		return nil
	}
	next := &care{wary: maps.Clone(s.care.wary), barred: maps.Clone(s.care.barred)}
	if next.wary == nil {
		next.wary, next.barred = map[*cluster.Shape]bool{}, map[string]bool{}
	}
	shapes := shapesOf(stuck)
	for _, shape := range shapes {
		next.wary[shape] = true
	}
	if len(next.wary) > len(s.care.wary) {
		return next
	}
	if all {
		for _, pod := range pods {
			if slices.Contains(shapes, pod.Shape) {
				next.barred[pod.UID] = true
			}
		}
	}
	for _, pod := range stuck {
		next.barred[pod.UID] = true
	}
	return next
}

// counted says which constraint of the shape counts some daemon, and which daemon; "" when none does.
func (s *solver) counted(owner *cluster.Shape) (constraint, daemon string) {
	for _, d := range s.snapshot.Daemons {
		if label, counts := topology.SpreadCounts(owner, d.Shape); counts {
			return "topology spread over " + label, d.Name
		}
		if s.topology.Companion(owner, d.Shape) {
			return "pod affinity", d.Name
		}
	}
	return "", ""
}

// await tells a tracker of the daemons that nodes still wait for.
func (s *solver) await(t *topology.Tracker) {
	for i, n := range s.existing {
		if n.closed {
			continue
		}
		n.settle(s.snapshot.Daemons)
		free, ports := n.node.Allocatable.Minus(n.node.Used), slices.Clone(n.node.Ports)
		for _, daemon := range n.awaiting {
			shape := daemon.Shape
			fits := daemon.requests.Fits(free) && !portsTaken(ports, shape) && !s.keptAway(shape, n.node)
			t.Await(shape, i, fits && n.node.Admits(shape), n.standable)
			free, ports = free.Minus(daemon.requests), withPorts(ports, shape)
		}
	}
	for i, n := range s.planned {
		index := len(s.existing) + i
		for key, name := range t.KeyNames() {
			if t.DomainOf(key, index) == topology.Open {
				t.MayStand(index, key, n.candidates(name), true)
			}
		}
		for _, r := range n.pool.residents {
			if r.on.Intersects(n.offers) {
				t.Await(r.shape, index, n.offers.Minus(r.on).Empty(), n.candidates)
			}
		}
	}
}

// keptAway reports whether some anti-affinity may keep a daemon from a node where it should run.
func (s *solver) keptAway(daemon *cluster.Shape, node *cluster.Node) bool {
	if keepsApart(daemon) {
		return true
	}
	return slices.ContainsFunc(s.repelling(),
		func(pod *cluster.Pod) bool { return s.topology.RepelAfar(pod.Shape, daemon) }) ||
		slices.ContainsFunc(node.Pods, func(pod *cluster.Pod) bool { return s.topology.Repel(pod.Shape, daemon) })
}

// besideDaemons removes from ways the offers whose nodes will run a daemon that must not run beside the shape. The
// reason is a host port, anti-affinity on either side, or that the shape minds the daemon. For anti-affinity the label
// does not matter: a node shares every label with itself.
func (s *solver) besideDaemons(p *pool, c *cluster.Shape, ways []way) []way {
	for _, r := range p.residents {
		if !s.topology.Repel(c, r.shape) && !samePorts(c, r.shape) && !s.minds(c, r.shape) {
			continue
		}
		var left []way
		for _, w := range ways {
			w.offers = w.offers.Minus(r.on)
			if !w.offers.Empty() {
				left = append(left, w)
			}
		}
		ways = left
	}
	return ways
}

// minds reports whether a shape must not go where a daemon will come: it is wary, and its spread constraints count it.
func (s *solver) minds(c, daemon *cluster.Shape) bool {
	if !s.care.wary[c] {
		return false
	}
	_, counts := topology.SpreadCounts(c, daemon)
	return counts
}

// keptOut says which daemons leave the shape no place in a pool; an empty detail when none does.
func (s *solver) keptOut(p *pool, c *cluster.Shape) (by plan.Demand, code cause.Code, detail string) {
	repelled := s.repelledAfar(c) ||
		slices.ContainsFunc(p.residents, func(r resident) bool { return s.topology.Repel(c, r.shape) })
	if repelled {
		return plan.ByTopology, cause.AntiAffinityEverywhere, "anti-affinity to a daemon that runs on every node"
	}
	if constraint, daemon := s.counted(c); constraint != "" && s.care.wary[c] {
		return plan.ByTopology, cause.DaemonsCount, constraint + " counts DaemonSet " + daemon +
			", whose pods come first on a new node"
	}
	if slices.ContainsFunc(p.residents, func(r resident) bool { return samePorts(c, r.shape) }) {
		return plan.ByPod, cause.HostPortTaken, "the pod's host ports are used by DaemonSets on every new node"
	}
	return "", "", ""
}
