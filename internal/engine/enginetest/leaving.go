package enginetest

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// This file counts pods on nodes that go as kube-scheduler does: until they have left. Pods under a budget that does
// not let all of them go leave one after another, when they are bound elsewhere. Others leave once all pods that
// waited from the start are bound. A node that no pod has to leave any more is gone, unless it has no claim: nobody
// here knows when it goes.

// going lists the nodes that go and count until they are gone.
func going(s *cluster.Snapshot) []*cluster.Node {
	list := slices.Clone(s.Leaving)
	for _, node := range s.Nodes {
		if node.Deleting || node.Disrupting {
			list = append(list, node)
		}
	}
	return slices.DeleteFunc(list, func(n *cluster.Node) bool { return !lasts(n, n.Pods) })
}

// lasts reports whether a node that goes is there still with these pods on it.
func lasts(node *cluster.Node, pods []*cluster.Pod) bool {
	return node.Claim == "" || slices.ContainsFunc(pods, hasToMove)
}

func hasToMove(pod *cluster.Pod) bool { return !pod.Fixed && !pod.Terminating }

// standing lists the nodes that are there: those that stay, and those that some pod has not left yet.
func (c *checker) standing() []*cluster.Node {
	var list []*cluster.Node
	for _, node := range c.after.Nodes {
		if !node.Deleting && !node.Disrupting {
			list = append(list, node)
		}
	}
	for _, node := range c.going {
		if lasts(node, c.bound[node]) {
			list = append(list, node)
		}
	}
	return list
}

// where returns the node that goes on which the pod runs still.
func (c *checker) where(pod *cluster.Pod) *cluster.Node {
	for _, node := range c.going {
		if slices.ContainsFunc(c.bound[node], func(p *cluster.Pod) bool { return p.UID == pod.UID && hasToMove(p) }) {
			return node
		}
	}
	return nil
}

func (c *checker) leaves(pod *cluster.Pod) bool { return c.where(pod) != nil }

func (c *checker) leave(pod *cluster.Pod) {
	if node := c.where(pod); node != nil {
		c.bound[node] = slices.DeleteFunc(slices.Clone(c.bound[node]),
			func(p *cluster.Pod) bool { return p.UID == pod.UID })
	}
}

// split tells pods that wait from the start from those that run on nodes that go.
func (c *checker) split(waiting []placement) (now, later []placement) {
	for _, p := range waiting {
		if c.leaves(p.pod) {
			later = append(later, p)
		} else {
			now = append(now, p)
		}
	}
	return now, later
}

// letGo takes away the pods that all leave at once.
func (c *checker) letGo() {
	budget := func(pod *cluster.Pod) int {
		return slices.IndexFunc(c.after.Guards, func(g cluster.Guard) bool {
			return g.Namespace == pod.Namespace && g.Pods.Matches(pod.Shape.Labels)
		})
	}
	count, moving := map[int]int{}, []*cluster.Pod(nil)
	for _, node := range c.going {
		for _, pod := range c.bound[node] {
			if hasToMove(pod) && c.known[pod.UID] {
				count[budget(pod)]++
				moving = append(moving, pod)
			}
		}
	}
	for _, pod := range moving {
		if at := budget(pod); at < 0 || count[at] <= c.after.Guards[at].AtOnce {
			c.leave(pod)
		}
	}
}
