package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

// Setting has Joiner's flags about the cost of nodes: --price-tolerance in percent, --node-overhead-price in dollars
// per hour.
type Setting struct {
	PriceTolerance    int     `json:"price_tolerance"`
	NodeOverheadPrice float64 `json:"node_overhead_price"`
}

func (s Setting) String() string {
	if s.NodeOverheadPrice > 0 {
		return fmt.Sprintf("overhead %g $/h", s.NodeOverheadPrice)
	}
	return fmt.Sprintf("tolerance %d %%", s.PriceTolerance)
}

// Point is the number of nodes under a setting, and their price (B-20). After disruptions, these are the nodes left.
type Point struct {
	Setting
	Nodes        int     `json:"nodes"`
	PricePerHour float64 `json:"price_per_hour"`
	// LeastNodes is a lower bound on the nodes of any plan of that price. LeastWithin is the same for Joiner's own
	// cheapest price plus the tolerance. These bounds ignore constraints between pods, except that some need a node
	// each.
	LeastNodes  int `json:"least_nodes"`
	LeastWithin int `json:"least_nodes_within_tolerance"`
	// Violations is nil if the plan was not checked.
	Violations *int `json:"violations"`
}

// Read reads the records of an earlier run. It returns none if there is no file.
func Read(file string) ([]Record, error) {
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil, nil
	}
	var records []Record
	if err == nil {
		err = json.Unmarshal(data, &records)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the results of an earlier run: %w", err)
	}
	return records, nil
}

// Frontiers prints nodes against price, and the peer's figures beside them: those of this run or, if it has none, of
// an earlier one.
func Frontiers(w io.Writer, lines []Line, earlier []Record) error {
	for _, l := range lines {
		if len(l.Frontier) == 0 {
			continue
		}
		fmt.Fprintf(w, "\nB-20, %s: nodes against price\n", l.Scenario)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "side\tsetting\tnodes\t$/h\tabove the cheapest\tno plan of that price below\tviolations\t")
		for _, p := range l.Frontier {
			fmt.Fprintf(t, "%s\t%s\t%d\t%.3f\t%.1f %%\t%d nodes\t%s\t\n", Joiner, p.Setting, p.Nodes, p.PricePerHour,
				100*(p.PricePerHour/l.Frontier[0].PricePerHour-1), p.LeastNodes,
				violations(Record{Violations: p.Violations}))
		}
		if peer, from, found := peerOf(lines, earlier, l.Scenario); found {
			fmt.Fprintf(t, "%s\t%s\t%s%d\t%.3f\t\t\t%s\t\n", Karpenter, from, more(peer), peer.Nodes,
				peer.PricePerHour, violations(peer))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// peerOf returns the peer's record of a scenario, and says from which run it is.
func peerOf(lines []Line, earlier []Record, scenario string) (peer Record, from string, found bool) {
	if peer, found = find(lines, scenario, Karpenter); found {
		return peer, "this run", true
	}
	for _, r := range earlier {
		if r.Scenario == scenario && r.Side == Karpenter {
			return r, "an earlier run", true
		}
	}
	return Record{}, "", false
}

const (
	// aimedTolerance is the tolerance, in percent, for which B-20 has aims.
	aimedTolerance = 5
	aimedNodes     = 150 // of plain-5000
)

// FrontierAims prints the aims of B-20.
func FrontierAims(w io.Writer, lines []Line, earlier []Record) {
	for _, l := range lines {
		for _, p := range l.Frontier {
			if p.PriceTolerance != aimedTolerance {
				continue
			}
			peer, from, found := peerOf(lines, earlier, l.Scenario)
			most := aimedNodes
			if l.Scenario != "plain-5000" {
				if !found {
					continue
				}
				most = peer.Nodes
			}
			aim(w, "B-20", l.Scenario, p.Nodes <= most, "%d nodes at %s (no plan within it has fewer than %d); aim %d",
				p.Nodes, p.Setting, p.LeastWithin, most)
			if found && !peer.CutOff {
				aim(w, "B-20", l.Scenario, p.PricePerHour < peer.PricePerHour, "%.3f $/h at %s; the peer %.3f, of %s",
					p.PricePerHour, p.Setting, peer.PricePerHour, from)
			}
		}
	}
}
