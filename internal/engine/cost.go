package engine

import "github.com/joiner-autoscaler/joiner/internal/engine/cluster"

// Disruption costs are whole numbers, so that sums are exact. The eviction of one ordinary pod costs podCost; a
// priority of 2^25 or a deletion cost of 2^27 adds as much again. These are the weights that Karpenter's users know.
const (
	podCost         int64 = 1 << 27
	perPriority     int64 = 4
	perDeletionCost int64 = 1
	mostPodCost           = 10 * podCost
)

// EvictionCost returns what the eviction of a pod costs, from -10 to 10 times that of an ordinary one.
func EvictionCost(pod *cluster.Pod) int64 {
	if pod.IsBuffer() { // nobody notices (K-39)
		return 0
	}
	cost := podCost + perPriority*int64(pod.Priority) + perDeletionCost*int64(pod.DeletionCost)
	return max(-mostPodCost, min(mostPodCost, cost))
}

// DisruptionCost sums the eviction costs of the pods that would have to move when the node goes, and counts them.
func DisruptionCost(node *cluster.Node) (cost int64, pods int) {
	for _, pod := range node.Pods {
		if !pod.Fixed && !pod.IsBuffer() {
			cost += EvictionCost(pod)
			pods++
		}
	}
	return cost, pods
}
