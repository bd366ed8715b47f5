package waves

import (
	"math"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// The scores below follow the plugins of that name in Kubernetes 1.36, with the weights of the default profile.
const (
	maxScore      = 100
	weightTaints  = 3 // TaintToleration
	weightWishes  = 2 // NodeAffinity
	weightSpread  = 2 // PodTopologySpread
	weightPods    = 2 // InterPodAffinity
	defaultCPU    = 100
	defaultMemory = 200 << 20
)

// scored returns what a pod counts in scores: one that asks for nothing counts a little.
func scored(shape *cluster.Shape) resources.Vector {
	v := slices.Clone(shape.Requests)
	if v.At(resources.CPU) == 0 {
		v = v.With(resources.CPU, defaultCPU)
	}
	if v.At(resources.Memory) == 0 {
		v = v.With(resources.Memory, defaultMemory)
	}
	return v
}

// scores returns the sum of all scores of each node.
func (s *Scheduler) scores(shape *cluster.Shape, nodes []*standing) []int64 {
	sum, want := make([]int64, len(nodes)), scored(shape)
	for i, n := range nodes {
		sum[i] = n.leastAllocated(want) + n.balanced(shape.Requests)
	}
	add := func(weight int64, scores []int64) {
		for i, score := range scores {
			sum[i] += weight * score
		}
	}
	add(weightTaints, unwelcome(shape, nodes))
	add(weightWishes, liked(shape, nodes))
	add(weightSpread, s.spread(shape, nodes))
	add(weightPods, s.near(shape, nodes))
	return sum
}

// leastAllocated is NodeResourcesFit: the emptier the better.
func (n *standing) leastAllocated(want resources.Vector) int64 {
	sum, weights := int64(0), int64(0)
	for _, r := range []int{resources.CPU, resources.Memory} {
		all := n.Allocatable.At(r)
		if all == 0 {
			continue
		}
		weights++
		if left := all - n.used.At(r) - want.At(r); left > 0 {
			sum += left * maxScore / all
		}
	}
	if weights == 0 {
		return 0
	}
	return sum / weights
}

// balanced is NodeResourcesBalancedAllocation: better when the pod evens out how much of each resource is used. A pod
// that asks for neither resource is not scored.
func (n *standing) balanced(requests resources.Vector) int64 {
	if requests.At(resources.CPU) == 0 && requests.At(resources.Memory) == 0 {
		return 0
	}
	now := n.Allocatable.Minus(n.free)
	with, without := n.balance(now.Plus(requests)), n.balance(now)
	return maxScore/2 + (maxScore/2+with-without)/2
}

func (n *standing) balance(used resources.Vector) int64 {
	var shares []float64
	for _, r := range []int{resources.CPU, resources.Memory} {
		if all := n.Allocatable.At(r); all > 0 {
			shares = append(shares, min(1, float64(used.At(r))/float64(all)))
		}
	}
	deviation := 0.0
	if len(shares) == 2 {
		deviation = math.Abs((shares[0] - shares[1]) / 2)
	}
	return int64((1 - deviation) * maxScore)
}

// unwelcome is TaintToleration: fewer taints that only ask are better.
func unwelcome(shape *cluster.Shape, nodes []*standing) []int64 {
	scores, most := make([]int64, len(nodes)), int64(0)
	for i, n := range nodes {
		scores[i] = int64(cluster.Unwelcome(n.Taints, shape.Tolerations))
		most = max(most, scores[i])
	}
	for i := range scores {
		if most == 0 {
			scores[i] = maxScore
		} else {
			scores[i] = maxScore - maxScore*scores[i]/most
		}
	}
	return scores
}

// liked is NodeAffinity: wishes about the node's labels.
func liked(shape *cluster.Shape, nodes []*standing) []int64 {
	scores, most := make([]int64, len(nodes)), int64(0)
	for i, n := range nodes {
		for _, w := range shape.Wishes {
			if w.Term.Key == "" && n.Satisfies(w.Labels) {
				scores[i] += int64(w.Weight)
			}
		}
		most = max(most, scores[i])
	}
	for i := range scores {
		if most > 0 {
			scores[i] = maxScore * scores[i] / most
		}
	}
	return scores
}

// soft is a constraint that spread counts.
type soft struct {
	key     string
	maxSkew int32
	counts  func(other *cluster.Shape) bool
}

// softOf returns what spread counts for a shape: its own ScheduleAnyway constraints or, when it has no constraints,
// the scheduler's defaults for pods with an owner.
func (s *Scheduler) softOf(shape *cluster.Shape) []soft {
	var list []soft
	if len(shape.Spread)+len(shape.SoftSpread) == 0 {
		own := s.group(shape)
		same := func(other *cluster.Shape) bool { return s.group(other) == own }
		return []soft{{cluster.LabelHostname, 3, same}, {"topology.kubernetes.io/zone", 5, same}}
	}
	for _, c := range shape.SoftSpread {
		list = append(list, soft{c.Key, c.MaxSkew, func(other *cluster.Shape) bool {
			return other.Namespace == shape.Namespace && c.Pods.Matches(other.Labels)
		}})
	}
	return list
}

// spread is PodTopologySpread: fewer pods of the same kind in the node's domains are better.
func (s *Scheduler) spread(shape *cluster.Shape, nodes []*standing) []int64 {
	scores := make([]int64, len(nodes))
	constraints := s.softOf(shape)
	if len(constraints) == 0 {
		return scores
	}
	sums := make([]float64, len(nodes))
	for _, c := range constraints {
		domains := map[string]int{}
		for _, n := range nodes {
			domains[n.Labels[c.key]] = 0
		}
		for _, n := range s.nodes {
			if _, counts := domains[n.Labels[c.key]]; counts && n.Admits(shape.Selecting()) {
				domains[n.Labels[c.key]] += n.count(c.counts)
			}
		}
		weight := math.Log(float64(len(domains) + 2))
		for i, n := range nodes {
			if value, has := n.Labels[c.key]; has {
				sums[i] += float64(float64(domains[value])*weight) + float64(c.maxSkew-1)
			}
		}
	}
	least, most := int64(math.MaxInt64), int64(0)
	for i, sum := range sums {
		scores[i] = int64(math.Round(sum))
		least, most = min(least, scores[i]), max(most, scores[i])
	}
	for i := range scores {
		if most == 0 {
			scores[i] = maxScore
		} else {
			scores[i] = maxScore * (most + least - scores[i]) / most
		}
	}
	return scores
}

// count returns how many pods on the node have shapes that counts accepts.
func (n *standing) count(counts func(*cluster.Shape) bool) int {
	sum := 0
	for shape, times := range n.shapes {
		if counts(shape) {
			sum += times
		}
	}
	return sum
}

// near is InterPodAffinity: preferred terms of the pod, and of those that run. A required affinity of one that runs
// counts as a preference of weight 1.
func (s *Scheduler) near(shape *cluster.Shape, nodes []*standing) []int64 {
	scores := make([]int64, len(nodes))
	weights := map[[2]string]int64{}
	for _, n := range s.nodes {
		for other, times := range n.shapes {
			s.weigh(weights, n, shape, other, times)
		}
	}
	if len(weights) == 0 {
		return scores
	}
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	for i, n := range nodes {
		for key, value := range n.Labels {
			scores[i] += weights[[2]string{key, value}]
		}
		least, most = min(least, scores[i]), max(most, scores[i])
	}
	for i := range scores {
		if most > least {
			scores[i] = int64(float64(maxScore) * (float64(scores[i]-least) / float64(most-least)))
		} else {
			scores[i] = 0
		}
	}
	return scores
}

// weigh adds the preferences of the pod about pods of the shape other on a node, and their preferences about the pod.
func (s *Scheduler) weigh(weights map[[2]string]int64, n *standing, shape, other *cluster.Shape, times int) {
	say := func(of, about *cluster.Shape) {
		for _, w := range of.Wishes {
			if value, has := n.Labels[w.Term.Key]; has && w.Term.Key != "" && s.matches(w.Term, about) {
				weight := int64(w.Weight) * int64(times)
				if w.Apart {
					weight = -weight
				}
				weights[[2]string{w.Term.Key, value}] += weight
			}
		}
	}
	say(shape, other)
	say(other, shape)
	for _, term := range other.Affinity {
		if value, has := n.Labels[term.Key]; has && s.matches(term, shape) {
			weights[[2]string{term.Key, value}] += int64(times)
		}
	}
}
