package whatif

import (
	"fmt"
	"io"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/view"
)

// WriteJSON writes the explanation for programs.
func (e Explained) WriteJSON(out io.Writer) error { return writeJSON(out, e) }

// WriteText writes the explanation for people. Its form may change.
func (e Explained) WriteText(out io.Writer) error {
	var b strings.Builder
	b.WriteString(e.heading())
	switch {
	case e.Workload != nil:
		e.Workload.write(&b, e.About, e.all)
	case e.Cause == nil:
		fmt.Fprintf(&b, "%s%s %s\n", e.About.whole(), e.verb(), e.Text)
	default:
		although := ""
		if e.Wanted != "" {
			although = ", although " + e.Wanted
		}
		fmt.Fprintf(&b, "%s %s%s: %s\n", e.About.whole(), e.verb(), although, e.Cause.Code)
		writeCause(&b, *e.Cause, e.shortPools())
	}
	e.writeAlso(&b)
	e.writeTries(&b)
	for _, field := range e.Ignored {
		fmt.Fprintf(&b, "  %-9s  %s\n", "ignored", field)
	}
	if e.Pool != nil {
		e.Pool.write(&b, e.Cause == nil)
	}
	if e.Claim != nil {
		e.Claim.write(&b)
	}
	for _, daemon := range e.Daemons {
		fmt.Fprintf(&b, "  %-9s  %s\n", "daemon", daemon)
	}
	for _, kind := range e.NotChecked {
		fmt.Fprintf(&b, "  not checked: %s\n", kind)
	}
	e.writeEvent(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

// shortPools returns the pools to list in short below the cause: none if they follow with their remedies.
func (e Explained) shortPools() []view.PoolCause {
	if e.all && len(e.Also) > 0 {
		return nil
	}
	return e.Pools
}

// verb returns the words between the object and its cause, or its text if there is no cause.
func (e Explained) verb() string {
	kind := e.About.Kind
	switch {
	case e.Cause == nil && kind == "NodePool" && e.State == view.Coming:
		return " launches:"
	case e.Cause == nil:
		return ":"
	case kind == "Node":
		return "stays"
	case kind == "NodePool":
		return "launches nothing"
	case kind == "NodeClaim":
		return "is " + e.Claim.now()
	}
	return "waits"
}

// String returns the object's name as messages begin: pods and nodes without their kind.
func (a About) String() string {
	switch a.Kind {
	case "Pod":
		return a.Namespace + "/" + a.Name
	case "Node":
		return a.Name
	}
	if a.Namespace != "" {
		return strings.ToLower(a.Kind) + " " + a.Namespace + "/" + a.Name
	}
	return strings.ToLower(a.Kind) + " " + a.Name
}

// whole returns the object's name with its kind, as explanations begin.
func (a About) whole() string {
	if a.Kind == "Pod" || a.Kind == "Node" {
		return strings.ToLower(a.Kind) + " " + a.String()
	}
	return a.String()
}

// writeAlso prints the further causes: one line each or, with all, each with its remedies.
func (e Explained) writeAlso(b *strings.Builder) {
	lead := "also"
	if e.About.Kind == "Pod" {
		lead = otherwise
	}
	for _, c := range e.Also {
		if !e.all {
			fmt.Fprintf(b, "  %-9s  %s: %s\n", lead, c.Code, c.Text)
			continue
		}
		fmt.Fprintf(b, "%s: %s\n", lead, c.Code)
		writeCause(b, c, nil)
	}
	if !e.all {
		return
	}
	for _, pool := range e.Pools {
		lines := pool.Steps
		if pool.Beyond != "" {
			lines = append(lines[:len(lines):len(lines)], "and if it were tolerated: "+string(pool.Beyond))
		}
		for i, line := range lines {
			lead := ""
			if i == 0 {
				lead = "filters of NodePool " + pool.Pool + ":\n"
			}
			fmt.Fprintf(b, "%s  %s\n", lead, line)
		}
	}
}
