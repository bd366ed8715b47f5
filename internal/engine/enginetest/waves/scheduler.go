package waves

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Scheduler is a model of kube-scheduler: nodes that are open, and what runs on them. Use [NewScheduler].
type Scheduler struct {
	// Namespaces maps a namespace's name to its labels.
	Namespaces map[string]map[string]string

	nodes  []*standing
	byName map[string]*standing
	dice   *rand.Rand // among nodes with the same score
	next   int        // where the search for nodes begins
	groups map[*cluster.Shape]string
}

// standing is a node as the scheduler sees it.
type standing struct {
	*cluster.Node
	free   resources.Vector
	used   resources.Vector // by pods, as scores count it
	ports  []cluster.HostPort
	shapes map[*cluster.Shape]int
	// nominated are pods whose room here is kept, by UID: others of the same priority leave it free.
	nominated map[string]*cluster.Shape
}

// NewScheduler returns a scheduler without nodes. Among nodes of equal score dice decide.
func NewScheduler(dice *rand.Rand, namespaces map[string]map[string]string) *Scheduler {
	return &Scheduler{Namespaces: namespaces, byName: map[string]*standing{}, dice: dice,
		groups: map[*cluster.Shape]string{}}
}

// Open makes a node known, with the pods that run on it.
func (s *Scheduler) Open(node *cluster.Node) {
	n := &standing{Node: node, free: node.Allocatable.Minus(node.Used), ports: slices.Clone(node.Ports),
		shapes: map[*cluster.Shape]int{}, nominated: map[string]*cluster.Shape{}}
	for _, pod := range node.Pods {
		n.shapes[pod.Shape]++
		n.used = n.used.Plus(scored(pod.Shape))
	}
	s.nodes, s.byName[node.Name] = append(s.nodes, n), n
}

// Nominate keeps room for a pod on an open node and nowhere else, as status.nominatedNodeName does. uid is the pod's.
func (s *Scheduler) Nominate(uid string, shape *cluster.Shape, node string) {
	for _, n := range s.nodes {
		delete(n.nominated, uid)
	}
	s.byName[node].nominated[uid] = shape
}

// Confirm returns the node that a pod is nominated for, if it has room for it, and "" otherwise.
func (s *Scheduler) Confirm(uid string, shape *cluster.Shape) string {
	for _, n := range s.nodes {
		if n.nominated[uid] == nil {
			continue
		}
		delete(n.nominated, uid)
		if ties := s.tiesOf(shape); n.takes(shape) && n.leaves(shape) && ties.allow(n) {
			return n.Name
		}
	}
	return ""
}

// leaves reports whether a pod leaves the room that is kept for others, and does not keep apart from one of them.
func (n *standing) leaves(shape *cluster.Shape) bool {
	free := n.free
	for _, other := range n.nominated {
		if other == shape && len(shape.AntiAffinity) > 0 {
			return false
		}
		free = free.Minus(other.Requests)
	}
	return shape.Requests.Fits(free)
}

// Bind puts a pod on an open node.
func (s *Scheduler) Bind(shape *cluster.Shape, node string) {
	n := s.byName[node]
	n.free, n.used = n.free.Minus(shape.Requests), n.used.Plus(scored(shape))
	n.ports = append(n.ports, shape.HostPorts...)
	n.shapes[shape]++
}

const (
	// fewNodes is the number of nodes up to which all that take a pod are scored; of more, a share.
	fewNodes = 100
	// leastShare, in percent, is the smallest share.
	leastShare = 5
)

// enough returns how many nodes that take a pod are scored.
func enough(nodes int) int {
	share := max(50-nodes/125, leastShare)
	return max(min(nodes, fewNodes), nodes*share/100)
}

// Place returns the name of the node that the scheduler would bind a pod to, or "" when none takes it. It binds
// nothing.
func (s *Scheduler) Place(shape *cluster.Shape) string {
	fitting := s.fitting(shape)
	if len(fitting) == 0 {
		return ""
	}
	scores := s.scores(shape, fitting)
	best, ties := 0, 1
	for i := 1; i < len(fitting); i++ {
		switch {
		case scores[i] > scores[best]:
			best, ties = i, 1
		case scores[i] == scores[best]:
			if ties++; s.dice.IntN(ties) == 0 {
				best = i
			}
		}
	}
	return fitting[best].Name
}

// Scores returns the score of each node that takes a pod of the shape, by name.
func (s *Scheduler) Scores(shape *cluster.Shape) map[string]int64 {
	fitting := s.fitting(shape)
	byName := map[string]int64{}
	for i, score := range s.scores(shape, fitting) {
		byName[fitting[i].Name] = score
	}
	return byName
}

// fitting returns nodes that take the pod: all, or as many as the scheduler looks for. The next search begins behind
// them.
func (s *Scheduler) fitting(shape *cluster.Shape) []*standing {
	var list []*standing
	ties := s.tiesOf(shape)
	wanted, looked := enough(len(s.nodes)), 0
	for ; looked < len(s.nodes) && len(list) < wanted; looked++ {
		n := s.nodes[(s.next+looked)%len(s.nodes)]
		if n.takes(shape) && n.leaves(shape) && ties.allow(n) {
			list = append(list, n)
		}
	}
	if len(s.nodes) > 0 {
		s.next = (s.next + looked) % len(s.nodes)
	}
	return list
}

// takes is the filter for a pod by itself.
func (n *standing) takes(shape *cluster.Shape) bool {
	if !shape.Requests.Fits(n.free) || !n.Admits(shape) {
		return false
	}
	if _, bad := cluster.Untolerated(n.Taints, shape.Tolerations); bad {
		return false
	}
	return !slices.ContainsFunc(shape.HostPorts, func(p cluster.HostPort) bool {
		return slices.ContainsFunc(n.ports, p.Conflicts)
	})
}

// group names the owner of pods of this shape, as far as a model can: pods with the same labels have the same one.
func (s *Scheduler) group(shape *cluster.Shape) string {
	if known, found := s.groups[shape]; found {
		return known
	}
	var b strings.Builder
	b.WriteString(shape.Namespace)
	for _, name := range slices.Sorted(maps.Keys(shape.Labels)) {
		b.WriteString("," + name + "=" + shape.Labels[name])
	}
	s.groups[shape] = b.String()
	return s.groups[shape]
}
