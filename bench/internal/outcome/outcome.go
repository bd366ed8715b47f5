// Package outcome has the results of plans, in the same terms for both sides.
package outcome

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Outcome is a plan: new nodes and the pods that go to existing ones. Pods are named by namespace/name.
type Outcome struct {
	Launches []Launch
	// Existing maps a node to the pods nominated to it.
	Existing map[string][]string
	Unplaced []string
	// Order is the order in which the side placed the pods, as far as it is known.
	Order []string
	// CutOff says that the side was stopped before it had looked at every pod.
	CutOff bool
}

// Launch is a new node. Its claim allows more than one offering; this is the cheapest available one.
type Launch struct {
	Type, Zone, CapacityType string
	Price                    resources.Money // per hour
	Pods                     []string
}

// Placed returns the number of pods that have a place.
func (o Outcome) Placed() int {
	n := 0
	for _, l := range o.Launches {
		n += len(l.Pods)
	}
	for _, pods := range o.Existing {
		n += len(pods)
	}
	return n
}

// Price returns the price per hour of all launches.
func (o Outcome) Price() resources.Money {
	var sum resources.Money
	for _, l := range o.Launches {
		sum += l.Price
	}
	return sum
}

// Sort puts a launch's pods in order, so that outcomes compare.
func (l *Launch) Sort() { slices.Sort(l.Pods) }
