package whatif

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// messageShown is the maximum length of a message in a row of the table.
const messageShown = 90

// WriteText writes the status for people. Its form may change.
func (s Status) WriteText(out io.Writer) error { return s.WriteTable(out, false, true) }

// WriteTable writes the status for people: who decides, a row for each pool, and what waits or stays. The wide form
// shows in full everything that needs attention.
func (s Status) WriteTable(out io.Writer, wide, headers bool) error {
	var b strings.Builder
	s.heading(&b)
	s.rows(&b, headers)
	for _, c := range s.Commitments {
		fmt.Fprintf(&b, "Commitment %s\n", c)
	}
	s.sum(&b, "Waiting pods", s.Waiting)
	s.sum(&b, "Nodes that are to go and stay", s.Kept)
	if s.Going > 0 {
		fmt.Fprintf(&b, "Nodes that nothing keeps %d\n", s.Going)
	}
	if s.Unmanaged > 0 {
		fmt.Fprintf(&b, "%s of no NodePool that is planned for: Joiner does not touch them\n",
			count(s.Unmanaged, "node is", "nodes are"))
	}
	for _, a := range s.Attention {
		if a.Pool == "" || wide {
			fmt.Fprintf(&b, "%s: %s\n", a.Code, a.Text)
		}
	}
	for _, line := range s.Notes {
		fmt.Fprintf(&b, "note: %s\n", line)
	}
	for _, kind := range s.NotChecked {
		fmt.Fprintf(&b, "not checked: %s\n", kind)
	}
	if s.Next != "" {
		fmt.Fprintf(&b, "next: %s\n", s.Next)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// heading prints who leads, whether disruption is paused, and what all nodes cost.
func (s Status) heading(b *strings.Builder) {
	parts := []string{s.who()}
	if c := s.Controller; c != nil && c.Standby > 0 {
		parts = append(parts, fmt.Sprintf("%d standby", c.Standby))
	}
	disruption := "disruption on"
	if !s.PauseKnown {
		disruption = "pause not known"
	}
	if s.Pause != nil {
		disruption = "disruption paused"
		if s.Pause.Until != nil {
			disruption += " until " + s.Pause.Until.Format(time.RFC3339)
		}
		if s.Pause.Reason != "" {
			disruption += fmt.Sprintf(" (%s)", s.Pause.Reason)
		}
	}
	price := s.priced(&s.PricePerHour, s.Unpriced)
	if price != "-" {
		price = strings.Replace("$"+price, "$~", "~$", 1)
		if at := strings.Index(price, " +"); at >= 0 {
			price = price[:at] + "/h" + price[at:] + " unpriced"
		} else {
			price += "/h"
		}
	}
	fmt.Fprintln(b, strings.Join(append(parts, disruption, price), "   "))
}

func (s Status) who() string {
	c := s.Controller
	switch {
	case c == nil:
		return "controller not known"
	case c.Leader != "":
		text := strings.TrimSpace(strings.TrimSpace(c.Program+" "+c.Version) + "   leader " + c.Leader)
		if c.Since != nil {
			text += fmt.Sprintf(" (since %s)", duration.HumanDuration(s.now.Sub(*c.Since)))
		}
		return text
	case c.Lease == "":
		return "no leader"
	}
	text := "no leader"
	if c.Since != nil {
		text += " since " + duration.HumanDuration(s.now.Sub(*c.Since))
	}
	text += " (lease " + c.Lease
	if c.Last != "" {
		text += ", last held by " + c.Last
	}
	return text + ")"
}

// priced formats a sum and the number of unpriced items (U-21): "36.10 +2", or "-" if nothing is known.
func (s Status) priced(sum *Dollars, unpriced int) string {
	text := "-"
	if sum != nil && (*sum > 0 || unpriced == 0) {
		text = dollars(*sum)
		if s.Estimated && *sum > 0 {
			text = "~" + text
		}
	}
	if unpriced > 0 {
		text += fmt.Sprintf(" +%d", unpriced)
	}
	return text
}

// dollars formats an amount with two decimals, or with more if those would be 0.00.
func dollars(d Dollars) string {
	const cent = 10_000 // micro-dollars
	if d > 0 && d < cent {
		return cents(d)
	}
	rounded := (d + cent/2) / cent
	return fmt.Sprintf("%d.%02d", rounded/100, rounded%100)
}

func (s Status) rows(b *strings.Builder, headers bool) {
	if len(s.Pools) == 0 {
		b.WriteString("there is no NodePool\n")
		return
	}
	table := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	if headers {
		fmt.Fprintln(table, "POOL\tNODES\tLIMIT\tREADY\tWAITING\tON THE WAY\tLEAVING\t$/H\tNEEDS ATTENTION")
	}
	for _, p := range s.Pools {
		limit, attention := p.Limit, "-"
		if limit == "" {
			limit = "none"
		}
		for _, a := range s.Attention {
			if a.Pool == p.Name {
				attention = a.Code + ": " + shortened(strings.ReplaceAll(a.Text, "pool "+p.Name+": ", ""))
				break
			}
		}
		price := "-"
		if p.PricePerHour != nil || p.Unpriced > 0 {
			price = s.priced(p.PricePerHour, p.Unpriced)
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", p.Name, p.Nodes, limit, yes(p.Ready), p.Waiting,
			p.OnTheWay,
			p.Leaving, price, attention)
	}
	table.Flush() //nolint:errcheck // into a strings.Builder
}

func yes(status string) string {
	switch status {
	case "True":
		return "yes"
	case "False":
		return "no"
	}
	return "?"
}

func shortened(text string) string { return Shortened(text, messageShown) }

// Shortened returns a text as one line of at most most letters.
func Shortened(text string, most int) string {
	letters := []rune(strings.Join(strings.Fields(text), " "))
	if len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return string(letters)
}

// sum prints counts by cause, and the command that explains the first example.
func (s Status) sum(b *strings.Builder, what string, counts []CauseCount) {
	if len(counts) == 0 {
		fmt.Fprintf(b, "%s: none\n", what)
		return
	}
	total, parts := 0, make([]string, 0, len(counts))
	for _, c := range counts {
		total += c.Count
		parts = append(parts, fmt.Sprintf("%d %s", c.Count, c.Code))
	}
	about := counts[0].Example
	name := about.Name
	if about.Namespace != "" {
		name = about.Namespace + "/" + name
	}
	fmt.Fprintf(b, "%s %d: %s   joinerctl explain %s %s\n", what, total, strings.Join(parts, ", "),
		strings.ToLower(about.Kind), name)
}
