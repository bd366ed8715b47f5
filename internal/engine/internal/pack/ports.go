package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
)

// portRule: pods that want the same port of the host share no node. Ports of daemons are looked at by daemonRule.
type portRule struct {
	anyPool
	unexplained // on a new node only daemons have a port: see daemonRule
}

func (portRule) reads() []string { return []string{"HostPorts"} }

func (portRule) refuses(_ *solver, n *existing, a *attempt) topology.Verdict {
	if portsTaken(n.ports, a.info.Shape) {
		return topology.Never
	}
	return topology.Yes
}

func (portRule) placedOn(_ *solver, n *existing, a *attempt) {
	n.ports = append(n.ports, a.info.HostPorts...)
}

func (portRule) narrows(_ *solver, n *planned, a *attempt) topology.Verdict {
	if portsTaken(n.ports, a.info.Shape) {
		return topology.Never
	}
	return topology.Yes
}

func (portRule) placedIn(_ *solver, n *planned, a *attempt) {
	n.ports = append(n.ports, a.info.HostPorts...)
}

// ties: each pod takes its ports away from the next.
func (portRule) ties(info *shape) bool { return len(info.HostPorts) > 0 }

// alike: only shapes without ports come in groups.
func (portRule) alike(text []byte, _ *shape) []byte { return text }

// portsTaken reports whether a port that pods of the shape want is among those that are taken.
func portsTaken(taken []cluster.HostPort, c *cluster.Shape) bool {
	return slices.ContainsFunc(c.HostPorts, func(port cluster.HostPort) bool {
		return slices.ContainsFunc(taken, port.Conflicts)
	})
}

// withPorts returns the taken ports with those of a pod of the shape.
func withPorts(taken []cluster.HostPort, c *cluster.Shape) []cluster.HostPort {
	return append(taken, c.HostPorts...)
}

// samePorts reports whether pods of two shapes want the same port.
func samePorts(a, b *cluster.Shape) bool { return portsTaken(a.HostPorts, b) }
