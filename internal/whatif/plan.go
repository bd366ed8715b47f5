package whatif

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// Result is what a plan comes to. Its names in JSON are an API (U-29).
type Result struct {
	APIVersion string `json:"apiVersion"` // APIVersion
	Kind       string `json:"kind"`       // "Simulation"
	// Launches are groups of nodes that are alike, by pool in the order of the plan.
	Launches []Launch `json:"launches"`
	// Waiting are groups of pods of one workload that wait for the same, ordered by workload.
	Waiting []Waiting `json:"waiting"`
	// Pods are all that the plan is for.
	Pods Pods `json:"pods"`
	// Nodes and PricePerHour are of all launches. Unpriced counts nodes whose price nobody knows; they are not in
	// PricePerHour.
	Nodes        int     `json:"nodes"`
	PricePerHour Dollars `json:"pricePerHour"`
	Unpriced     int     `json:"unpriced,omitempty"`
	// Estimated says that prices are not those of the account or the region that the nodes would be in.
	Estimated bool `json:"estimated,omitempty"`
	// Buffers are the CapacityBuffers, ordered by name.
	Buffers []Buffer `json:"buffers,omitempty"`
	// NotPlanned are pods that no plan is for, such as gated ones, and Notes what is without effect; sorted.
	NotPlanned []string `json:"notPlanned,omitempty"`
	Notes      []string `json:"notes,omitempty"`
}

// APIVersion is that of everything that joinerctl prints for programs.
const APIVersion = "cli.joiner.sh/v1"

// Dollars is an amount per hour. In JSON it is a number.
type Dollars resources.Money

// PerHour converts an amount from 0 to 1000000 dollars.
func PerHour(dollars float64) (Dollars, error) {
	m, err := resources.FromDollars(dollars)
	return Dollars(m), err
}

// MarshalJSON writes dollars with as many decimals as are needed.
func (d Dollars) MarshalJSON() ([]byte, error) { return []byte(resources.Money(d).String()), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (d *Dollars) UnmarshalJSON(data []byte) error {
	var dollars float64
	if err := json.Unmarshal(data, &dollars); err != nil {
		return err
	}
	m, err := resources.FromDollars(dollars)
	*d = Dollars(m)
	return err
}

// String formats it as in plans: 0.096.
func (d Dollars) String() string { return resources.Money(d).String() }

// Pods counts pods.
type Pods struct {
	New      int `json:"new"`      // on nodes that are launched
	Existing int `json:"existing"` // on nodes that there are
	Waiting  int `json:"waiting"`
}

// Launch is a number of nodes that are alike.
type Launch struct {
	Nodes int    `json:"nodes"`
	Pool  string `json:"pool"`
	// Types fit, cheapest offering first.
	Types         []string `json:"types"`
	Zones         []string `json:"zones"`
	CapacityTypes []string `json:"capacityTypes"`
	// Cheapest is the offering that comes first by price, and PricePerHour what one node costs in it: nil when nobody
	// knows.
	Cheapest     Offering `json:"cheapest"`
	PricePerHour *Dollars `json:"pricePerHour"`
	// Commitment pays for each of them, PaidPerHour of its price on demand; "" when none does (K-55).
	Commitment  string  `json:"commitment,omitempty"`
	PaidPerHour Dollars `json:"paidPerHour,omitempty"`
	// Pods counts the pods of each workload, namespace/name, on all these nodes.
	Pods map[string]int `json:"pods"`
	// Room counts the pods of each CapacityBuffer, namespace/name, for which these nodes have room.
	Room map[string]int `json:"room,omitempty"`
}

// Offering is an instance type in a zone and a capacity type.
type Offering struct {
	Type         string `json:"type"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
}

// Waiting is a number of pods of one workload that get no node.
type Waiting struct {
	Workload string `json:"workload"` // namespace/name
	Kind     string `json:"kind"`     // of the workload
	Pods     int    `json:"pods"`
	view.Waiting
}

// Plan plans for the waiting pods.
func (w *World) Plan() Result {
	s := w.store.Snapshot()
	p := engine.Launches(s)
	r := Result{APIVersion: APIVersion, Kind: "Simulation", Launches: []Launch{}, Waiting: []Waiting{}, Notes: w.Notes,
		NotPlanned: w.notPlanned(p), Estimated: w.estimated, Buffers: w.buffers(s, p)}
	of := bufferOf(s)
	r.Pods.Existing = len(p.Nominations)
	at := map[string]int{}
	for _, l := range p.Launches {
		r.Nodes++
		r.Pods.New += len(l.Pods)
		price := l.Cheapest.Price.OfNode()
		if price == resources.Unpriced {
			r.Unpriced++
		} else {
			r.PricePerHour += Dollars(price)
		}
		key := fmt.Sprint(l.Pool, l.Types, l.Zones, l.CapacityTypes, price, l.Cheapest.Commitment)
		i, known := at[key]
		if !known {
			i = len(r.Launches)
			at[key] = i
			group := Launch{Pool: l.Pool, Types: l.Types, Zones: l.Zones, CapacityTypes: l.CapacityTypes,
				Pods:       map[string]int{},
				Commitment: l.Cheapest.Commitment.Name, PaidPerHour: Dollars(l.Cheapest.Commitment.Pays),
				Cheapest: Offering{Type: l.Cheapest.Type, Zone: l.Cheapest.Zone,
					CapacityType: l.Cheapest.CapacityType}}
			if price != resources.Unpriced {
				known := Dollars(price)
				group.PricePerHour = &known
			}
			r.Launches = append(r.Launches, group)
		}
		r.Launches[i].Nodes++
		for _, pod := range l.Pods {
			r.Launches[i].Pods[w.workload(pod)]++
		}
		for _, pod := range l.Buffers {
			if r.Launches[i].Room == nil {
				r.Launches[i].Room = map[string]int{}
			}
			r.Launches[i].Room[of[pod.UID]]++
		}
	}
	r.Waiting = w.waits(p)
	for _, group := range r.Waiting {
		r.Pods.Waiting += group.Pods
	}
	return r
}

// waits groups the pods without a node by workload and reason.
func (w *World) waits(p plan.Plan) []Waiting {
	groups := []Waiting{}
	at := map[string]int{}
	for _, u := range p.Unplaced {
		workload := w.workload(u.Pod)
		key := workload + " " + u.String()
		i, known := at[key]
		if !known {
			i = len(groups)
			at[key] = i
			groups = append(groups, Waiting{Workload: workload, Kind: w.kindOf(u.Pod), Waiting: view.Waits(u)})
		}
		groups[i].Pods++
	}
	slices.SortStableFunc(groups, func(a, b Waiting) int { return cmp.Compare(a.Workload, b.Workload) })
	return groups
}

// workload returns the workload of a pod, namespace/name; a pod without one is its own.
func (w *World) workload(pod plan.PodRef) string {
	owner := w.owners[pod.Namespace+"/"+pod.Name]
	_, name, _ := strings.Cut(owner, "/")
	return pod.Namespace + "/" + cmp.Or(name, pod.Name)
}

// kindOf returns the kind of a pod's workload: Pod if it has none.
func (w *World) kindOf(pod plan.PodRef) string {
	kind, name, _ := strings.Cut(w.owners[pod.Namespace+"/"+pod.Name], "/")
	if name == "" {
		return "Pod"
	}
	return kind
}

// notPlanned returns which pods no plan is for, and why.
func (w *World) notPlanned(p plan.Plan) []string {
	planned := map[string]bool{}
	for _, l := range p.Launches {
		for _, pod := range l.Pods {
			planned[pod.String()] = true
		}
	}
	for _, n := range p.Nominations {
		planned[n.Pod.String()] = true
	}
	for _, u := range p.Unplaced {
		planned[u.Pod.String()] = true
	}
	counts := map[string]int{}
	for name, why := range w.idle {
		if !planned[name] {
			namespace, pod, _ := strings.Cut(name, "/")
			counts[w.workload(plan.PodRef{Namespace: namespace, Name: pod})+": "+why]++
		}
	}
	var lines []string
	for _, line := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%d of %s", counts[line], line))
	}
	return lines
}
