package signals

import (
	"fmt"
	"slices"
	"strings"
)

// Told is one thing that Karpenter tells, and how we know that Joiner tells it too.
type Told struct {
	What string // an event as "Reason Type Kind", or a message of Karpenter's log
	Ours string // Joiner's message; for events the same as What
	How  string // see below
}

// Values of How: ByRun if a run of the scenario shows it; the name of a test that shows it; or Never, and why Joiner
// does not tell it.
const (
	ByRun = "run"
	Never = "never: "
)

// ReadTold reads lines WHAT | OURS | HOW; without OURS, it is the same as WHAT. Lines that begin with # are comments.
func ReadTold(text string) (all []Told, err error) {
	for i, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, "|")
		for n := range parts {
			parts[n] = strings.TrimSpace(parts[n])
		}
		switch len(parts) {
		case 2:
			all = append(all, Told{parts[0], parts[0], parts[1]})
		case 3:
			all = append(all, Told{parts[0], parts[1], parts[2]})
		default:
			return nil, fmt.Errorf("line %d is %q: want WHAT | HOW, or WHAT | OURS | HOW", i+1, line)
		}
	}
	return all, nil
}

// Faults returns what is wrong in a list: Joiner's run did not show an entry, or shows it although the list says
// never, or a test does not exist.
func Faults(all []Told, shown map[string]int, tests map[string]string) (faults []string) {
	for _, t := range all {
		_, named := tests[t.How]
		switch {
		case t.How == ByRun && shown[t.Ours] == 0:
			faults = append(faults, fmt.Sprintf("%s: Joiner did not tell %q", t.What, t.Ours))
		case strings.HasPrefix(t.How, Never) && shown[t.Ours] > 0:
			faults = append(faults, fmt.Sprintf("%s: Joiner tells it, and the list says %s", t.What, t.How))
		case t.How != ByRun && !strings.HasPrefix(t.How, Never) && !named:
			faults = append(faults, fmt.Sprintf("%s: there is no test %s", t.What, t.How))
		}
	}
	return faults
}

// Unlisted returns what was shown and is not in a list, in alphabetical order.
func Unlisted(all []Told, shown map[string]int) (missing []string) {
	for what := range shown {
		if !slices.ContainsFunc(all, func(t Told) bool { return t.What == what }) {
			missing = append(missing, what)
		}
	}
	slices.Sort(missing)
	return missing
}
