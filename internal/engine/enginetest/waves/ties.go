package waves

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// ties are the constraints between a pod and those that run, looked up once for all nodes.
type ties struct {
	shape *cluster.Shape
	// forbidden are domains that anti-affinity closes, by key and value.
	forbidden map[[2]string]bool
	together  []map[string]bool // by affinity term: the domains with a pod that it is about
	alone     bool              // all affinity terms are about the pod itself, and about no pod that is there
	spread    []map[string]int  // by spread constraint: pods in each domain
	lowest    []int
	own       []int // by spread constraint: 1 when the pod counts itself
}

func (s *Scheduler) tiesOf(shape *cluster.Shape) *ties {
	t := &ties{shape: shape, forbidden: map[[2]string]bool{}}
	for _, n := range s.nodes {
		for other := range n.shapes {
			for _, term := range shape.AntiAffinity {
				if value, has := n.Labels[term.Key]; has && s.matches(term, other) {
					t.forbidden[[2]string{term.Key, value}] = true
				}
			}
			for _, term := range other.AntiAffinity {
				if value, has := n.Labels[term.Key]; has && s.matches(term, shape) {
					t.forbidden[[2]string{term.Key, value}] = true
				}
			}
		}
	}
	s.togetherOf(t)
	s.spreadOf(t)
	return t
}

func (s *Scheduler) togetherOf(t *ties) {
	if len(t.shape.Affinity) == 0 {
		return
	}
	all := func(other *cluster.Shape) bool {
		return !slices.ContainsFunc(t.shape.Affinity, func(term cluster.AffinityTerm) bool {
			return !s.matches(term, other)
		})
	}
	t.alone = all(t.shape)
	for _, term := range t.shape.Affinity {
		domains := map[string]bool{}
		for _, n := range s.nodes {
			if value, has := n.Labels[term.Key]; has && n.count(all) > 0 {
				domains[value], t.alone = true, false
			}
		}
		t.together = append(t.together, domains)
	}
}

func (s *Scheduler) spreadOf(t *ties) {
	for _, c := range t.shape.Spread {
		counts, own := map[string]int{}, 0
		same := func(other *cluster.Shape) bool {
			return other.Namespace == t.shape.Namespace && c.Pods.Matches(other.Labels)
		}
		for _, n := range s.nodes {
			if value, has := n.Labels[c.Key]; has && n.counted(t.shape, c) {
				counts[value] += n.count(same)
			}
		}
		lowest := 0
		if len(counts) >= int(c.MinDomains) {
			first := true
			for _, count := range counts {
				if first || count < lowest {
					lowest, first = count, false
				}
			}
		}
		if same(t.shape) {
			own = 1
		}
		t.spread, t.lowest, t.own = append(t.spread, counts), append(t.lowest, lowest), append(t.own, own)
	}
}

// counted reports whether a node's domain counts for a spread constraint.
func (n *standing) counted(shape *cluster.Shape, c cluster.Spread) bool {
	for _, other := range shape.Spread {
		if _, has := n.Labels[other.Key]; !has {
			return false
		}
	}
	_, bad := cluster.Untolerated(n.Taints, shape.Tolerations)
	return (c.IgnoreAffinity || n.Admits(shape.Selecting())) && (!c.HonorTaints || !bad)
}

// allow reports whether the constraints let the pod onto a node.
func (t *ties) allow(n *standing) bool {
	for key := range t.forbidden {
		if value, has := n.Labels[key[0]]; has && value == key[1] {
			return false
		}
	}
	for i, term := range t.shape.Affinity {
		if value, has := n.Labels[term.Key]; !has || !t.alone && !t.together[i][value] {
			return false
		}
	}
	for i, c := range t.shape.Spread {
		if value, has := n.Labels[c.Key]; !has || t.spread[i][value]+t.own[i]-t.lowest[i] > int(c.MaxSkew) {
			return false
		}
	}
	return true
}

// matches reports whether a term is about pods of a shape.
func (s *Scheduler) matches(term cluster.AffinityTerm, shape *cluster.Shape) bool {
	in := slices.Contains(term.Namespaces, shape.Namespace) ||
		term.NamespaceSelector.Matches(s.Namespaces[shape.Namespace])
	return in && term.Pods.Matches(shape.Labels)
}
