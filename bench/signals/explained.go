package signals

import (
	"fmt"
	"slices"
	"strings"
)

// Explanation says why two sides differ in something.
type Explanation struct {
	Name   string // of a metric; with * at its end, of all metrics with this prefix
	Aspect Aspect
	// Varies is set if the sides differ in some runs only.
	Varies bool
	Why    string

	used bool
}

// ReadExplanations reads lines NAME ASPECT WHY; a ? after the aspect sets Varies. Lines that begin with # are
// comments.
func ReadExplanations(text string) (all []*Explanation, err error) {
	for i, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.SplitN(line, " ", 3)
		if len(fields) < 3 {
			return nil, fmt.Errorf("line %d is %q: want NAME ASPECT WHY", i+1, line)
		}
		e := &Explanation{Name: fields[0], Why: fields[2]}
		aspect, varies := strings.CutSuffix(fields[1], "?")
		e.Aspect, e.Varies = Aspect(aspect), varies
		if known := []Aspect{Absent, Extra, Type, Labels, Sorts, Value}; !slices.Contains(known, e.Aspect) {
			return nil, fmt.Errorf("line %d: aspect %q is none of %v", i+1, aspect, known)
		}
		all = append(all, e)
	}
	return all, nil
}

// of reports whether an explanation is about a metric.
func (e *Explanation) of(name string) bool {
	if prefix, many := strings.CutSuffix(e.Name, "*"); many {
		return strings.HasPrefix(name, prefix)
	}
	return e.Name == name
}

// Why returns the explanation of a difference. One that names the metric goes before one that names many.
func Why(all []*Explanation, name string, aspect Aspect) (why string, found bool) {
	for _, many := range []bool{false, true} {
		for _, e := range all {
			if e.Aspect == aspect && e.of(name) && strings.HasSuffix(e.Name, "*") == many {
				e.used = true
				return e.Why, true
			}
		}
	}
	return "", false
}

// Unexplained returns the differences of rows that have no explanation, in alphabetical order.
func Unexplained(rows []Row, all []*Explanation) (missing []string) {
	for _, row := range rows {
		for aspect, what := range row.Differences {
			if _, found := Why(all, row.Name, aspect); !found {
				missing = append(missing, fmt.Sprintf("%s %s: %s", row.Name, aspect, what))
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// Idle returns the explanations that explained nothing, although they should.
func Idle(all []*Explanation) (idle []string) {
	for _, e := range all {
		if !e.used && !e.Varies {
			idle = append(idle, fmt.Sprintf("%s %s", e.Name, e.Aspect))
		}
	}
	return idle
}
