package pack

import (
	"cmp"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
)

// This file chooses by what pods prefer, among places that cost the same (P-05, P-08). A pod likes a pool less than
// others for a PreferNoSchedule taint that it does not tolerate, or if another pool of the same weight has the custom
// labels that it wishes. A pool that it likes less gives it a new node only when no other pool does. But a node that
// the pool gets anyway is used before another one is launched. When every pod has its place, pods on existing nodes
// move to nodes that they like better and that have room. Nothing is launched for that, and no pod loses its place.

// preferenceRule: what pods prefer never keeps them from a place. It is in the list so that the list is complete. What
// it does is in this file and in wishes.go.
type preferenceRule struct {
	anyNode
	anyOffer
	anyPool
	untied
	unexplained
}

func (preferenceRule) reads() []string { return []string{"Wishes", "SoftSpread", "Tolerations"} }

// liking is how much a shape likes a place: fewer unwelcome taints, then heavier wishes, as kube-scheduler weighs
// them.
type liking struct {
	unwelcome int
	weight    int64
}

// compare orders likings, the greater one last.
func (a liking) compare(b liking) int {
	return cmp.Or(cmp.Compare(b.unwelcome, a.unwelcome), cmp.Compare(a.weight, b.weight))
}

// dislikes returns, by pool, whether it comes after others for the shape; nil when none does.
func (s *solver) dislikes(info *shape) []bool {
	if !info.hasLabelWishes() && !s.asking {
		return nil
	}
	var later []bool
	likes := make([]liking, len(s.pools))
	for i, p := range s.pools {
		likes[i] = p.likedBy(info.Shape)
	}
	for i, p := range s.pools {
		for j, other := range s.pools {
			better := len(info.ways[j]) > 0 && likes[j].compare(likes[i]) > 0
			if better && (likes[j].unwelcome < likes[i].unwelcome || other.Weight == p.Weight) {
				if later == nil {
					later = make([]bool, len(s.pools))
				}
				later[i] = true
			}
		}
	}
	return later
}

func (info *shape) hasLabelWishes() bool {
	for _, w := range info.Wishes {
		if w.Term.Key == "" {
			return true
		}
	}
	return false
}

// likedBy weighs what is the same on every node of the pool: its taints, and labels that the provider does not
// decide.
func (p *pool) likedBy(c *cluster.Shape) liking {
	like := liking{unwelcome: unwelcome(p.Taints, c)}
	if p.Catalog == nil {
		return like
	}
	for _, w := range c.Wishes {
		has := w.Term.Key == ""
		own := false
		for r := range w.Labels.All() {
			if p.Catalog.Known(r.Key()) {
				continue
			}
			label := p.label(r.Key())
			own, has = true, has && label.And(r).Equal(label)
		}
		if own && has {
			like.weight += int64(w.Weight)
		}
	}
	return like
}

// sweeps are the values of isLater in the order in which pools are asked.
func (info *shape) sweeps() []bool {
	if info.later == nil {
		return []bool{false}
	}
	return []bool{false, true}
}

// isLater reports whether the pool comes after others. Existing nodes are always asked first.
func (info *shape) isLater(p *pool) bool {
	return info.later != nil && info.later[p.index]
}

// packLiked is packGroups where some pods come to a pool only when no other takes them. These are packed after the
// others: first into the room that there is, then on new nodes of the pools that they like, then of all pools.
func (s *solver) packLiked(pods []*cluster.Pod) []*cluster.Pod {
	var easy, picky []*cluster.Pod
	for _, pod := range pods {
		if s.info(pod.Shape).later == nil {
			easy = append(easy, pod)
		} else {
			picky = append(picky, pod)
		}
	}
	rest := s.packGroups(easy)
	if len(picky) == 0 {
		return rest
	}
	s.onlyLiked(picky, func() { picky = s.fillAll(picky) })
	picky = s.fillAll(picky)
	s.onlyLiked(picky, func() { picky = s.packGroups(picky) })
	return append(rest, s.packGroups(picky)...)
}

// fillAll places plain pods in the room that there is, and returns those that are left.
func (s *solver) fillAll(pods []*cluster.Pod) []*cluster.Pod {
	var rest []*cluster.Pod
	for _, g := range s.groups(pods) {
		rest = append(rest, s.fillBins(g)...)
	}
	return rest
}

// onlyLiked calls do while the shapes of the pods have no ways in the pools that come later for them.
func (s *solver) onlyLiked(pods []*cluster.Pod, do func()) {
	all := map[*shape][][]way{}
	for _, pod := range pods {
		info := s.info(pod.Shape)
		if all[info] != nil {
			continue
		}
		all[info] = info.ways
		liked := make([][]way, len(info.ways))
		for i, ways := range info.ways {
			if !info.later[i] {
				liked[i] = ways
			}
		}
		info.ways = liked
	}
	do()
	for info, ways := range all {
		info.ways = ways
	}
}

// moveToLiked moves untied pods from the existing node where they were placed to the one with room that they like
// best. Pods with a promise stay.
func (s *solver) moveToLiked() {
	for i, b := range s.existing {
		var stay []*cluster.Pod
		for _, pod := range b.pods {
			if better := s.likedMore(i, pod); better >= 0 {
				a := s.askOne(pod, s.info(pod.Shape))
				a.index = better
				s.placedOn(s.existing[better], a)
				b.free = b.free.Plus(pod.Shape.Requests)
			} else {
				stay = append(stay, pod)
			}
		}
		b.pods = stay
	}
}

// likedMore returns the index of the existing node that a pod likes best and that has room for it; -1 when that is
// where it is.
func (s *solver) likedMore(index int, pod *cluster.Pod) int {
	info := s.info(pod.Shape)
	if pod.Promised != "" || comesAlone(pod) || !info.plain() || !info.hasLabelWishes() && !s.asking {
		return -1
	}
	likes, a := s.likesOf(info), s.askOne(pod, info)
	best, bestLike := -1, likes[index]
	for n, like := range likes {
		if like.compare(bestLike) > 0 && s.mayStandOn(n, a) {
			best, bestLike = n, like
		}
	}
	return best
}

// mayStandOn reports whether no rule refuses pods on an existing node.
func (s *solver) mayStandOn(index int, a *attempt) bool {
	a.index = index
	return s.refuses(s.existing[index], a) == topology.Yes
}

// likesOf weighs every existing node for a shape. It is computed once.
func (s *solver) likesOf(info *shape) []liking {
	if info.likes == nil {
		for _, n := range s.existing {
			info.likes = append(info.likes, n.likedBy(info.Shape))
		}
	}
	return info.likes
}

// likedBy weighs an existing node.
func (n *existing) likedBy(c *cluster.Shape) liking {
	like := liking{unwelcome: unwelcome(n.node.Taints, c)}
	for _, w := range c.Wishes {
		if w.Term.Key == "" && n.node.Satisfies(w.Labels) {
			like.weight += int64(w.Weight)
		}
	}
	return like
}

// asks reports whether any pool or node has a PreferNoSchedule taint. If not, likings need not look at taints.
func asks(snapshot *cluster.Snapshot) bool {
	var nothing cluster.Shape
	for _, p := range snapshot.Pools {
		if unwelcome(p.Taints, &nothing) > 0 {
			return true
		}
	}
	for _, node := range snapshot.Nodes {
		if unwelcome(node.Taints, &nothing) > 0 {
			return true
		}
	}
	return false
}
