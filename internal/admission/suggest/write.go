package suggest

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	groupsv1alpha1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/scheduling/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// WriteJSON writes the report as one JSON object.
func (r Report) WriteJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

// WriteText writes the report for people: entries to add, entries to decide about, existing entries in use, and unused
// ones.
func (r Report) WriteText(out io.Writer) error {
	var b strings.Builder
	for _, g := range r.Groups {
		fmt.Fprintf(&b, "Group %s, entries of %s:\n", g.Name, g.Target)
		for _, part := range []struct {
			title string
			takes func(Entry) bool
		}{
			{"to add", Entry.Adds},
			{"to decide", func(e Entry) bool { return e.Source == "" && e.Class == Unknown }},
			{"there", func(e Entry) bool { return e.Source != "" && e.Reason != "" }},
		} {
			for _, e := range g.Entries {
				if part.takes(e) {
					fmt.Fprintf(&b, "  %-9s  %-8s  %s  (%s)\n", part.title, e.Class, printable(e.Text),
						printable(e.Reason))
				}
			}
		}
		for _, text := range g.Unused {
			fmt.Fprintf(&b, "  unused               %s\n", printable(text))
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "Note: %s\n", printable(note))
	}
	verdict := "entries are missing: -o yaml writes them for the source"
	if r.Complete() {
		verdict = "no entry is missing that could be added without a decision"
	}
	b.WriteString(verdict + "\n")
	_, err := io.WriteString(out, b.String())
	return err
}

// WriteYAML writes what to apply: for the live source, a manifest with its existing and missing entries; for the file,
// the list of each group. Unknown entries are comments.
func (r Report) WriteYAML(out io.Writer) error {
	var b strings.Builder
	separate := ""
	for _, target := range []Target{Scheduler, Groups, File} {
		groups := slices.DeleteFunc(slices.Clone(r.Groups), func(g Group) bool { return g.Target != target })
		if len(groups) == 0 {
			continue
		}
		b.WriteString(separate)
		separate = "---\n"
		indent, source := "", evaluator.FromConfig
		switch target {
		case Scheduler:
			indent, source = "  ", evaluator.FromScheduler
			b.WriteString(applied)
			fmt.Fprintf(&b, "apiVersion: %s\nkind: Scheduler\nmetadata:\n  name: %s\nspec:\n  schedulingGroups:\n",
				configv1.GroupVersion(), configv1.SchedulerName)
		case Groups:
			b.WriteString(applied)
			writeGroups(&b, groups)
			continue
		default:
			b.WriteString(
				"# The lists of these groups in the file of the policy; the door reads it when it starts.\ngroups:\n")
		}
		for _, g := range groups {
			g.writeYAML(&b, indent+"- ", source)
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "# %s\n", printable(note))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

const applied = "# kubectl apply --server-side --field-manager=joinerctl -f FILE adds entries and takes none away.\n"

// writeGroups writes an object for each group.
func writeGroups(b *strings.Builder, groups []Group) {
	for i, g := range groups {
		if i > 0 {
			b.WriteString("---\n")
		}
		fmt.Fprintf(b, "apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\nspec:\n", groupsv1alpha1.GroupVersion(),
			groupsv1alpha1.Kind,
			groupsv1alpha1.NameOf(configv1.GroupName(g.Name)))
		g.writeYAML(b, "  ", evaluator.FromGroups)
	}
}

// writeYAML writes the list of a group: the entries that its source has, and the new ones. The first line begins with
// begin, the others with as many blanks.
func (g Group) writeYAML(b *strings.Builder, begin string, source evaluator.Source) {
	fmt.Fprintf(b, "%sname: %s\n", begin, g.Name)
	indent := strings.Repeat(" ", len(begin))
	lines, written := "", 0
	for _, e := range g.Entries {
		if e.Source != "" && e.Source != source {
			continue // it is in the other list
		}
		reason := e.Reason
		switch {
		case slices.Contains(g.Unused, e.Text):
			reason = "nothing was found that needs it"
		case reason == "":
			reason = "listed; pods do not show who needs it"
		}
		mark := "- "
		if e.Source == "" && e.Class == Unknown {
			mark = "# - "
		} else {
			written++
		}
		lines += fmt.Sprintf("%s%s%s  # %s: %s\n", indent, mark, quoted(e.Text), e.Class, printable(reason))
	}
	list := "authorizedUsers:"
	if written == 0 {
		list += " []"
	}
	fmt.Fprintf(b, "%s%s\n%s", indent, list, lines)
	for _, text := range g.Unused {
		if !slices.ContainsFunc(g.Entries, func(e Entry) bool { return e.Text == text && e.Source == source }) {
			fmt.Fprintf(b, "%s# unused in the other list: %s\n", indent, quoted(text))
		}
	}
}

// quoted returns a text as YAML spells it, on one line. A printable text needs escapes only for quotes and
// backslashes.
func quoted(text string) string { return strconv.Quote(printable(text)) }

// printable replaces unprintable characters, so that text of users, such as their names, cannot begin a new line.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
