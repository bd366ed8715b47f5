package whatif

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// namesShown is how many names of nodes and objects a line has; the rest is counted.
const namesShown = 6

// wholePercent is the percentage from which on decimals are left out.
const wholePercent = 10

// WriteJSON writes the comparison for programs.
func (c Comparison) WriteJSON(out io.Writer) error { return writeJSON(out, c) }

// WriteText writes the comparison for people. Its form may change.
func (c Comparison) WriteText(out io.Writer) error {
	var b strings.Builder
	if c.Changed && len(c.Changes) == 0 {
		b.WriteString("nothing changes: what would be applied is equal to what is there\n")
		for _, line := range c.Notes {
			fmt.Fprintf(&b, "\nnote: %s\n", line)
		}
		_, err := io.WriteString(out, b.String())
		return err
	}
	c.differences(&b)
	c.table(&b)
	c.nodes(&b)
	c.waiting(&b)
	for _, p := range c.Pods {
		if p.Lost > 0 {
			fmt.Fprintf(&b, "\nLost      %s of %s: no controller makes it again\n", count(p.Lost, "pod", "pods"),
				p.Workload)
		}
	}
	if c.Restless {
		fmt.Fprintf(&b, "\nnot at rest after %d rounds: the numbers of \"quiet\" are those of the last one\n",
			c.Rounds)
	}
	c.notes(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

func (c Comparison) notes(b *strings.Builder) {
	for i, line := range c.NotForetold {
		if i == 0 {
			b.WriteString("\nNot foretold\n")
		}
		fmt.Fprintf(b, "  %s\n", line)
	}
	for _, line := range c.NotPlanned {
		fmt.Fprintf(b, "\nnot planned: %s\n", line)
	}
	for _, line := range c.Notes {
		fmt.Fprintf(b, "\nnote: %s\n", line)
	}
}

// differences prints the changes, object by object.
func (c Comparison) differences(b *strings.Builder) {
	var about view.Object
	for _, change := range c.Changes {
		switch {
		case change.Path == "" && change.New != "":
			fmt.Fprintf(b, "+ %s %s\n", change.Object.Kind, change.Object.Name)
			continue
		case change.Path == "":
			fmt.Fprintf(b, "- %s %s\n", change.Object.Kind, change.Object.Name)
			continue
		}
		if change.Object != about {
			about = change.Object
			fmt.Fprintf(b, "%s %s\n", about.Kind, about.Name)
		}
		if change.Old != "" {
			fmt.Fprintf(b, "  - %s: %s\n", change.Path, change.Old)
		}
		if change.New != "" {
			fmt.Fprintf(b, "  + %s: %s\n", change.Path, change.New)
		}
	}
	if len(c.Changes) > 0 {
		b.WriteString("\n")
	}
}

// table prints the numbers side by side.
func (c Comparison) table(b *strings.Builder) {
	columns, heads := []Totals{c.Before, c.After}, "\tbefore\tright after"
	if !c.Changed {
		heads = "\tnow\tafter one plan"
	}
	if c.Quiet != nil {
		columns, heads = append(columns, *c.Quiet), heads+"\tquiet"
	}
	table := tabwriter.NewWriter(b, 0, 8, 3, ' ', 0)
	row := func(name string, of func(Totals) string, more string) {
		line := name
		for _, t := range columns {
			line += "\t" + of(t)
		}
		if more != "" {
			line += "\t" + more
		}
		fmt.Fprintln(table, line)
	}
	fmt.Fprintln(table, heads)
	row("nodes", func(t Totals) string { return fmt.Sprint(t.Nodes) }, "")
	for _, name := range poolsOf(columns) {
		shown := name
		if name == "" {
			shown = "(no pool)"
		}
		row("  "+shown, func(t Totals) string { return t.pool(name).nodesText() }, "")
	}
	row("waiting pods", func(t Totals) string { return fmt.Sprint(t.WaitingPods) }, c.newlyWaiting())
	row("$/h", func(t Totals) string {
		text := c.about() + cents(t.PricePerHour)
		if t.Unpriced > 0 {
			text += fmt.Sprintf(" +%d unpriced", t.Unpriced)
		}
		return text
	}, c.dearer())
	if c.Before.CommittedPerHour+c.After.CommittedPerHour+c.last().CommittedPerHour > 0 {
		row("  paid by commitments", func(t Totals) string { return c.about() + cents(t.CommittedPerHour) }, "")
	}
	table.Flush() //nolint:errcheck // into a strings.Builder
}

// dearer returns how much more the end costs than the beginning, "" if the cost is the same or cannot be compared.
func (c Comparison) dearer() string {
	rise := c.last().PricePerHour - c.Before.PricePerHour
	if rise == 0 || c.last().Unpriced != c.Before.Unpriced {
		return "" // some nodes' prices are unknown
	}
	sign := "+"
	if rise < 0 {
		sign, rise = "-", -rise
	}
	text := sign + cents(rise)
	if c.Before.PricePerHour > 0 {
		share, decimals := rise.dollars()/c.Before.PricePerHour.dollars()*100, 0
		if share < wholePercent {
			decimals = 1
		}
		text += fmt.Sprintf(" (%s%.*f%%)", sign, decimals, share)
	}
	return text
}

// about returns the mark of estimated prices.
func (c Comparison) about() string {
	if c.Estimated {
		return "~"
	}
	return ""
}

// poolsOf returns the pools of all columns; nodes without a pool come last.
func poolsOf(columns []Totals) []string {
	all := map[string]bool{}
	for _, t := range columns {
		for _, p := range t.Pools {
			all[p.Pool] = true
		}
	}
	names := slices.Sorted(maps.Keys(all))
	if len(names) > 0 && names[0] == "" {
		names = append(names[1:], "")
	}
	return names
}

// newlyWaiting returns which pods wait that did not wait before, and why.
func (c Comparison) newlyWaiting() string {
	if !c.Changed {
		return ""
	}
	more := map[string]int{}
	for _, p := range c.Pods {
		more[p.Workload] = p.NewWaiting
	}
	var parts []string
	for _, w := range c.last().Waiting {
		if n := more[w.Workload]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s (%d)", w.Cause.Code, w.Workload, n))
			delete(more, w.Workload)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "! " + strings.Join(parts, ", ")
}

// waiting prints why pods wait in the end. Pods that waited before get one line, whatever changes.
func (c Comparison) waiting(b *strings.Builder) {
	fresh := map[string]bool{}
	for _, p := range c.Pods {
		fresh[p.Workload] = p.NewWaiting > 0
	}
	for _, w := range c.last().Waiting {
		if pods := count(w.Pods, "pod waits", "pods wait"); c.Changed && !fresh[w.Workload] {
			fmt.Fprintf(b, "\n%s: %s as before, %s\n", w.Workload, pods, w.Cause.Code)
		} else {
			fmt.Fprintf(b, "\n%s: %s, %s\n", w.Workload, pods, w.Cause.Code)
			writeCause(b, w.Cause, w.Pools)
		}
	}
}

// fateGroup is a group of nodes that share a line.
type fateGroup struct {
	first NodeFate
	names []string
	zones []string
	waves map[int]int // nodes by wave
	pods  map[string]int
}

// nodes prints what happens to nodes, with equal ones in one line.
func (c Comparison) nodes(b *strings.Builder) {
	var groups []*fateGroup
	at := map[string]*fateGroup{}
	for _, n := range c.Nodes {
		key := fmt.Sprint(n.Fate, n.Pool, n.Reason, n.Why)
		switch n.Fate {
		case Comes:
			key = fmt.Sprint(n.Fate, n.Pool, n.Offering.Type, n.Offering.CapacityType, n.Why)
		case Held:
			key = fmt.Sprint(n.Fate, n.Pool, n.Reason, n.Cause.Code) // the first represents all
		}
		g := at[key]
		if g == nil {
			g = &fateGroup{first: n, waves: map[int]int{}, pods: map[string]int{}}
			at[key], groups = g, append(groups, g)
		}
		if g.names = append(g.names, n.Name); !slices.Contains(g.zones, n.Offering.Zone) {
			g.zones = append(g.zones, n.Offering.Zone)
		}
		g.waves[n.Wave]++
		for workload, pods := range n.Pods {
			g.pods[workload] += pods
		}
	}
	for i, g := range groups {
		if i == 0 {
			b.WriteString("\n")
		}
		if g.first.Fate == Comes {
			c.writeComing(b, g)
		} else {
			g.write(b)
		}
	}
}

// writeComing prints nodes that come.
func (c Comparison) writeComing(b *strings.Builder, g *fateGroup) {
	n := g.first
	price := "price unknown"
	for _, m := range c.last().Machines {
		if m.Pool == n.Pool && m.Offering == n.Offering && m.PricePerHour != nil {
			price = c.about() + "$" + cents(*m.PricePerHour) + "/h each"
		}
	}
	fmt.Fprintf(b, "%-8s  %d  %s: %s %s in %s, %s, %s\n", n.Fate, len(g.names), n.Pool, n.Offering.Type,
		n.Offering.CapacityType,
		view.Zones(slices.Sorted(slices.Values(g.zones))), price, n.Why)
}

// write prints nodes that go, are replaced or stay.
func (g *fateGroup) write(b *strings.Builder) {
	n := g.first
	fmt.Fprintf(b, "%-8s  %d  %s: %s", n.Fate, len(g.names), n.Pool, n.Reason)
	if n.Why != "" {
		fmt.Fprintf(b, " (%s)", n.Why)
	}
	switch {
	case n.Fate == Held:
		fmt.Fprintf(b, "; %s", n.Cause.Code)
	case engine.TooMany(plan.DisruptionReason(n.Reason)):
		b.WriteString("; budgets do not slow it")
	case len(g.waves) > 1:
		fmt.Fprintf(b, "; in %d waves, at most %d at a time", len(g.waves),
			slices.Max(slices.Collect(maps.Values(g.waves))))
	}
	b.WriteString("\n")
	line := "             "
	names := slices.SortedFunc(slices.Values(g.names), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) // so that 2 comes before 10
	})
	fmt.Fprintf(b, "%s%s\n", line, listed(names))
	if len(g.pods) > 0 {
		fmt.Fprintf(b, "%sevicts %s\n", line, workloads(g.pods))
	}
	if n.Fate == Held {
		lead := ""
		if len(g.names) > 1 {
			lead = n.Name + ": "
		}
		fmt.Fprintf(b, "%s%s%s\n", line, lead, n.Cause.Text)
		for i, remedy := range n.Cause.Remedies {
			lead := "do        "
			if i > 0 {
				lead = "or        "
			}
			fmt.Fprintf(b, "%s%s %s\n", line, lead, remedy)
		}
	}
}
