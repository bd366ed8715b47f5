package bound

import (
	"math"
	"slices"
	"time"

	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
)

// Of returns the highest bound that is known for a scenario, in dollars per hour, and which one it is.
func Of(s scenario.Scenario) (dollars float64, kind string) {
	if s.OneByOne { // none of the nodes has room, so that the pod needs the cheapest new one
		return New(s.Pending[:1], s.Catalog).Single(), "single node"
	}
	return whole(s).highest()
}

// whole is the problem of all pods of a scenario on new nodes.
func whole(s scenario.Scenario) Problem {
	pods := slices.Clone(s.Pending)
	if s.Disrupt != "" { // all pods may move
		for _, n := range s.Nodes {
			pods = append(pods, n.Pods...)
		}
	}
	return New(pods, s.Offered())
}

// highest returns the highest bound that is known for a problem, in dollars per hour, and which one it is.
func (p Problem) highest() (dollars float64, kind string) {
	dollars, kind = p.Simple(), "simple"
	if fluid := p.Fluid(); fluid > dollars {
		dollars, kind = fluid, "fluid"
	}
	if len(p.Items) <= maxItems {
		if configuration := p.Configuration(configurationLimit); configuration > dollars {
			dollars, kind = configuration, "configuration"
		}
	}
	return dollars, kind
}

// The configuration program is tried for so many kinds of pods, and for so long.
const (
	maxItems           = 350
	configurationLimit = 20 * time.Second
)

// Single returns the price of the cheapest bin that holds one of every item.
func (p Problem) Single() float64 {
	least := math.Inf(1)
	for _, b := range p.Bins {
		fits := !slices.ContainsFunc(p.Items, func(i Item) bool { return !fits(i.Amounts, b.Room) })
		if fits {
			least = min(least, b.Price)
		}
	}
	return least
}

func fits(amounts, room []float64) bool {
	for i, amount := range amounts {
		if amount > room[i] {
			return false
		}
	}
	return true
}
