package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// bin is what pods are placed in: the part that existing and planned nodes have in common.
type bin struct {
	// ports are the host ports that are taken. On an existing node those of daemons are among them. On a planned node
	// daemonRule prevents conflicts with them.
	ports []cluster.HostPort
	pods  []*cluster.Pod // placed in this round
	// volumes and claims are those of this round's pods that other pods may share.
	volumes, claims []string
}

// existing is a node that is there, or whose claim is on its way. What it is cannot be changed any more.
type existing struct {
	bin
	node     *cluster.Node
	free     resources.Vector // room for pods, less the daemons still to come; set by settle
	awaiting []awaited        // daemons still to come
	settled  bool
	closed   bool // it goes: nothing is placed on it
	staying  int  // pods of a closed node that have not left yet
}

// awaited is a daemon that is still to come, and what it will ask for on this node.
type awaited struct {
	*cluster.Shape
	requests resources.Vector
}

// settle computes what an existing node has left, when it is first looked at. Daemons that will run on it and have not
// come yet keep their place (P-06).
func (n *existing) settle(daemons []cluster.Daemon) {
	if n.settled {
		return
	}
	n.settled = true
	n.free = n.node.Allocatable.Minus(n.node.Used)
	n.ports = slices.Clone(n.node.Ports)
	for i := range daemons {
		daemon := &daemons[i]
		if !n.node.Awaits(daemon) {
			continue
		}
		want := daemon.OnNode(n.node)
		n.free = n.free.Minus(want)
		n.ports = withPorts(n.ports, daemon.Shape)
		n.awaiting = append(n.awaiting, awaited{daemon.Shape, want})
	}
}

// labelValue returns what is known of the node's label: its value and whether it is decided ("" and decided: the
// node will not have it).
func (n *existing) labelValue(key string) (string, bool) {
	value, present := n.node.Labels[key]
	return value, present || !n.node.Open.Holds(requirement.Key(key))
}

// standable returns the values that an open label of the node may get.
func (n *existing) standable(label string) []string {
	values, _ := n.node.Open.Get(requirement.Key(label)).Values()
	return values
}
