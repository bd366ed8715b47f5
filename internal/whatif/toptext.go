package whatif

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// hoursPerMonth is how cloud vendors count a month.
const hoursPerMonth = 730

// noValue stands for an unknown value.
const noValue = "-"

// WriteText writes the nodes for people. Its form may change.
func (t Top) WriteText(out io.Writer) error { return t.WriteTable(out, false, true) }

// WriteTable writes the nodes for people: who decides, the totals, a row for each node, and what waits or stays. The
// wide form adds the pools, and the text of every cause.
func (t Top) WriteTable(out io.Writer, wide, headers bool) error {
	var b strings.Builder
	t.Status.heading(&b)
	b.WriteString(t.Sum() + "\n" + t.Counts() + "\n")
	writeRows(&b, headers, t.headers(), t.rows())
	t.Status.sum(&b, "Waiting pods", t.Status.Waiting)
	t.Status.sum(&b, "Nodes that are to go and stay", t.Status.Kept)
	if wide {
		for _, w := range t.Waiting {
			fmt.Fprintf(&b, "%s, %s: %s\n", w.Code, count(w.Count, "pod", "pods"), w.Text)
		}
		writeRows(&b, headers, PoolHeaders(), t.PoolRows())
	}
	for _, line := range t.Status.Notes {
		fmt.Fprintf(&b, "note: %s\n", line)
	}
	for _, kind := range t.Status.NotChecked {
		fmt.Fprintf(&b, "not checked: %s\n", kind)
	}
	if t.Status.Next != "" {
		fmt.Fprintf(&b, "next: %s\n", t.Status.Next)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func writeRows(b *strings.Builder, headers bool, head []string, rows [][]string) {
	table := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	if headers {
		fmt.Fprintln(table, strings.Join(head, "\t"))
	}
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	table.Flush() //nolint:errcheck // into a strings.Builder
}

// Heading returns the first line of a status: who decides, whether disruption is paused, and what all nodes cost.
func (t Top) Heading() string {
	var b strings.Builder
	t.Status.heading(&b)
	return strings.TrimSuffix(b.String(), "\n")
}

// Sum returns what the shown nodes use and cost, as text.
func (t Top) Sum() string {
	var parts []string
	for _, u := range t.Totals.Use {
		text := u.Resource + " " + u.Share()
		if u.Percent != nil {
			text += fmt.Sprintf(" (%s of %s)", u.Used, u.Of)
		}
		parts = append(parts, text)
	}
	price, hourly := noValue, t.Totals.PricePerHour
	if hourly > 0 {
		price = fmt.Sprintf("%s/h  %s/month", t.money(hourly), t.money(hourly*hoursPerMonth))
	}
	if t.Totals.Unpriced > 0 {
		price += fmt.Sprintf(" +%d unpriced", t.Totals.Unpriced)
	}
	return strings.Join(append(parts, price), "   ")
}

func (t Top) money(d Dollars) string {
	if t.Status.Estimated {
		return "~$" + dollars(d)
	}
	return "$" + dollars(d)
}

// Counts returns the numbers of nodes and pods, as text.
func (t Top) Counts() string {
	text := count(t.Totals.Nodes, "node", "nodes")
	if t.Totals.All != t.Totals.Nodes {
		text = fmt.Sprintf("%d of %s", t.Totals.Nodes, count(t.Totals.All, "node", "nodes"))
	}
	var parts []string
	for _, s := range t.Totals.States {
		parts = append(parts, fmt.Sprintf("%d %s", s.Nodes, StateWord(s.State)))
	}
	if t.Totals.Stay > 0 {
		parts = append(parts, fmt.Sprintf("%d to go and stay", t.Totals.Stay))
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	waiting := 0
	for _, w := range t.Waiting {
		waiting += w.Count
	}
	if t.Totals.Pods == nil {
		return text + "   pods: " + noValue
	}
	return text + fmt.Sprintf("   pods: %d bound, %d waiting", *t.Totals.Pods, waiting)
}

// StateWord returns a state as text.
func StateWord(state view.NodeState) string { return strings.ReplaceAll(string(state), "_", " ") }

// Share returns the used part of a resource, "-" if unknown.
func (u Use) Share() string {
	if u.Percent == nil {
		return noValue
	}
	return fmt.Sprintf("%d%%", *u.Percent)
}

func (t Top) headers() []string {
	list := []string{"NODE", "POOL", "TYPE", "ZONE", "CAPACITY", "$/H"}
	for _, u := range t.Totals.Use {
		list = append(list, strings.ToUpper(u.Resource))
	}
	return append(list, "PODS", "AGE", "STATE")
}

func (t Top) rows() [][]string {
	var rows [][]string
	for _, n := range t.Items {
		row := []string{n.Name, cmp.Or(n.Pool, noValue), n.Type(), n.Zone(), n.Capacity(), t.Price(n)}
		for _, u := range n.Use {
			row = append(row, u.Share())
		}
		rows = append(rows, append(row, n.PodCount(), t.Age(n.Created), t.What(n)))
	}
	return rows
}

// typesOfRow is how many values of an open label a row shows.
const typesOfRow = 1

// Type returns the machine's type, or the possible ones.
func (n TopNode) Type() string { return cmp.Or(view.Some(n.Types, typesOfRow), noValue) }

// Zone returns the machine's zone, or the possible ones.
func (n TopNode) Zone() string { return cmp.Or(view.Zones(n.Zones), noValue) }

// Capacity returns whether the machine is spot, on-demand or reserved, or the possible ones.
func (n TopNode) Capacity() string { return cmp.Or(strings.Join(n.CapacityTypes, "|"), noValue) }

// Price returns what the node costs per hour, "-" if unknown.
func (t Top) Price(n TopNode) string {
	switch {
	case n.PricePerHour == nil:
		return noValue
	case t.Status.Estimated:
		return "~" + cents(*n.PricePerHour)
	}
	return cents(*n.PricePerHour)
}

// PodCount returns how many pods are bound to the node, "-" if unknown.
func (n TopNode) PodCount() string {
	if n.Pods == nil {
		return noValue
	}
	return fmt.Sprint(*n.Pods)
}

// Age returns how long ago a time was, "-" if unknown.
func (t Top) Age(since *time.Time) string {
	if since == nil {
		return noValue
	}
	return duration.HumanDuration(max(0, t.Status.now.Sub(*since)))
}

// What returns the state of a node as text, since when, and what holds it there. If the state does not imply the
// cause, the cause is added with its code and text.
func (t Top) What(n TopNode) string {
	text := StateWord(n.State)
	if n.Since != nil {
		text += " " + t.Age(n.Since)
	}
	if n.Planned > 0 {
		text += " for " + count(n.Planned, "pod", "pods")
	}
	e := n.Standing
	switch {
	case e == nil:
		return text
	case n.Stays():
		text = "stays"
		if e.Wanted != "" {
			text += ", although " + e.Wanted
		}
	case e.Cause == nil:
		return text + ", " + strings.TrimPrefix(e.Text, "it ")
	case says(n.State, e.Cause.Code):
		if e.Cause.Object.Kind == "Pod" {
			text += ": waits for pod " + e.Cause.Object.Name
		}
		return text
	}
	return text + ": " + string(e.Cause.Code) + ": " + shortened(e.Cause.Text)
}

// says reports whether a state implies a cause.
func says(state view.NodeState, code cause.Code) bool {
	switch code {
	case cause.LaunchPending, cause.NotRegistered, cause.NotInitialized, cause.NodeNotReady, cause.NotManaged,
		cause.ReplacementOnTheWay:
		return true
	case cause.Draining:
		return state == view.NodeDraining
	}
	return false
}

// PoolHeaders returns the headers of PoolRows.
func PoolHeaders() []string {
	return []string{"POOL", "NODES", "READY", "WAITING", "ON THE WAY", "LEAVING", "$/H", "LIMITS", "BUDGETS",
		"NEEDS ATTENTION"}
}

// PoolRows returns a row for each pool.
func (t Top) PoolRows() [][]string {
	var rows [][]string
	for _, p := range t.Pools {
		price, attention := noValue, noValue
		if p.PricePerHour != nil || p.Unpriced > 0 {
			price = t.Status.priced(p.PricePerHour, p.Unpriced)
		}
		for _, a := range t.Status.Attention {
			if a.Pool == p.Name {
				attention = a.Code + ": " + shortened(a.Text)
				break
			}
		}
		rows = append(rows, []string{p.Name, fmt.Sprint(p.Nodes), yes(p.Ready), fmt.Sprint(p.Waiting),
			fmt.Sprint(p.OnTheWay), fmt.Sprint(p.Leaving), price, p.limits(), p.budgets(), attention})
	}
	return rows
}

func (p TopPool) limits() string {
	var parts []string
	for _, l := range p.Limits {
		text := fmt.Sprintf("%s %s of %s", l.Resource, l.Used, l.Limit)
		if l.Hard {
			text += " hard"
		}
		parts = append(parts, text)
	}
	return cmp.Or(strings.Join(parts, ", "), cmp.Or(p.Limit, "none"))
}

func (p TopPool) budgets() string {
	var parts []string
	for _, b := range p.Budgets {
		text := b.Nodes
		switch {
		case !b.InForce:
			text += " (not now)"
		case strings.HasSuffix(b.Nodes, "%"):
			text += fmt.Sprintf(" (%d)", b.Allows)
		}
		if len(b.Reasons) > 0 {
			text += " for " + strings.Join(b.Reasons, "|")
		}
		parts = append(parts, text)
	}
	if len(parts) > 0 && p.Going > 0 {
		parts = append(parts, fmt.Sprintf("%d going", p.Going))
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// Letter returns the letter of a state, for places with no room for its word.
func (n TopNode) Letter() string {
	if n.Stays() {
		return "S"
	}
	return map[view.NodeState]string{view.NodeLaunching: "L", view.NodeJoining: "J", view.NodeInitializing: "I",
		view.NodeReady: "R", view.NodeNotReady: "N", view.NodeChosen: "C", view.NodeDraining: "D",
		view.NodeUnmanaged: "U"}[n.State]
}
