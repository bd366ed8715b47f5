package whatif

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// PoolFacts are what a pool has and what it is asked for. Its names in JSON are an API (U-29).
type PoolFacts struct {
	// Nodes counts the NodeClaims of the pool; OnTheWay those of them that are not initialized, Leaving those that go.
	Nodes    int `json:"nodes"`
	OnTheWay int `json:"onTheWay,omitempty"`
	Leaving  int `json:"leaving,omitempty"`
	// Limits are those of the pool, that of nodes first.
	Limits []view.Bound `json:"limits,omitempty"`
	// PricePerHour is of the machines that are launched. Unpriced counts those whose price nobody knows; they are not
	// in PricePerHour.
	PricePerHour Dollars `json:"pricePerHour"`
	Unpriced     int     `json:"unpriced,omitempty"`
	// Estimated says that prices are not those of the account or the region.
	Estimated bool `json:"estimated,omitempty"`
	// Launches is what the pool would launch now; nil for nothing.
	Launches *PoolLaunches `json:"launches,omitempty"`
	// Demand says where the pods that wait go, those of Launches left out: most pods first.
	Demand []PoolDemand `json:"demand,omitempty"`

	machines int // that are launched
}

// PoolLaunches sums up the nodes that a pool would launch.
type PoolLaunches struct {
	Nodes int `json:"nodes"`
	Pods  int `json:"pods"`
	// Types and Zones are those of all these nodes, in the order in which they come.
	Types []string `json:"types"`
	Zones []string `json:"zones"`
	// PricePerHour is of all nodes, each at its cheapest; Unpriced counts those whose price nobody knows.
	PricePerHour Dollars `json:"pricePerHour"`
	Unpriced     int     `json:"unpriced,omitempty"`
}

// PoolDemand is a number of pods that wait, and what becomes of them.
type PoolDemand struct {
	Pods int `json:"pods"`
	// Goes is where they go: "Pool", "Nodes" or "Nowhere".
	Goes string `json:"goes"`
	// Pool is the other pool that launches for them, and Refuses why this pool does not take those that go nowhere.
	Pool    string     `json:"pool,omitempty"`
	Refuses cause.Code `json:"refuses,omitempty"`
}

// factsOf summarizes a pool.
func (w *World) factsOf(s *cluster.Snapshot, pool *cluster.Pool, standing engine.PoolStanding) *PoolFacts {
	facts := &PoolFacts{Estimated: w.estimated, Limits: view.Bounds(s, pool), Launches: launchesOf(standing.Launches)}
	for _, node := range s.Nodes {
		if node.Pool != pool.Name || node.Claim == "" {
			continue
		}
		facts.Nodes++
		switch {
		case node.Leaves():
			facts.Leaving++
		case !node.Initialized:
			facts.OnTheWay++
		}
		if !node.Launched && !node.Initialized {
			continue // no machine costs anything yet
		}
		facts.machines++
		if node.Price == resources.Unpriced {
			facts.Unpriced++
		} else {
			facts.PricePerHour += Dollars(node.Price)
		}
	}
	for _, d := range standing.Demand {
		demand := PoolDemand{Pods: d.Pods, Goes: "Nodes", Pool: d.Pool, Refuses: d.Refuses}
		switch {
		case d.Waits:
			demand.Goes = "Nowhere"
		case d.Pool != "":
			demand.Goes = "Pool"
		}
		facts.Demand = append(facts.Demand, demand)
	}
	return facts
}

func launchesOf(launches []plan.Launch) *PoolLaunches {
	if len(launches) == 0 {
		return nil
	}
	sum := &PoolLaunches{Nodes: len(launches)}
	for _, l := range launches {
		sum.Pods += len(l.Pods)
		sum.Types, sum.Zones = united(sum.Types, l.Types), united(sum.Zones, l.Zones)
		if price := l.Cheapest.Price.OfNode(); price == resources.Unpriced {
			sum.Unpriced++
		} else {
			sum.PricePerHour += Dollars(price)
		}
	}
	slices.Sort(sum.Zones)
	return sum
}

// united appends the items that a list lacks.
func united(list, more []string) []string {
	for _, name := range more {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// priced formats a sum of prices and the number of unpriced items (U-21); "-" if all are unpriced.
func priced(sum Dollars, of, unpriced int, estimated bool) string {
	if of == unpriced {
		return "-"
	}
	text := "$" + cents(sum) + "/h"
	if estimated {
		text = "~" + text
	}
	if unpriced > 0 {
		text += fmt.Sprintf(" +%d unpriced", unpriced)
	}
	return text
}

// launches returns what the pool would launch, as text; "" for nothing.
func (f *PoolFacts) launches() string {
	l := f.Launches
	if l == nil {
		return ""
	}
	text := count(l.Nodes, "node", "nodes")
	if l.Pods > 0 {
		text += " for " + count(l.Pods, "pod", "pods")
	}
	price := priced(l.PricePerHour, l.Nodes, l.Unpriced, f.Estimated)
	if l.Nodes > 1 {
		price += " together"
	}
	return fmt.Sprintf("%s, %s: %s in %s", text, price, view.Some(l.Types, view.TypesShown), view.Zones(l.Zones))
}

// write prints the facts below the pool's explanation. If the pool launches nothing for a cause of its own, they
// include what it would launch.
func (f *PoolFacts) write(b *strings.Builder, launches bool) {
	text := fmt.Sprint(f.Nodes)
	for i, l := range f.Limits {
		kind := limit.Kind(l.Hard)
		if i == 0 && l.Resource == resources.NameNodes {
			text += fmt.Sprintf(" of %s (%s limit)", l.Limit, kind)
			continue
		}
		text += fmt.Sprintf(", %s %s of %s (%s limit)", l.Resource, l.Used, l.Limit, kind)
	}
	if f.OnTheWay > 0 {
		text += fmt.Sprintf(", %d on the way", f.OnTheWay)
	}
	if f.Leaving > 0 {
		text += fmt.Sprintf(", %d leaving", f.Leaving)
	}
	if f.machines > 0 {
		text += ", " + priced(f.PricePerHour, f.machines, f.Unpriced, f.Estimated)
	}
	fmt.Fprintf(b, "  %-9s  %s\n", "nodes", text)
	if f.Launches != nil && !launches {
		fmt.Fprintf(b, "  %-9s  %s\n", "planned", f.launches())
	}
	for i, d := range f.Demand {
		lead := "pods"
		if i > 0 {
			lead = ""
		}
		text := count(d.Pods, "goes", "go") + " onto nodes that there are or that are on the way"
		switch d.Goes {
		case "Pool":
			text = count(d.Pods, "goes", "go") + " to NodePool " + d.Pool
		case "Nowhere":
			text = count(d.Pods, "waits", "wait") + ", and this NodePool says: " + string(d.Refuses)
		}
		fmt.Fprintf(b, "  %-9s  %s\n", lead, text)
	}
}
