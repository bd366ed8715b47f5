package signals

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Aspect is what two sides may differ in.
type Aspect string

// Aspects of a metric.
const (
	Absent Aspect = "absent" // Karpenter has it and Joiner has not
	Extra  Aspect = "extra"  // the other way round
	Type   Aspect = "type"
	Labels Aspect = "labels" // their names
	Sorts  Aspect = "series" // which values labels have, without those that are new in each run
	Value  Aspect = "value"  // counters, and how often something was measured, at the end; gauges while nodes exist
)

// Row is a metric on both sides.
type Row struct {
	Name, Type        string
	Labels            []string
	Karpenter, Joiner string // how many series, and their sum
	Differences       map[Aspect]string
}

// own is the prefix of Joiner's own metrics, which docs/monitoring.md lists.
const own = "joiner_"

// libraries returns the prefixes of metrics with which libraries describe a process. Their series and values depend on
// how the process is built, so they are not compared.
func libraries() []string {
	return []string{"go_", "process_", "controller_runtime_", "workqueue_", "rest_client_", "client_go_",
		"certwatcher_", "leader_election_", "promhttp_"}
}

func ofLibrary(name string) bool {
	return slices.ContainsFunc(libraries(), func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// tolerance is the share by which two values may differ: Joiner's prices are in millionths of a dollar.
const tolerance = 1e-5

// perRun are labels with values that are new in each run.
func perRun() []string {
	return []string{"name", "node", "node_name", "owner", "commit", "version", "goversion", "scheduling_id"}
}

// Compare sets the metrics of two runs side by side, ordered by name.
func Compare(karpenter, joiner *Run) (rows []Row) {
	names := map[string]bool{}
	for _, of := range []map[string]Family{karpenter.Rest, karpenter.End, joiner.Rest, joiner.End} {
		for name := range of {
			names[name] = !strings.HasPrefix(name, own)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if names[name] {
			rows = append(rows, compare(name, karpenter, joiner))
		}
	}
	return rows
}

// shown returns a metric as it is compared: gauges while nodes exist, all others at the end.
func (r *Run) shown(name string) (Family, bool) {
	rest, found := r.Rest[name]
	if found && rest.Type == "gauge" {
		return rest, true
	}
	if end, has := r.End[name]; has {
		return end, true
	}
	return rest, found
}

func compare(name string, karpenter, joiner *Run) Row {
	row := Row{Name: name, Differences: map[Aspect]string{}, Karpenter: "–", Joiner: "–"}
	k, hasK := karpenter.shown(name)
	j, hasJ := joiner.shown(name)
	row.Type, row.Labels = k.Type, k.Labels
	if hasK {
		row.Karpenter = k.summary(name)
	}
	if hasJ {
		row.Joiner = j.summary(name)
	}
	switch {
	case !hasJ:
		row.Differences[Absent] = "Joiner has none"
		return row
	case !hasK:
		row.Type, row.Labels = j.Type, j.Labels
		row.Differences[Extra] = "Karpenter has none"
		return row
	}
	if k.Type != j.Type {
		row.Differences[Type] = k.Type + ", " + j.Type
	}
	if !slices.Equal(k.Labels, j.Labels) {
		row.Differences[Labels] = fmt.Sprintf("%v, %v", k.Labels, j.Labels)
	}
	if ofLibrary(name) {
		return row
	}
	kinds, own := k.kinds(), j.kinds()
	var sorts, values []string
	for _, kind := range slices.Sorted(maps.Keys(union(kinds, own))) {
		mine, here := own[kind]
		theirs, there := kinds[kind]
		switch {
		case !here:
			sorts = append(sorts, "Karpenter only: "+kind)
		case !there:
			sorts = append(sorts, "Joiner only: "+kind)
		case math.Abs(theirs-mine) > tolerance*max(math.Abs(theirs), math.Abs(mine)) && !timed(name, k.Type):
			values = append(values, fmt.Sprintf("%s: %g, %g", kind, theirs, mine))
		}
	}
	if len(sorts) > 0 {
		row.Differences[Sorts] = strings.Join(sorts, "; ")
	}
	if len(values) > 0 {
		row.Differences[Value] = strings.Join(values, "; ")
	}
	return row
}

// timed reports whether a value is a time, which no two runs have in common.
func timed(name, kind string) bool { return kind == "gauge" && strings.HasSuffix(name, "_seconds") }

// kinds returns the sums of series by their labels, without labels whose values are new in each run.
func (f Family) kinds() map[string]float64 {
	sums := map[string]float64{}
	for _, s := range f.Series {
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
			if !slices.Contains(perRun(), name) {
				labels = append(labels, name+"="+s.Labels[name])
			}
		}
		sums["{"+strings.Join(labels, ",")+"}"] += s.Value
	}
	return sums
}

func union(a, b map[string]float64) map[string]float64 {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// summary returns how many series a metric has and, if that means something, their sum.
func (f Family) summary(name string) string {
	if ofLibrary(name) || timed(name, f.Type) {
		return fmt.Sprintf("%d", len(f.Series))
	}
	sum := 0.0
	for _, s := range f.Series {
		sum += s.Value
	}
	return fmt.Sprintf("%d: %.6g", len(f.Series), sum)
}
