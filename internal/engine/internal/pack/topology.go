package pack

import (
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// topologyRule: pods are spread, are near others or keep apart from them, by labels of nodes (P-03, P-04). Package
// topology counts; this file decides which value a planned node gets for a label that is still open.
type topologyRule struct{ anyPool }

func (topologyRule) reads() []string {
	return []string{"Namespace", "Labels", "Spread", "Affinity", "AntiAffinity"}
}

func (topologyRule) refuses(s *solver, _ *existing, a *attempt) topology.Verdict {
	for _, key := range a.info.topology.Keys {
		domain := s.topology.DomainOf(key, a.index)
		if domain == topology.Open {
			return topology.Never // what comes for a launched claim is not ours to choose any more
		}
		if verdict := s.topology.Allowed(a.info.topology, key, domain); verdict != topology.Yes {
			return verdict
		}
		if s.strays(a, key, domain) {
			return topology.Now // others of the shape may run elsewhere
		}
	}
	return topology.Yes
}

func (topologyRule) placedOn(s *solver, _ *existing, a *attempt) { s.count(a) }

func (topologyRule) narrows(s *solver, n *planned, a *attempt) topology.Verdict {
	if verdict := s.chooseDomains(n, a); verdict != topology.Yes {
		return verdict
	}
	s.decideCounting(n, a)
	return topology.Yes
}

func (topologyRule) placedIn(s *solver, n *planned, a *attempt) {
	if !s.topology.Constrained() {
		return
	}
	counts := s.counts(&n.outlook)
	if a.first {
		s.topology.Reconsider(a.index, counts)
	}
	for _, f := range a.fixed {
		s.topology.Fix(f.key, a.index, f.domain)
		name := requirement.Key(s.topology.KeyNames()[f.key])
		if f.domain == topology.Lacks {
			n.labels = n.labels.With(requirement.Absent(name))
			continue
		}
		value, _ := n.labelValue(string(name))
		n.labels = n.labels.With(requirement.OneOf(name, value))
	}
	s.followLabels(n, a.index)
	s.topology.Settle(a.info.topology, a.index, counts)
	s.count(a)
	if a.first {
		s.topology.Occupy(a.index)
	}
}

// count counts placed pods for the constraints that are about them.
func (s *solver) count(a *attempt) {
	if s.topology.Constrained() && len(a.info.topology.Keys) > 0 {
		for range a.pods {
			s.topology.Place(a.info.Shape, a.index, topology.Placed)
		}
	}
}

// ties: each pod that is placed changes the counts.
func (topologyRule) ties(info *shape) bool { return len(info.topology.Keys) > 0 }

// alike: only shapes that nothing counts come in groups.
func (topologyRule) alike(text []byte, _ *shape) []byte { return text }

func (topologyRule) explains(s *solver, e *explainer) bool {
	info := s.info(e.shape)
	var blamed []string
	var first cause.Code
	for _, key := range info.topology.Keys {
		if code, constraint := s.topology.Blames(info.topology, key); constraint != "" {
			if blamed = append(blamed, constraint); len(blamed) == 1 {
				first = code
			}
		}
	}
	if len(blamed) > 0 {
		e.suspect(plan.ByTopology, first, strings.Join(blamed, ", ")+" leaves no place for a new node")
	}
	return true
}

// fix is a decision on an open label of a bin.
type fix struct {
	key    int
	domain int32
}

// chooseDomains decides every open label of the node that matters with this pod on it (see Tracker.MustDecide). It
// takes the least crowded allowed domain, where the pod runs or else the cheapest among equals, and narrows what the
// node would become.
func (s *solver) chooseDomains(n *planned, a *attempt) topology.Verdict {
	about := a.info.topology
	for key, name := range s.topology.KeyNames() {
		ruled, domain := slices.Contains(about.Keys, key), s.topology.DomainOf(key, a.index)
		if domain != topology.Open {
			if verdict := s.topology.Allowed(about, key, domain); ruled && verdict != topology.Yes {
				return verdict
			}
			if s.strays(a, key, domain) {
				return topology.Now
			}
			continue
		}
		if !ruled && !a.first {
			continue // looked at when the node was opened
		}
		without := requirement.Absent(requirement.Key(name))
		if ruled && a.mayLeaveOut(without) && s.topology.Allowed(about, key, topology.Lacks) == topology.Yes {
			a.custom = a.custom.With(without)
			a.fixed = append(a.fixed, fix{key, topology.Lacks})
			continue
		}
		values := a.candidates(name)
		if !ruled && !s.topology.MustDecide(key, a.index, values) {
			continue
		}
		value, verdict := s.leastCrowded(a, key, values)
		if verdict != topology.Yes {
			return verdict
		}
		only := requirement.OneOf(requirement.Key(name), value)
		if a.pool.Catalog.Known(only.Key()) {
			a.pool.Catalog.Compatible(only).AndTo(a.offers)
		} else {
			a.custom = a.custom.With(only)
		}
		a.fixed = append(a.fixed, fix{key, s.topology.Domain(key, value)})
	}
	return topology.Yes
}

// mayLeaveOut reports whether a label that the provider does not decide may be left out of the node.
func (o *outlook) mayLeaveOut(absent requirement.Requirement) bool {
	return !o.pool.Catalog.Known(absent.Key()) && o.custom.Get(absent.Key()).AllowsAbsent()
}

func (s *solver) leastCrowded(a *attempt, key int, values []string) (string, topology.Verdict) {
	best, crowd, verdict := "", int32(0), topology.Never
	for _, value := range values {
		domain := s.topology.Domain(key, value)
		allowed := s.topology.Allowed(a.info.topology, key, domain)
		if allowed == topology.Yes && s.strays(a, key, domain) {
			allowed = topology.Now // others of the shape may run there
		}
		switch allowed {
		case topology.Now:
			if verdict == topology.Never {
				verdict = topology.Now
			}
		case topology.Yes:
			c := s.topology.Crowd(a.info.topology, key, domain)
			home := c == crowd && s.atHome(a, key, domain) && s.asCheap(a, key, value, best)
			if verdict != topology.Yes || c < crowd || home {
				best, crowd, verdict = value, c, topology.Yes
			}
		}
	}
	return best, verdict
}

// followLabels tells the tracker where the node is, or may be, by labels of the pool's own. Nobody lists their values:
// each pod may ask for another one.
func (s *solver) followLabels(n *planned, index int) {
	for key, name := range s.topology.KeyNames() {
		if s.topology.DomainOf(key, index) != topology.Open || n.pool.Catalog.Known(requirement.Key(name)) {
			continue
		}
		if value, decided := n.labelValue(name); decided && value != "" {
			s.topology.Fix(key, index, s.topology.Domain(key, value))
		} else if decided {
			s.topology.Fix(key, index, topology.Lacks)
		} else {
			s.topology.MayStand(index, key, n.candidates(name), true)
		}
	}
}

// constrained lists the shapes whose constraints matter: of the pods to place, and of running ones whose
// anti-affinity is about any of these.
func (s *solver) constrained(pods []*cluster.Pod) []*cluster.Shape {
	placing, list := map[*cluster.Shape]bool{}, []*cluster.Shape(nil)
	for _, pod := range pods {
		if placing[pod.Shape] {
			continue
		}
		placing[pod.Shape] = true
		if pod.Shape.Tied() {
			list = append(list, pod.Shape)
		}
	}
	seen := map[*cluster.Shape]bool{}
	for _, pod := range s.repelling() {
		if seen[pod.Shape] || placing[pod.Shape] {
			continue
		}
		seen[pod.Shape] = true
		for shape := range placing {
			if topology.Repels(pod.Shape, shape, s.snapshot.Namespaces) {
				list = append(list, pod.Shape)
				break
			}
		}
	}
	slices.SortFunc(list, func(a, b *cluster.Shape) int { return strings.Compare(a.Key(), b.Key()) })
	return list
}

// repelling lists the running pods with required anti-affinity, including those on nodes that a what-if leaves out.
func (s *solver) repelling() []*cluster.Pod {
	list := s.snapshot.Repelling
	for _, node := range s.snapshot.Leaving {
		for _, pod := range node.Pods {
			if keepsApart(pod.Shape) {
				list = append(slices.Clip(list), pod)
			}
		}
	}
	return list
}

// stand adds an existing node and the pods on it to a tracker.
func (s *solver) stand(t *topology.Tracker, n *existing) {
	index := t.AddBin(n.labelValue, n.counts())
	t.Occupy(index)
	ours := s.snapshot.Pool(n.node.Pool) != nil // else it is unknown whether a node will ever come
	for key, name := range t.KeyNames() {
		if ours && t.DomainOf(key, index) == topology.Open {
			values, all := n.node.Open.Get(requirement.Key(name)).Values()
			t.MayStand(index, key, values, all)
		}
	}
	for _, pod := range n.node.Pods {
		t.Place(pod.Shape, index, standingOf(pod))
	}
}

func standingOf(pod *cluster.Pod) topology.Standing {
	if pod.Terminating {
		return topology.Ending
	}
	return topology.Running
}

// offerDomains tells the tracker where new nodes for the shape could be, so that spread constraints reach for them.
func (s *solver) offerDomains(info *shape) {
	for _, constraint := range info.Spread {
		if constraint.Key == cluster.LabelHostname {
			continue
		}
		key := slices.Index(s.topology.KeyNames(), constraint.Key)
		for i, ways := range info.ways {
			for _, w := range ways {
				new := &outlook{pool: s.pools[i], offers: w.offers, custom: s.pools[i].custom.And(w.custom)}
				for _, value := range new.candidates(constraint.Key) {
					s.topology.Offer(info.Shape, key, value)
				}
			}
		}
	}
}

// domainsFor returns the most values that new nodes of a pool may have for a label, other than the hostname, over
// which a shape is spread; 1 if there is no such label.
func (s *solver) domainsFor(p *pool, info *shape) int {
	most := 1
	for _, c := range info.Spread {
		if c.Key == cluster.LabelHostname {
			continue
		}
		for _, w := range info.ways[p.index] {
			open := &outlook{pool: p, offers: w.offers, custom: p.custom.And(w.custom)}
			most = max(most, len(open.candidates(c.Key)))
		}
	}
	return most
}

// mayComeLater reports whether a pod that found no place may find one after others were placed. It may wait for a
// companion, or for pods that even out a spread, or it runs on a node that goes. This ends, because each further pass
// needs a pod placed in the last.
func (s *solver) mayComeLater(pod *cluster.Pod) bool {
	return len(pod.Shape.Affinity)+len(pod.Shape.Spread) > 0 || s.leaving(pod)
}

// lastOfAll is the lateness of pods spread over hostnames, for which every node counts.
const lastOfAll = 3

func lateness(s *cluster.Shape) int {
	switch {
	case slices.ContainsFunc(s.Spread, func(c cluster.Spread) bool { return c.Key == cluster.LabelHostname }):
		return lastOfAll
	case len(s.Spread) > 0:
		return 2
	case len(s.Affinity) > 0:
		return 1
	}
	return 0
}

// apartBy returns the terms by which pods of the shape keep apart from each other, a node for each.
func apartBy(shape *cluster.Shape) []cluster.AffinityTerm { return shape.ApartTerms() }

// keepsApart reports whether pods of the shape keep apart from any others.
func keepsApart(c *cluster.Shape) bool { return len(c.AntiAffinity) > 0 }

// followsOthers reports whether a pod runs and has to keep near others, in a zone or the like. When it moves,
// kube-scheduler keeps its successor near those that have not ended yet. In another zone the successor would wait
// until all have ended. So a new node for such pods is where they run, if that costs no more. If some pods find no
// place otherwise, a try keeps all such pods where they run, as kube-scheduler does (P-04).
func followsOthers(pod *cluster.Pod) bool { return pod.Node != "" && len(pod.Shape.Affinity) > 0 }

// home returns the domain in which a pod runs that has to keep near others there; false if it is free to go elsewhere.
func (s *solver) home(a *attempt, key int) (domain int32, keeps bool) {
	l, name := s.leavers[a.pods[0].UID], s.topology.KeyNames()[key]
	if l == nil || s.topology.Hostname(key) ||
		!slices.ContainsFunc(a.info.Affinity, func(t cluster.AffinityTerm) bool { return t.Key == name }) {
		return 0, false
	}
	return s.topology.DomainOf(key, l.bin), true
}

// atHome reports whether a domain is where a pod runs that has to keep near others there.
func (s *solver) atHome(a *attempt, key int, domain int32) bool {
	home, keeps := s.home(a, key)
	return keeps && home == domain
}

// strays reports whether a pod that this try keeps where it runs would go elsewhere.
func (s *solver) strays(a *attempt, key int, domain int32) bool {
	if !s.stay {
		return false
	}
	home, keeps := s.home(a, key)
	return keeps && home != domain
}

// asCheap reports whether the node costs as much with a value of a label as with another one, or more by no more than
// the pool's price tolerance.
func (s *solver) asCheap(a *attempt, key int, value, than string) bool {
	index := a.pool.Catalog
	cost := func(value string) (resources.Money, bool) {
		only := requirement.OneOf(requirement.Key(s.topology.KeyNames()[key]), value)
		if !index.Known(only.Key()) {
			return 0, true
		}
		offers := a.offers.Clone()
		index.Compatible(only).AndTo(offers)
		first := offers.First()
		if first < 0 {
			return 0, false
		}
		return index.Offers[first].Price, true
	}
	own, some := cost(value)
	other, _ := cost(than)
	return some && own*100 <= other*resources.Money(100+a.pool.PriceTolerance)
}
