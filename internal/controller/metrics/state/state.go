// Package state computes the gauges of the state of nodes, pods, pools and conditions for each scrape, from the
// objects that the watches show. It remembers nothing: a series is gone with its object, and no loop updates any
// (K-13). It is pure. Names and labels are Karpenter's (K-08).
//
// One family can have a series for each pod, with a dozen labels. So series are written as text, not created as
// objects for the library. Common labels are formatted once, and series are not checked against each other.
package state

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
)

// Input is the cluster as the metrics see it. It is never changed.
type Input struct {
	Now    time.Time
	Nodes  []*corev1.Node
	Pods   []*corev1.Pod
	Claims []*karpenterv1.NodeClaim
	Pools  []*karpenterv1.NodePool
	// Buffers are empty if the kind does not exist.
	Buffers []*autoscalingv1beta1.CapacityBuffer
	// Waiting are the pods that are not ready yet. Running is what is being planned, by controller.
	Waiting []metrics.PodTime
	Running map[string]metrics.RunningPlan
	// Cost is what each pool's machines cost in dollars per hour, as far as their prices are known.
	Cost map[string]float64
	// Unsynced is how long the snapshot of the cluster has been incomplete, 0 if it is complete.
	Unsynced time.Duration
}

// Options say what is served.
type Options struct {
	// NodeLabels are the label keys that are also labels of nodes' series.
	NodeLabels []string
	// ClassLabels are the label keys by which a NodeClaim and its Node name their node class.
	ClassLabels []string
	// Bounded leaves out series with the name of a node or pod, and serves sums by pool instead (K-12).
	Bounded bool
	// Unobserved leaves out what Karpenter leaves out with --disable-cluster-state-observability.
	Unobserved bool
	// Deprecated also serves conditions under their old names.
	Deprecated bool
	// MaxSeries is the maximum number of series. Above it, the largest families with names are left out. 0: no
	// maximum.
	MaxSeries int
}

// Families returns the served families that have series, ordered by name. dropped has the names of those left out
// because there are too many series.
func Families(in Input, o Options) (families []*Text, dropped []string) {
	b := &builder{families: map[string]*Text{}, described: map[string]Family{}}
	for _, f := range Served(o) {
		b.described[f.Name] = f
	}
	b.whole(in)
	b.nodes(in, o)
	b.pods(in)
	b.conditions(in, o)
	for _, f := range b.families {
		if f.Series > 0 {
			families = append(families, f)
		}
	}
	slices.SortFunc(families, func(a, b *Text) int { return strings.Compare(a.Name, b.Name) })
	return fuse(families, b.described, o.MaxSeries)
}

// fuse leaves out the largest families with names until there are at most most series. It returns the names of those
// left out.
func fuse(families []*Text, described map[string]Family, most int) (kept []*Text, dropped []string) {
	series := 0
	for _, f := range families {
		series += f.Series
	}
	for most > 0 && series > most {
		largest := slices.MaxFunc(families, func(a, b *Text) int {
			return cmp.Compare(named(a, described), named(b, described))
		})
		if named(largest, described) == 0 {
			break // the rest have no names, and grow only with pools
		}
		series -= largest.Series
		dropped = append(dropped, largest.Name)
		families = slices.DeleteFunc(families, func(f *Text) bool { return f == largest })
	}
	slices.Sort(dropped)
	return families, dropped
}

// named returns the number of a family's series, 0 if it has no names of objects.
func named(f *Text, described map[string]Family) int {
	if !described[f.Name].Named {
		return 0
	}
	return f.Series
}

// builder gathers series by family.
type builder struct {
	families  map[string]*Text
	described map[string]Family
}

// serves reports whether a family is served.
func (b *builder) serves(name string) bool {
	_, served := b.described[name]
	return served
}

// family returns a family, nil if it is not served.
func (b *builder) family(name string) *Text {
	described, served := b.described[name]
	if !served {
		return nil
	}
	if b.families[name] == nil {
		b.families[name] = &Text{Name: name, help: described.Help}
	}
	return b.families[name]
}

// add adds a series, unless its family is not served. The labels are in the order of their names.
func (b *builder) add(name string, value float64, labels ...label) {
	b.family(name).add(value, labels...)
}

// sorted sorts labels by name.
func sorted(labels ...label) []label {
	slices.SortFunc(labels, func(a, b label) int { return strings.Compare(a.name, b.name) })
	return labels
}

// word returns a bool as a label value.
func word(is bool) string {
	if is {
		return "true"
	}
	return "false"
}

// whole adds the series of the whole cluster and of pools.
func (b *builder) whole(in Input) {
	b.add("karpenter_cluster_state_node_count", float64(len(in.Nodes)))
	synced := 1.0
	if in.Unsynced > 0 {
		synced = 0
	}
	b.add("karpenter_cluster_state_synced", synced)
	b.add("karpenter_cluster_state_unsynced_time_seconds", in.Unsynced.Seconds())
	for pool, cost := range in.Cost {
		b.add("karpenter_nodepools_cost_total", cost, label{"nodepool", pool})
	}
	for controller, plan := range in.Running {
		labels := []label{{"controller", controller}, {"scheduling_id", ""}}
		b.add("karpenter_scheduler_queue_depth", float64(plan.Pods), labels...)
		age := 0.0
		if !plan.Since.IsZero() {
			age = max(0, in.Now.Sub(plan.Since).Seconds())
		}
		b.add("karpenter_scheduler_unfinished_work_seconds", age, labels...)
	}
}
