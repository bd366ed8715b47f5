package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
)

// driverRule: a CSI driver may have to be on a node before its pods (K-58, CSIDriver.preventPodSchedulingIfMissing). A
// pod with volumes of such a driver goes to no node without it. On a node that is not initialized the driver is still
// to come: the node's claim waits for it.
type driverRule struct {
	anyOffer
	anyPool
	untied
	unexplained // a new node gets the driver
}

func (driverRule) reads() []string { return []string{"Drivers"} }

func (driverRule) refuses(_ *solver, n *existing, a *attempt) topology.Verdict {
	if !n.node.Initialized {
		return topology.Yes
	}
	for _, driver := range a.info.Drivers {
		if !slices.Contains(n.node.Drivers, driver) {
			return topology.Never
		}
	}
	return topology.Yes
}

func (driverRule) placedOn(*solver, *existing, *attempt) {}

// driversOf returns the drivers that the node must have for its pods, sorted.
func (b *planned) driversOf() []string {
	var drivers []string
	for _, pod := range b.pods {
		drivers = append(drivers, pod.Shape.Drivers...)
	}
	slices.Sort(drivers)
	return slices.Compact(drivers)
}
