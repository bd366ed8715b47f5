package signals

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// head and metricsHead are prose; ~ stands for the signs around code.
const head = `# Signals beside Karpenter's

One scenario, first with Karpenter 1.15's own controller for KWOK nodes and then with Joiner, each on a fresh control
plane (~make signals~, which compares and, with ~SIGNALS_FLAGS=-rewrite~, writes this page): a NodePool and six pods,
for which three nodes come; a pod that fits nowhere; the nodes drift; pods go and the nodes that are left over; a node
is deleted by hand; all goes. An explanation stands for each difference (~bench/signals/testdata/differences.txt~); the
test fails for a difference without one, and for one without a difference.
`

const metricsHead = `
## Metrics

Of each side how many series there are and what they come to: gauges while three nodes stand and a pod waits, all
others at the end; of histograms and summaries how often something was measured. Times are not compared, nor what
libraries measure of a process, apart from names, types and labels. Joiner's own metrics, ~joiner_~, are on [the page
of monitoring](monitoring.md).

| metric | type | labels | Karpenter | Joiner | what differs, and why |
|---|---|---|---|---|---|
`

// Page returns the page about two runs. tests has the place of each test, by name.
func Page(rows []Row, why []*Explanation, events, messages []Told, karpenter, joiner *Run,
	tests map[string]string) string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(head+metricsHead, "~", "`"))
	equal := 0
	for _, r := range rows {
		if len(r.Differences) == 0 && (strings.HasPrefix(r.Name, "go_") || strings.HasPrefix(r.Name, "process_")) {
			equal++
			continue
		}
		var differences []string
		for _, aspect := range slices.Sorted(maps.Keys(r.Differences)) {
			text, _ := Why(why, r.Name, aspect)
			differences = append(differences, fmt.Sprintf("%s: %s", aspect, text))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", r.Name, r.Type, quoted(r.Labels), r.Karpenter, r.Joiner,
			strings.Join(differences, "; "))
	}
	fmt.Fprintf(&b, "\n%d metrics of Go's runtime and of the process are the same and left out.\n", equal)
	b.WriteString(
		"\n## Events\n\n| reason | type | about | Karpenter | Joiner | shown by |\n|---|---|---|---|---|---|\n")
	for _, e := range events {
		parts := strings.Fields(e.What)
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %s |\n", parts[0], parts[1], parts[2], karpenter.Events[e.What],
			joiner.Events[e.Ours], shownBy(e, tests))
	}
	b.WriteString("\n## Lines of the log\n\nThe messages of Karpenter's log that people look for, " +
		"and the key `event` of Joiner's lines for the same.\n\n" +
		"| Karpenter | times | Joiner's `event` | times | shown by |\n|---|---|---|---|---|\n")
	for _, m := range messages {
		fmt.Fprintf(&b, "| %s | %d | %s | %d | %s |\n", m.What, karpenter.Messages[m.What], m.Ours,
			joiner.Messages[m.Ours], shownBy(m, tests))
	}
	b.WriteString(
		"\n## Columns\n\nThe same on both sides; in the wide table of NodeClaims Karpenter has IMAGEID before ID.\n\n" +
			"| | columns |\n|---|---|\n")
	for _, command := range slices.Sorted(maps.Keys(joiner.Columns)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", command, joiner.Columns[command])
	}
	return b.String()
}

func shownBy(t Told, tests map[string]string) string {
	if in, named := tests[t.How]; named {
		return fmt.Sprintf("`%s` in %s", t.How, in)
	}
	if t.How == ByRun {
		return "this run"
	}
	return t.How
}

func quoted(labels []string) string {
	if len(labels) == 0 {
		return "none"
	}
	return "`" + strings.Join(labels, "`, `") + "`"
}

var counted = regexp.MustCompile(`\| [0-9]+ `)

// Lasting returns the part of a page that is the same in each run. It leaves out figures, and the table of metrics,
// since some series exist in some runs only. The test checks that table against its own run.
func Lasting(page string) string {
	before, table, _ := strings.Cut(page, "\n## Metrics\n")
	_, after, _ := strings.Cut(table, "\n## Events\n")
	return before + counted.ReplaceAllString(after, "| n ")
}
