package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
)

// Aims prints each aim of docs/spec/performance.md that the lines cover: what was measured, and whether the aim is
// met.
func Aims(w io.Writer, lines []Line) {
	for _, l := range lines {
		if l.Side != Joiner {
			continue
		}
		peer, found := find(lines, l.Scenario, Karpenter)
		if l.Rest != nil {
			restAims(w, l.Record, peer)
			continue
		}
		if l.Stream != nil {
			streamAims(w, l.Record)
			continue
		}
		if l.System != nil {
			wavesAim(w, l.Record)
			expectedAim(w, l.Record)
			if found {
				systemAims(w, lines, l.Record, peer)
			}
			continue
		}
		faster := peer.WallSeconds / l.WallSeconds
		switch {
		case found && strings.HasPrefix(l.Scenario, "diverse-"):
			aim(w, "B-01", l.Scenario, faster >= 100, "%.0f times the peer's pods/s; aim 100", faster)
		case found && strings.HasPrefix(l.Scenario, "preferences-"):
			aim(w, "B-02", l.Scenario, faster >= 300, "%.0f times the peer's pods/s; aim 300", faster)
		case l.Scenario == "plain-100k":
			aim(w, "B-03", l.Scenario, l.CPUSeconds < 3, "%.2f s of CPU; aim below 3", l.CPUSeconds)
			aim(w, "B-03", l.Scenario, l.PeakRSSBytes < 3<<29, "%s at the peak; aim below 1.5 GiB",
				bytes(l.PeakRSSBytes))
		case found && strings.HasPrefix(l.Scenario, "limit-"):
			aim(w, "L-11", l.Scenario, l.Nodes <= 3, "%d NodeClaims at a limit of 3; the peer %d", l.Nodes, peer.Nodes)
		case strings.HasPrefix(l.Scenario, "one-more-pod-"):
			aim(w, "B-04", l.Scenario, l.WallSeconds < 0.005, "%s; aim below 5 ms", seconds(l.WallSeconds))
		}
		if strings.HasPrefix(l.Scenario, "consolidate-") && l.CutOff {
			aim(w, "B-05", l.Scenario, false, "cut off after %s of planning", seconds(l.WallSeconds))
		} else if strings.HasPrefix(l.Scenario, "consolidate-") && found {
			aim(w, "B-05", l.Scenario, faster >= 50, "%s%.0f times less planning; aim 50", more(peer), faster)
		}
		if l.FreshPrice > 0 {
			aim(w, "B-17", l.Scenario, l.PricePerHour <= 1.02*l.FreshPrice,
				"%.3f of a fresh plan's price (%.3f of %.3f $/h; %.3f of the bound), %d nodes for %d; aim 1.02",
				l.PricePerHour/l.FreshPrice, l.PricePerHour, l.FreshPrice, l.PricePerHour/l.LowerBound, l.Nodes,
				l.FreshNodes)
		}
		if strings.HasPrefix(l.Scenario, "drift-") {
			whole := scenario.Budget(sizeOf(l.Scenario))
			aim(w, "B-06", l.Scenario, l.FirstRound == whole, "%d of %d nodes in the first round", l.FirstRound, whole)
		}
		if found && !peer.CutOff && !l.CutOff && peer.PodsPlaced <= l.PodsPlaced {
			aim(w, "price", l.Scenario, l.PricePerHour <= peer.PricePerHour, "%.3f $/h; the peer %.3f", l.PricePerHour,
				peer.PricePerHour)
		}
		if strings.HasPrefix(l.Scenario, "plain-") && l.LowerBound > 0 {
			aim(w, "price", l.Scenario, l.PricePerHour <= 1.03*l.LowerBound, "%.4f of the lower bound; aim 1.03",
				l.PricePerHour/l.LowerBound)
		}
		if strings.HasPrefix(l.Scenario, "diverse-") && l.LowerBound > 0 && l.PodsUnplaced == 0 {
			aim(w, "price", l.Scenario, l.PricePerHour <= 1.10*l.LowerBound, "%.4f of the lower bound (%s); aim 1.10",
				l.PricePerHour/l.LowerBound, l.LowerBoundKind)
		}
		if l.Violations != nil {
			aim(w, "P-21", l.Scenario, *l.Violations == 0, "%d violations; aim 0", *l.Violations)
		}
	}
}

func aim(w io.Writer, id, scenario string, met bool, format string, args ...any) {
	verdict := "met"
	if !met {
		verdict = "NOT MET"
	}
	fmt.Fprintf(w, "%-7s  %-6s %s: %s\n", verdict, id, scenario, fmt.Sprintf(format, args...))
}
