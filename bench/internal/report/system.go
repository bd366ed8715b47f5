package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/joiner-autoscaler/joiner/bench/internal/system"
)

// perNode returns how many nodes a phase was about, and the least number of requests for one.
func perNode(l Record) (nodes, least int) {
	if strings.HasPrefix(l.Scenario, system.Apply) {
		return l.NodesLaunched, system.LeastUp
	}
	return l.NodesRemoved, system.LeastDown
}

func rate(n, nodes int) float64 { return float64(n) / float64(max(1, nodes)) }

// systemTable prints what whole controllers took, how Joiner's figures relate to the peer's, and who asked the API
// server for what.
func systemTable(w io.Writer, lines []Line) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "scenario\tside\twall\tall rounds\tCPU\tpeak RSS\tbound\tunbound\t"+
		"planned\tcame\twent\tleft\t$/h\trequests\tper node\tleast\twall ratio\tCPU ratio\t")
	for _, l := range lines {
		nodes, least := perNode(l.Record)
		requests := system.Requests(l.Requests).Total()
		wall, cpu := "", ""
		if peer, found := find(lines, l.Scenario, Karpenter); found && l.Side == Joiner {
			wall, cpu = ratio(peer.WallSeconds, l.WallSeconds), ratio(peer.CPUSeconds, l.CPUSeconds)
		}
		var rounds []string
		for _, s := range l.RoundSeconds {
			rounds = append(rounds, fmt.Sprintf("%.1f", s))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.3f\t%d\t%.1f\t%d\t%s\t%s\t\n",
			l.Scenario, l.Side, more(l.Record)+seconds(l.WallSeconds),
			strings.Join(rounds, " "), seconds(l.CPUSeconds), bytes(l.PeakRSSBytes), l.PodsPlaced, l.PodsUnplaced,
			l.NodesPlanned, l.NodesLaunched, l.NodesRemoved, l.Nodes,
			l.PricePerHour, requests, rate(requests, nodes), least, wall, cpu)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, scenario := range slices.Compact(scenarios(lines)) {
		if err := requestTable(w, scenario, lines); err != nil {
			return err
		}
	}
	return nil
}

func scenarios(lines []Line) []string {
	var names []string
	for _, l := range lines {
		names = append(names, l.Scenario)
	}
	return names
}

// requestTable prints requests per node by verb and resource (B-12), the most frequent first.
func requestTable(w io.Writer, scenario string, lines []Line) error {
	sum := map[string]float64{}
	var sides []Record
	for _, l := range lines {
		if l.Scenario != scenario || l.Side == Scheduler {
			continue
		}
		sides = append(sides, l.Record)
		nodes, _ := perNode(l.Record)
		for kind, n := range l.Requests {
			sum[kind] += rate(n, nodes)
		}
	}
	kinds := slices.SortedFunc(maps.Keys(sum),
		func(a, b string) int { return cmp.Or(cmp.Compare(sum[b], sum[a]), cmp.Compare(a, b)) })
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s, requests per node", scenario)
	for _, s := range sides {
		fmt.Fprintf(t, "\t%s", s.Side)
	}
	for _, kind := range kinds {
		fmt.Fprintf(t, "\n%s", kind)
		for _, s := range sides {
			nodes, _ := perNode(s)
			fmt.Fprintf(t, "\t%.2f", rate(s.Requests[kind], nodes))
		}
	}
	fmt.Fprintln(t)
	return t.Flush()
}

// mostWaves bounds the nodes launched, as a multiple of those in the first plan (B-16).
const mostWaves = 1.15

// wavesAim prints, for one of Joiner's lines, the nodes launched beyond the first plan: B-16 or, when shrinking, the
// part of B-11 about nodes launched on the way.
func wavesAim(w io.Writer, l Record) {
	if strings.HasPrefix(l.Scenario, system.Apply) {
		times := rate(l.NodesLaunched, l.NodesPlanned)
		aim(w, "B-16", l.Scenario, times <= mostWaves, "%d nodes launched where %d were planned: %.2f; aim %.2f",
			l.NodesLaunched, l.NodesPlanned, times, mostWaves)
		return
	}
	later := max(0, l.NodesLaunched-l.NodesPlanned)
	aim(w, "B-11", l.Scenario, later == 0,
		"%d nodes launched on the way, %d of them not in the first plan that launches any; aim 0",
		l.NodesLaunched, later)
}

// leastAsExpected is the least share of pods that should be bound where a plan expected them, in percent (K-60).
const leastAsExpected = 95

// expectedAim prints K-60 for one of Joiner's lines.
func expectedAim(w io.Writer, l Record) {
	if all := l.Expected + l.Elsewhere; all > 0 {
		share := 100 * float64(l.Expected) / float64(all)
		aim(w, "K-60", l.Scenario, share >= leastAsExpected,
			"%.0f %% of %d pods were bound where a plan expected them; aim %d %%", share, all, leastAsExpected)
	}
}

// systemAims prints the aims B-10 to B-13 for one of Joiner's lines.
func systemAims(w io.Writer, lines []Line, l, peer Record) {
	below := func(id, what string, own, other, factor float64) {
		aim(w, id, l.Scenario, other > 0 && own <= factor*other, "%s %.2f of the peer's; aim %.2g", what, own/other,
			factor)
	}
	apply := strings.HasPrefix(l.Scenario, system.Apply)
	if apply {
		if alone, found := find(lines, l.Scenario, Scheduler); found {
			own, other := l.WallSeconds-alone.WallSeconds, peer.WallSeconds-alone.WallSeconds
			below("B-10", fmt.Sprintf("time above kube-scheduler's own %.1f s: %.1f s and %.1f s,", alone.WallSeconds,
				own, other), own, other, 0.5)
		}
		below("B-10", "time", l.WallSeconds, peer.WallSeconds, 0.5)
		below("B-10", "price", l.PricePerHour, peer.PricePerHour, 1)
	} else {
		below("B-11", "time", l.WallSeconds, peer.WallSeconds, 0.2)
		below("B-11", "final price", l.PricePerHour, peer.PricePerHour, 1)
	}
	nodes, least := perNode(l)
	peerNodes, _ := perNode(peer)
	own, other := rate(system.Requests(l.Requests).Total(), nodes),
		rate(system.Requests(peer.Requests).Total(), peerNodes)
	below("B-12", fmt.Sprintf("%.1f requests per node against %.1f (at least %d),", own, other, least), own, other,
		0.5)
	below("B-13", "CPU", l.CPUSeconds, peer.CPUSeconds, 0.5)
	below("B-13", "peak RSS", float64(l.PeakRSSBytes), float64(peer.PeakRSSBytes), 0.5)
}
