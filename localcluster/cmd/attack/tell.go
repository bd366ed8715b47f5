package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/attack"
)

// test is the result of a test.
type test struct {
	ended, passed bool
	took          time.Duration
	seen          []attack.Seen
	output        []string // all lines, for failed tests
}

// teller prints attempts in the order of the pages, each one as soon as all its tests have ended.
type teller struct {
	out      io.Writer
	attempts []attack.Attempt
	next     int // the first attempt that was not printed yet
	section  string
	tests    map[string]*test
	silent   []string // attempts without anything seen, or without the refusal that the page promises
	latest   time.Duration
}

func newTeller(out io.Writer, attempts []attack.Attempt) *teller {
	return &teller{out: out, attempts: attempts, tests: map[string]*test{}}
}

// hears handles one event of a run.
func (t *teller) hears(e event) {
	name, _, sub := strings.Cut(e.Test, "/")
	if name == "" {
		return
	}
	of := t.tests[name]
	if of == nil {
		of = &test{}
		t.tests[name] = of
	}
	switch e.Action {
	case "output":
		of.output = append(of.output, e.Output)
		if seen, found := attack.Parse(e.Output); found {
			of.seen = append(of.seen, seen)
		}
	case "pass", "fail", "skip":
		if !sub {
			of.ended, of.passed = true, e.Action == "pass"
		}
		// the time of a test does not include its parallel subtests
		of.took = max(of.took, time.Duration(e.Elapsed*float64(time.Second)))
		if !sub {
			t.tell()
		}
	}
}

// missing ends tests without a result: their package could not be built, or it died.
func (t *teller) missing(names []string) {
	for _, name := range names {
		if t.tests[name] == nil {
			t.tests[name] = &test{output: []string{"the test did not run\n"}}
		}
		t.tests[name].ended = true
	}
	t.tell()
}

// tell prints the attempts whose turn it is.
func (t *teller) tell() {
	for ; t.next < len(t.attempts); t.next++ {
		a := t.attempts[t.next]
		if slices.ContainsFunc(a.Tests, func(name string) bool {
			return t.tests[name] == nil || !t.tests[name].ended
		}) {
			return
		}
		t.one(t.next+1, a)
	}
}

func (t *teller) one(number int, a attack.Attempt) {
	if a.Section != t.section {
		t.section = a.Section
		fmt.Fprintf(t.out, "\n%s\n", a.Section)
	}
	fmt.Fprintf(t.out, "\n%3d. %s\n     the page: %s\n", number, plain(a.Text), plain(a.Outcome))
	if len(a.Tests) == 0 {
		fmt.Fprintln(t.out, "     not tried: that is so by design")
		return
	}
	var seen []attack.Seen
	for _, name := range a.Tests {
		seen = append(seen, t.tests[name].seen...)
	}
	refused := func(s attack.Seen) bool { return s.How == attack.Refused }
	if len(seen) == 0 || outcomeOf(a.Outcome) == string(attack.Refused) && !slices.ContainsFunc(seen, refused) {
		t.silent = append(t.silent, plain(a.Text))
	}
	for i, line := range summary(seen) {
		fmt.Fprintf(t.out, "     %-9s %s\n", map[bool]string{true: "seen:"}[i == 0], line)
	}
	for _, s := range seen {
		if s.How == attack.Told {
			t.latest = max(t.latest, s.After)
		}
	}
	for _, name := range a.Tests {
		of := t.tests[name]
		how := map[bool]string{true: "as the page says", false: "NOT AS THE PAGE SAYS"}[of.passed]
		fmt.Fprintf(t.out, "     %s: %s (%s)\n", how, name, of.took.Round(time.Second/10))
		if !of.passed {
			fmt.Fprint(t.out, strings.Join(of.output, ""))
			of.output = nil
		}
	}
}

// plain removes the Markdown marks from a text.
func plain(text string) string {
	return strings.NewReplacer("`", "", "**", "").Replace(text)
}

// most is how many different observations of a kind are printed for one attempt.
const most = 3

// group is an observation that was made several times.
type group struct {
	last    attack.Seen // the last observation: texts of refusals differ, and the last one fits the attempt best
	count   int
	longest time.Duration
}

// summary returns a line for each kind of observation, in the order of first sight: how often, by whom, an example,
// and the longest time. Waits are included only if nothing else was seen.
func summary(seen []attack.Seen) []string {
	specific := slices.ContainsFunc(seen, func(s attack.Seen) bool { return s.How != attack.Waited })
	var groups []*group
	for _, s := range seen {
		if s.How == attack.Waited && specific {
			continue
		}
		at := slices.IndexFunc(groups, func(g *group) bool {
			return g.last.How == s.How && g.last.By == s.By && (s.How == attack.Refused || g.last.Text == s.Text)
		})
		if at < 0 {
			at, groups = len(groups), append(groups, &group{})
		}
		groups[at].last = s
		groups[at].count++
		groups[at].longest = max(groups[at].longest, s.After)
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(rank(a.last.How), rank(b.last.How)) })
	var lines []string
	told := map[attack.How]int{}
	for _, g := range groups {
		if told[g.last.How]++; told[g.last.How] <= most {
			lines = append(lines, lineOf(g.last, g.count, g.longest))
		}
	}
	return lines
}

func rank(how attack.How) int {
	return slices.Index([]attack.How{attack.Refused, attack.Told, attack.Held, attack.Waited}, how)
}

func lineOf(s attack.Seen, count int, longest time.Duration) string {
	text := strings.Join(strings.Fields(s.Text), " ")
	after := longest.Round(time.Second / 10).String()
	switch s.How {
	case attack.Refused:
		return fmt.Sprintf("refused %s by %s, with the answer: %s", times(count), s.By, text)
	case attack.Told:
		return fmt.Sprintf("told by %s after %s: %s", s.By, after, text)
	default:
		return fmt.Sprintf("after %s: %s", after, text)
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// end prints the summary, and reports whether something differs from the pages.
func (t *teller) end(took time.Duration) (failed bool) {
	outcomes, failures, tests := map[string]int{}, 0, 0
	for _, a := range t.attempts {
		outcomes[outcomeOf(a.Outcome)]++
	}
	for _, of := range t.tests {
		tests++
		if !of.passed {
			failures++
		}
	}
	var parts []string
	for outcome, n := range outcomes {
		parts = append(parts, fmt.Sprintf("%s %d", outcome, n))
	}
	slices.Sort(parts)
	fmt.Fprintf(t.out, "\n%d attempts in %s, by what the pages say: %s.\n",
		len(t.attempts), took.Round(time.Second), strings.Join(parts, ", "))
	fmt.Fprintf(t.out,
		"%d of %d tests saw it so. The latest that the operator or a door told of something was %s after "+
			"the test began to look.\n", tests-failures, tests, t.latest.Round(time.Second/10))
	for _, text := range t.silent {
		fmt.Fprintf(t.out, "Nothing that the page tells was seen of: %s\n", text)
	}
	return failures > 0 || len(t.silent) > 0
}

// outcomeOf returns the kind of an outcome on a page.
func outcomeOf(text string) string {
	for _, kind := range []string{"refused", "repaired", "no effect", "reported", "open", "by design", "judged",
		"restored"} {
		if strings.HasPrefix(plain(text), kind) {
			return kind
		}
	}
	return "other"
}
