package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/foretell"
	"github.com/joiner-autoscaler/joiner/internal/view"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// Until is how far is foretold.
type Until string

// One plan, or plan after plan until nothing changes.
const (
	UntilPlan  Until = "plan"
	UntilQuiet Until = "quiet"
)

// Comparison is what would be different (U-03). Its names in JSON are an API (U-29).
type Comparison struct {
	APIVersion string `json:"apiVersion"` // APIVersion
	Kind       string `json:"kind"`       // "Comparison"
	Until      Until  `json:"until"`
	// Changed says that there is a change, and Changes what of it is another thing than before: nothing, when it is
	// equal to what is.
	Changed bool           `json:"changed"`
	Changes []ObjectChange `json:"changes"`
	// Before is the cluster without the change, once it has come to rest by itself, or after one plan where only that
	// was asked for; After is the cluster when the change has come, new nodes are there, and none has gone yet; Quiet
	// is when nothing changes any more, nil when only a plan was asked for. Without a change, Before is the cluster as
	// it is.
	Before Totals  `json:"before"`
	After  Totals  `json:"after"`
	Quiet  *Totals `json:"quiet,omitempty"`
	// Rounds is how many rounds it takes until nothing changes, and Restless says that it does not come to that.
	Rounds   int  `json:"rounds"`
	Restless bool `json:"restless,omitempty"`
	// Nodes are those that come, go, are replaced or are held, in that order.
	Nodes []NodeFate `json:"nodes"`
	// Pods are the workloads of which pods are evicted, wait or are lost.
	Pods []PodFate `json:"pods"`
	// Price sums up the totals.
	Price Prices `json:"price"`
	// NotForetold lists what may come otherwise, NotPlanned pods that no plan is for, such as gated ones, and Notes
	// what is without effect.
	NotForetold []string `json:"notForetold"`
	NotPlanned  []string `json:"notPlanned,omitempty"`
	Notes       []string `json:"notes,omitempty"`
	Estimated   bool     `json:"estimated,omitempty"`

	found bool // something of --fail-on happens
}

// ObjectChange is one field of one object that changes.
type ObjectChange struct {
	Object view.Object `json:"object"`
	Difference
}

// Prices are per hour.
type Prices struct {
	Before Dollars  `json:"before"`
	After  Dollars  `json:"after"`
	Quiet  *Dollars `json:"quiet,omitempty"`
}

// Fate is what becomes of a node.
type Fate string

// The fates of nodes.
const (
	Comes    Fate = "Comes"
	Goes     Fate = "Goes"
	Replaced Fate = "Replaced"
	Held     Fate = "Held"
)

// NodeFate is what becomes of one node.
type NodeFate struct {
	Name     string   `json:"name"`
	Pool     string   `json:"pool,omitempty"`
	Offering Offering `json:"offering"`
	Fate     Fate     `json:"fate"`
	// Reason is why it goes or is to go, spelled as in budgets; "" for one that comes. Why says more in words.
	Reason string `json:"reason,omitempty"`
	Why    string `json:"why,omitempty"`
	// Wave counts the rounds in which nodes of the pool go for this reason; 0 for a node that stays.
	Wave int `json:"wave,omitempty"`
	// Replaces are the nodes in whose place one comes.
	Replaces []string `json:"replaces,omitempty"`
	// Cause is what holds it.
	Cause *view.Cause `json:"cause,omitempty"`
	// Pods counts the pods that are evicted, by workload.
	Pods map[string]int `json:"pods,omitempty"`
}

// PodFate is what becomes of pods of one workload.
type PodFate struct {
	Workload string `json:"workload"`
	// Evicted, Waiting and Lost count pods: evictions from nodes that go, pods that have no node in the end, and those
	// that nobody makes again. NewWaiting counts those of Waiting that did not wait before.
	Evicted    int `json:"evicted,omitempty"`
	Waiting    int `json:"waiting,omitempty"`
	NewWaiting int `json:"newWaiting,omitempty"`
	Lost       int `json:"lost,omitempty"`
}

// stage returns a copy of the cluster on which plans are carried out.
func (w *World) stage(going map[string]plan.DisruptionReason) (*foretell.Stage, error) {
	classes := slices.SortedFunc(maps.Keys(w.classes()), func(a, b world.ClassRef) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Name, b.Name))
	})
	return foretell.New(foretell.Input{Objects: w.told, Catalogue: w.catalogue, Classes: classes, Fleet: both{},
		Now: w.now, Config: w.config, MinSavingPercent: engine.DefaultMinSavingPercent, SpotToSpot: w.spotToSpot,
		Going: going})
}

// Compare foretells the cluster with a change, or without one if it is empty. The error names what an API server would
// refuse in the change, or what does not exist.
func (w *World) Compare(change Change, until Until) (Comparison, error) {
	c := Comparison{APIVersion: APIVersion, Kind: "Comparison", Until: until, Changed: !change.Empty(),
		Changes: []ObjectChange{},
		Nodes:   []NodeFate{}, Pods: []PodFate{}, NotForetold: []string{}, Estimated: w.estimated}
	edits, err := w.edits(change)
	if err != nil {
		return c, err
	}
	for _, e := range edits {
		about := view.Object{Kind: kindOf(e.about()), Name: nameOfObject(e.about())}
		for _, d := range e.diff {
			c.Changes = append(c.Changes, ObjectChange{Object: about, Difference: d})
		}
	}
	for _, name := range change.RemoveNodes {
		c.Changes = append(c.Changes, ObjectChange{Object: view.Object{Kind: "Node", Name: name},
			Difference: Difference{
				Old: "is there"}})
	}
	c.Notes = slices.Clone(w.Notes)
	first, err := w.stage(nil)
	if err != nil {
		return c, err
	}
	if !c.Changed {
		c.Before = w.totals(first)
		return c, c.play(w, first, nil)
	}
	if first.Plan(); until == UntilQuiet {
		first.Settle()
	}
	c.Before = w.totals(first)
	after, going, err := w.with(first.Objects(), edits, change.RemoveNodes)
	if err != nil {
		return c, err
	}
	second, err := after.stage(going)
	if err != nil {
		return c, err
	}
	c.Notes = append(c.Notes, w.byItself(first.Record())...)
	c.Notes = append(c.Notes, after.Notes...)
	return c, c.play(after, second, heldOn(first))
}

// play plays as far as requested, and records what happens to nodes and pods.
func (c *Comparison) play(w *World, s *foretell.Stage, held map[string]bool) error {
	s.Plan()
	c.After = w.totals(s)
	last := c.After
	c.Price = Prices{Before: c.Before.PricePerHour, After: c.After.PricePerHour}
	if c.Until == UntilQuiet {
		s.Settle()
		quiet := w.totals(s)
		c.Quiet, c.Price.Quiet, last = &quiet, &quiet.PricePerHour, quiet
	}
	record := s.Record()
	c.Rounds, c.Restless = record.Rounds, c.Until == UntilQuiet && !record.Quiet
	c.fates(w, s, record, held)
	c.podFates(w, record, last)
	c.NotForetold = w.notForetold(c, record)
	if len(w.idle) > 0 {
		c.NotPlanned = w.notPlanned(engine.Launches(w.store.Snapshot()))
	}
	slices.Sort(c.Notes)
	c.Notes = slices.Compact(c.Notes)
	return nil
}

// heldOn returns the claims of nodes that are due for removal but stay.
func heldOn(s *foretell.Stage) map[string]bool {
	held := map[string]bool{}
	for _, node := range s.Snapshot().Nodes {
		if _, stays := s.Held(node); stays {
			held[node.Claim] = true
		}
	}
	return held
}

// fates records what happens to nodes. It leaves out those that come and go again.
func (c *Comparison) fates(w *World, s *foretell.Stage, record foretell.Record, held map[string]bool) {
	replaced, came, left := map[string]bool{}, map[types.UID]bool{}, map[types.UID]bool{}
	inRound := func(claim string, round int) string { return fmt.Sprint(claim, " ", round) }
	for _, l := range record.Launched {
		came[l.UID] = true
		for _, claim := range l.Replaces {
			replaced[inRound(claim, l.Round)] = true
		}
	}
	for _, gone := range record.Gone {
		left[gone.UID] = true
	}
	passing := 0
	for _, l := range record.Launched {
		if left[l.UID] {
			passing++
			continue
		}
		c.Nodes = append(c.Nodes, NodeFate{Name: l.Node, Pool: l.Pool, Fate: Comes, Replaces: l.Replaces,
			Why: whyComes(l), Offering: Offering{Type: l.Type, Zone: l.Zone, CapacityType: l.Kind}})
	}
	waves := map[string][]int{}
	for _, gone := range record.Gone {
		if came[gone.UID] {
			continue
		}
		fate := NodeFate{Name: cmp.Or(gone.Node, gone.Claim), Pool: gone.Pool, Fate: Goes, Reason: string(gone.Reason),
			Offering: Offering{Type: gone.Type, Zone: gone.Zone, CapacityType: gone.Kind},
			Why:      cmp.Or(gone.Drift, gone.Why), Pods: w.byWorkload(gone.Pods)}
		if replaced[inRound(gone.Claim, gone.Round)] || engine.Renews(gone.Reason) {
			fate.Fate = Replaced
		}
		key := gone.Pool + " " + fate.Reason
		if !slices.Contains(waves[key], gone.Round) {
			waves[key] = append(waves[key], gone.Round)
		}
		fate.Wave = slices.Index(waves[key], gone.Round) + 1
		c.Nodes = append(c.Nodes, fate)
	}
	for _, node := range s.Snapshot().Nodes {
		if c.Until == UntilPlan {
			break // no node has had a chance to go
		}
		standing, stays := s.Held(node)
		if !stays || held[node.Claim] {
			continue
		}
		found := view.Standing(standing, node.Pool)
		c.Nodes = append(c.Nodes, NodeFate{Name: cmp.Or(node.Name, node.Claim), Pool: node.Pool, Fate: Held,
			Reason: cmp.Or(found.Wanted, string(s.Reason(node.Claim))),
			Why:    cmp.Or(s.DriftText(node.Claim), node.Held),
			Cause:  found.Cause, Offering: Offering{Type: node.InstanceType,
				Zone:         node.Labels[string(catalog.LabelZone)],
				CapacityType: node.Labels[string(catalog.LabelCapacityType)]}})
	}
	if passing > 0 {
		c.Notes = append(c.Notes, count(passing, "more node comes and goes again on the way",
			"more nodes come and go again on the way"))
	}
	order := []Fate{Comes, Goes, Replaced, Held}
	slices.SortStableFunc(c.Nodes, func(a, b NodeFate) int {
		return slices.Index(order, a.Fate) - slices.Index(order, b.Fate)
	})
}

// whyComes returns what a node is launched for, as text.
func whyComes(l foretell.Launched) string {
	switch {
	case len(l.Replaces) > 0:
		return "in place of nodes that go"
	case l.Pods > 0:
		return "for pods that wait"
	}
	return "as a replica of its pool"
}

// byWorkload counts pods by workload.
func (w *World) byWorkload(pods []types.NamespacedName) map[string]int {
	counts := map[string]int{}
	for _, pod := range pods {
		counts[w.workload(plan.PodRef{Namespace: pod.Namespace, Name: pod.Name})]++
	}
	return counts
}

// podFates sums up what happens to pods, by workload.
func (c *Comparison) podFates(w *World, record foretell.Record, last Totals) {
	fates := map[string]*PodFate{}
	of := func(workload string) *PodFate {
		if fates[workload] == nil {
			fates[workload] = &PodFate{Workload: workload}
		}
		return fates[workload]
	}
	for _, gone := range record.Gone {
		for workload, n := range w.byWorkload(gone.Pods) {
			of(workload).Evicted += n
		}
	}
	for workload, n := range w.byWorkload(record.Lost) {
		of(workload).Lost += n
	}
	before := c.Before.waitingOf()
	for workload, n := range last.waitingOf() {
		of(workload).Waiting, of(workload).NewWaiting = n, max(0, n-before[workload])
	}
	for _, workload := range slices.Sorted(maps.Keys(fates)) {
		c.Pods = append(c.Pods, *fates[workload])
	}
}

// byItself returns what happens without the change, which the table does not show.
func (w *World) byItself(record foretell.Record) []string {
	if len(w.nodes) == 0 || len(record.Gone)+len(record.Launched) == 0 {
		return nil // files without nodes: every node comes without the change
	}
	var parts []string
	if n := len(record.Launched); n > 0 {
		parts = append(parts, count(n, "node comes", "nodes come"))
	}
	if n := len(record.Gone); n > 0 {
		parts = append(parts, count(n, "node goes", "nodes go"))
	}
	return []string{strings.Join(parts, " and ") + " without the change as well: \"before\" is the cluster after that"}
}
