package pack

import (
	"fmt"
	"iter"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// deviceRule: a pod with ResourceClaims goes to an existing, initialized node that has its devices (K-42). It is not
// known yet which devices a new node will have, so none is planned for it. What the plan has given away is gone for
// the next pod (solver.devices).
type deviceRule struct{ anyOffer }

func (deviceRule) reads() []string { return []string{"Claims"} }

func (deviceRule) refuses(s *solver, n *existing, a *attempt) topology.Verdict {
	if len(a.info.Claims) == 0 {
		return topology.Yes
	}
	// Devices only get fewer in a plan. A shared claim may later be allocated on a node for another pod. But then it
	// could have been allocated there for this pod as well.
	if a.devices = nil; s.devices == nil || !publishes(n.node) {
		return topology.Never
	}
	left, _ := s.devices.Place(a.info.Shape, n.node)
	if left == nil {
		return topology.Never
	}
	if why := s.devices.Breaks(a.info.Shape, s.reached(a)); why != "" {
		if s.broken == nil {
			s.broken = map[*cluster.Shape]string{}
		}
		s.broken[a.info.Shape] = why
		return topology.Never
	}
	a.devices = left
	return topology.Yes
}

// reached returns the nodes that no rule but deviceRule refuses for the pods of an attempt. kube-scheduler looks for
// devices on these.
func (s *solver) reached(a *attempt) iter.Seq[*cluster.Node] {
	return func(yield func(*cluster.Node) bool) {
		for i, n := range s.existing {
			if n.closed || !publishes(n.node) {
				continue
			}
			n.settle(s.snapshot.Daemons)
			other := *a
			other.index = i
			refused := slices.ContainsFunc(s.rules.existing, func(r rule) bool {
				return r != rule(deviceRule{}) && r.refuses(s, n, &other) != topology.Yes
			})
			if !refused && !yield(n.node) {
				return
			}
		}
	}
}

// publishes reports whether a node's devices are known. A node that is not initialized has not published all of them.
func publishes(node *cluster.Node) bool { return node.Name != "" && node.Initialized }

func (deviceRule) placedOn(s *solver, _ *existing, a *attempt) {
	if len(a.info.Claims) > 0 {
		s.devices = a.devices
	}
}

func (deviceRule) opens(_ *solver, _ *pool, info *shape, ways []way) []way {
	if len(info.Claims) > 0 {
		return nil
	}
	return ways
}

func (deviceRule) ties(info *shape) bool { return len(info.Claims) > 0 }

// alike: only shapes without claims come in groups.
func (deviceRule) alike(text []byte, _ *shape) []byte { return text }

func (deviceRule) explains(s *solver, e *explainer) bool {
	if len(e.shape.Claims) == 0 {
		return true
	}
	if s.devices == nil {
		return e.stop(plan.ByPod, cause.DevicesUnknown, "",
			"it asks for devices by ResourceClaims, and which nodes have them is not known")
	}
	if code, text := s.devices.Problem(e.shape); code != "" {
		return e.stop(plan.ByPod, code, "", text)
	}
	if why := s.broken[e.shape]; why != "" {
		return e.stop(plan.ByPod, cause.DeviceClaimInvalid, "", why)
	}
	wanted, why := s.devices.Wanted(e.shape), ""
	for _, node := range s.snapshot.Nodes { // full ones have no bin
		if node.Deleting || node.Disrupting || !publishes(node) {
			continue
		}
		left, text := s.devices.Place(e.shape, node)
		if left != nil {
			return e.stop(plan.ByPod, cause.DevicesOutOfReach, node.Name, fmt.Sprintf(
				"%s: node %s has them, and the pod cannot run there for another reason", wanted, node.Name))
		}
		if why == "" {
			why = text
		}
	}
	detail := wanted + ": no initialized node has them left" // what is asked for first: events are short
	if why != "" {
		detail += ": " + why
	}
	return e.stop(plan.ByPod, cause.DevicesInUse, "", detail)
}
