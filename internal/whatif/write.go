package whatif

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/joiner-autoscaler/joiner/internal/view"
)

// How many list items a table shows; the rest is counted. JSON has all.
const (
	workloadsShown = 3
	poolsShown     = 4
)

// Clean reports whether every pod has a place.
func (r Result) Clean() bool { return r.Pods.Waiting == 0 }

// WriteJSON writes the result for programs.
func (r Result) WriteJSON(out io.Writer) error { return writeJSON(out, r) }

func writeJSON(out io.Writer, answer any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(answer)
}

// WriteText writes the result for people. Its form may change.
func (r Result) WriteText(out io.Writer) error {
	var b strings.Builder
	r.launches(&b)
	for _, w := range r.Waiting {
		fmt.Fprintf(&b, "\n%s: %s, %s\n", w.Workload, count(w.Pods, "pod waits", "pods wait"), w.Cause.Code)
		writeCause(&b, w.Cause, w.Pools)
	}
	for _, line := range r.NotPlanned {
		fmt.Fprintf(&b, "\nnot planned: %s\n", line)
	}
	for _, line := range r.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", line)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// otherwise precedes the causes of other pools: one pool that takes the pod is enough.
const otherwise = "otherwise"

// writeCause writes a cause below its heading, and the causes of the other pools.
func writeCause(b *strings.Builder, c view.Cause, pools []view.PoolCause) {
	fmt.Fprintf(b, "  %s\n", c.Text)
	for i, remedy := range c.Remedies {
		lead := "do one of"
		switch {
		case i > 0:
			lead = ""
		case len(c.Remedies) == 1:
			lead = "do"
		}
		fmt.Fprintf(b, "  %-9s  %s\n", lead, remedy)
	}
	if c.ByItself != "" {
		fmt.Fprintf(b, "  %-9s  %s\n", "by itself", c.ByItself)
	}
	for i, pool := range pools {
		if i == 0 {
			continue // it is the cause
		}
		if i > poolsShown {
			fmt.Fprintf(b, "  and %d more pools\n", len(pools)-i)
			break
		}
		fmt.Fprintf(b, "  %-9s  %s: %s\n", otherwise, pool.Code, pool.Text)
	}
}

func (r Result) launches(b *strings.Builder) {
	if len(r.Launches) == 0 {
		b.WriteString("no node is launched\n")
	} else {
		table := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
		fmt.Fprintln(table, "NODES\tPOOL\tTYPE\tZONE\tCAPACITY\t$/H EACH\tPODS")
		about := ""
		if r.Estimated {
			about = "~"
		}
		for _, l := range r.Launches {
			price := "-"
			if l.PricePerHour != nil {
				price = about + cents(*l.PricePerHour) + " " + l.Cheapest.CapacityType
			}
			if l.Commitment != "" {
				price += ", " + l.Commitment + " pays"
			}
			fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Nodes, l.Pool,
				view.Some(l.Types, view.TypesShown), view.Zones(l.Zones), strings.Join(l.CapacityTypes,
					"|"), price, l.holds())
		}
		table.Flush() //nolint:errcheck // into a strings.Builder
		fmt.Fprintf(b, "\n%s for %s: %s$%s/h", count(r.Nodes, "node", "nodes"), count(r.Pods.New, "pod", "pods"),
			about, cents(r.PricePerHour))
		if r.Unpriced > 0 {
			fmt.Fprintf(b, " +%d unpriced", r.Unpriced)
		}
		b.WriteString("\n")
	}
	if r.Pods.Existing > 0 {
		fmt.Fprintf(b, "%s on nodes that there are\n", count(r.Pods.Existing, "pod fits", "pods fit"))
	}
	for _, buffer := range r.Buffers {
		fmt.Fprintln(b, buffer)
	}
}

// holds returns what a launch is for: pods by workload, and room.
func (l Launch) holds() string {
	switch {
	case len(l.Room) == 0:
		return workloads(l.Pods)
	case len(l.Pods) == 0:
		return "room for " + workloads(l.Room)
	}
	return workloads(l.Pods) + ", room for " + workloads(l.Room)
}

// cents formats a price with four decimals.
func cents(d Dollars) string {
	const tenthOfACent = 100 // micro-dollars
	return ((d + tenthOfACent/2) / tenthOfACent * tenthOfACent).String()
}

func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// workloads lists the numbers of pods by workload, highest first.
func workloads(pods map[string]int) string {
	names := slices.SortedFunc(maps.Keys(pods), func(a, b string) int {
		if pods[a] != pods[b] {
			return pods[b] - pods[a]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for i, name := range names {
		if i == workloadsShown {
			parts = append(parts, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %d", name, pods[name]))
	}
	if len(parts) == 0 {
		return "a replica of the pool"
	}
	return strings.Join(parts, ", ")
}
