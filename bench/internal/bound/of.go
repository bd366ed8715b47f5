package bound

import (
	"math"
	"slices"
	"time"

	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
)

// Bound is a lower bound on the price of any plan, in dollars per hour, and how it was found.
type Bound struct {
	Dollars float64
	Kind    string
}

// The kinds of bounds. All but the last ignore constraints between pods, except that some pods need a node each.
const (
	SingleNode    = "single node"
	Simple        = "simple"
	Fluid         = "fluid"
	Configuration = "configuration"
	Constrained   = "constrained" // the same with what spread over hostnames implies
)

// Of returns the bounds that are known for a scenario, the highest first.
func Of(s scenario.Scenario) []Bound {
	if s.OneByOne { // none of the nodes has room, so that the pod needs the cheapest new one
		return []Bound{{New(s.Pending[:1], s.Catalog).Single(), SingleNode}}
	}
	list := whole(s).bounds()
	if len(s.Nodes) == 0 { // else pods were bound when other nodes were there
		groups := apart(s.Pending)
		if more := spread(s.Pending, nodesFor(groups)); len(more) > 0 {
			p := New(s.Pending, s.Offered(), append(groups, more...)...)
			list = append(list, Bound{max(p.Fluid(), p.configuration()), Constrained})
		}
	}
	slices.SortStableFunc(list, compareBounds)
	return list
}

func compareBounds(a, b Bound) int {
	switch {
	case a.Dollars > b.Dollars:
		return -1
	case a.Dollars < b.Dollars:
		return 1
	}
	return 0
}

// whole is the problem of all pods of a scenario on new nodes.
func whole(s scenario.Scenario) Problem {
	pods := slices.Clone(s.Pending)
	if s.Disrupt != "" { // all pods may move
		for _, n := range s.Nodes {
			pods = append(pods, n.Pods...)
		}
	}
	return New(pods, s.Offered(), apart(pods)...)
}

// bounds returns the bounds of a problem.
func (p Problem) bounds() []Bound {
	return []Bound{{p.Simple(), Simple}, {p.Fluid(), Fluid}, {p.configuration(), Configuration}}
}

// highest returns the highest bound of a problem, in dollars per hour.
func (p Problem) highest() float64 { return slices.MinFunc(p.bounds(), compareBounds).Dollars }

// configuration returns the configuration bound, or 0 if the program is too large.
func (p Problem) configuration() float64 {
	if len(p.Items) > maxItems {
		return 0
	}
	return p.Configuration(configurationLimit)
}

// Limits of the configuration program: the kinds of pods, and the time.
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
