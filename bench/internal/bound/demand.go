// Package bound computes lower bounds on the price of any plan for a set of pods: the yardstick beside the peer.
//
// Rounding cannot make a bound wrong, because each is scaled until it is valid (see [Columns]). constraints.go adds
// what follows from constraints between pods.
package bound

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Item is a kind of pod: what one pod requests in each row, and how many pods there are.
type Item struct {
	Amounts []float64
	Count   float64
}

// Bin is a kind of node: what it has in every row, and its price per hour at the cheapest offering.
type Bin struct {
	Room  []float64
	Price float64
}

// Problem is a set of pods to place on new nodes. A row is a resource, or a group of pods with a limit for each node.
// Rows are scaled so that the demand of all pods together is 1.
type Problem struct {
	Items []Item
	Bins  []Bin
	rows  int
}

// New returns the problem of placing pods on available offerings of a catalogue, with the limits of groups.
func New(pods []*corev1.Pod, c catalog.Catalog, groups ...group) Problem {
	kinds, counts := map[string]resources.Amounts{}, map[string]float64{}
	rows := map[string]float64{} // name of the row → demand
	for _, pod := range pods {
		amounts := requests(pod)
		for _, g := range groups {
			if g.has(pod) {
				amounts[g.name] = 1
			}
		}
		key := fmt.Sprint(amounts) // maps print in the order of their keys
		kinds[key] = amounts
		counts[key]++
		for name, amount := range amounts {
			rows[name] += float64(amount)
		}
	}
	names := slices.Sorted(maps.Keys(rows))
	p := Problem{rows: len(names)}
	for _, key := range slices.Sorted(maps.Keys(kinds)) {
		item := Item{Count: counts[key]}
		for _, name := range names {
			item.Amounts = append(item.Amounts, float64(kinds[key][name])/rows[name])
		}
		p.Items = append(p.Items, item)
	}
	most := map[string]int64{}
	for _, g := range groups {
		most[g.name] = g.most
	}
	for _, t := range c.Types {
		if bin, some := binOf(t, names, rows, most); some {
			p.Bins = append(p.Bins, bin)
		}
	}
	p.Bins = undominated(p.Bins)
	return p
}

// requests sums the requests of the pod's containers, and adds 1 pod.
func requests(pod *corev1.Pod) resources.Amounts {
	amounts := resources.Amounts{resources.NamePods: 1}
	for _, c := range pod.Spec.Containers {
		for name, quantity := range c.Resources.Requests {
			if name == corev1.ResourceCPU {
				amounts[string(name)] += quantity.MilliValue()
			} else {
				amounts[string(name)] += quantity.Value()
			}
		}
	}
	return amounts
}

func binOf(t catalog.Type, names []string, demand map[string]float64, most map[string]int64) (Bin, bool) {
	allocatable := scenario.Allocatable(t)
	bin, some := Bin{}, false
	for _, o := range t.Offerings {
		if o.Available && (!some || o.Price.Dollars() < bin.Price) {
			bin.Price, some = o.Price.Dollars(), true
		}
	}
	for _, name := range names {
		room := allocatable[name]
		if limit, grouped := most[name]; grouped {
			room = limit
		}
		bin.Room = append(bin.Room, float64(room)/demand[name])
	}
	return bin, some
}

// undominated leaves out each bin for which another one has at least as much room, at the same price or a lower one.
func undominated(bins []Bin) []Bin {
	var kept []Bin
	for i, b := range bins {
		beaten := slices.ContainsFunc(bins[:i], func(other Bin) bool { return other.covers(b) }) ||
			slices.ContainsFunc(bins[i+1:], func(other Bin) bool { return other.covers(b) && !b.covers(other) })
		if !beaten {
			kept = append(kept, b)
		}
	}
	return kept
}

func (b Bin) covers(other Bin) bool {
	for i := range b.Room {
		if b.Room[i] < other.Room[i] {
			return false
		}
	}
	return b.Price <= other.Price
}

// Simple returns the simple bound in dollars per hour. For each row, this is the whole demand at the cheapest price
// per unit; the row with the highest price counts.
func (p Problem) Simple() float64 {
	highest := 0.0
	for row := range p.rows {
		most := 0.0 // share of the demand for a dollar
		for _, b := range p.Bins {
			most = max(most, b.Room[row]/b.Price)
		}
		if most > 0 {
			highest = max(highest, 1/most)
		}
	}
	return highest
}
