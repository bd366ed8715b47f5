package dump

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Dump is a snapshot, the terms under which it was planned for, and what the engine said.
type Dump struct {
	Header   Header // without Format and SHA256, which Write sets
	Snapshot *cluster.Snapshot
	Terms    engine.Terms
	Plans    []Planned
}

// Planned is the engine's answer to one question.
type Planned struct {
	Question Question
	Plan     plan.Plan
}

// Question is a question that the engine can answer about a snapshot.
type Question string

// Questions, by what they lead to.
const (
	AskLaunches    Question = "launches"  // nodes for static pools and pending pods
	AskProvision   Question = "provision" // nodes for pending pods
	AskReplicas    Question = "replicas"  // nodes for static pools
	AskTrim        Question = "trim"
	AskEmptiness   Question = "emptiness"
	AskExpire      Question = "expire"
	AskDrift       Question = "drift"
	AskConsolidate Question = "consolidate"
)

// All returns the questions that together say what a controller would do, in its order.
func All() []Question {
	list := []Question{AskLaunches, AskTrim}
	for _, method := range engine.Methods() {
		list = append(list, Question(method.Name))
	}
	return list
}

// Ask asks the engine a question about a snapshot.
func Ask(question Question, s *cluster.Snapshot, terms engine.Terms) (plan.Plan, error) {
	switch question {
	case AskLaunches:
		return engine.Launches(s), nil
	case AskProvision:
		return engine.Provision(s), nil
	case AskReplicas:
		return engine.Replicas(s), nil
	case AskTrim:
		return engine.Trim(s, terms.Budgets), nil
	}
	for _, method := range engine.Methods() {
		if method.Name == string(question) {
			return method.Plan(s, terms), nil
		}
	}
	return plan.Plan{}, fmt.Errorf("the question is %q; known are %s", question, questions())
}

func questions() string {
	var names []string
	for _, q := range append(All(), AskProvision, AskReplicas) {
		names = append(names, string(q))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// Make asks these questions about a snapshot. Dumps contain no devices, so it plans without them: pods that ask for
// devices wait in a dump (K-42).
func Make(s *cluster.Snapshot, terms engine.Terms, questions ...Question) (Dump, error) {
	s = s.WithoutDevices()
	d := Dump{Snapshot: s, Terms: terms}
	for _, question := range questions {
		p, err := Ask(question, s, terms)
		if err != nil {
			return d, err
		}
		d.Plans = append(d.Plans, Planned{question, p})
	}
	return d, nil
}

// Difference is a question that the engine answers differently from a dump.
type Difference struct {
	Question Question
	// Then is the plan in the dump, and Now the engine's.
	Then, Now plan.Plan
	// Lines are the differences: lines only in Then begin with "- ", lines only in Now with "+ ".
	Lines []string
}

// Replay asks the engine the questions of a dump again, and returns those with different answers. Two plans are the
// same if their records are, byte for byte.
func Replay(d Dump) ([]Difference, error) {
	var differences []Difference
	for _, then := range d.Plans {
		now, err := Ask(then.Question, d.Snapshot, d.Terms)
		if err != nil {
			return nil, err
		}
		before, after := plannedRecord(then), plannedRecord(Planned{then.Question, now})
		if string(encoded(before)) != string(encoded(after)) {
			differences = append(differences, Difference{then.Question, then.Plan, now, apart(before, after)})
		}
	}
	return differences, nil
}

// apart returns the lines that only one of two plans has. If the lines are the same, it compares the plans' records.
func apart(before, after planRecord) []string {
	then, now := readPlan(before, nil), readPlan(after, nil)
	lines := onlyIn("- ", then.String(), now.String())
	if lines = append(lines, onlyIn("+ ", now.String(), then.String())...); len(lines) > 0 {
		return lines
	}
	split := func(p planRecord) string {
		var parts []string
		for _, l := range p.Launches {
			parts = append(parts, "launch "+string(encoded(l)))
		}
		for _, n := range p.Nominations {
			parts = append(parts, "nominate "+string(encoded(n)))
		}
		for _, u := range p.Unplaced {
			parts = append(parts, "unplaced "+string(encoded(u)))
		}
		for _, r := range p.Removes {
			parts = append(parts, "remove "+string(encoded(r)))
		}
		return strings.Join(append(parts, fmt.Sprintf("basedOn %d, order %v", p.BasedOn, p.Order)), "\n")
	}
	lines = onlyIn("- ", split(before), split(after))
	return append(lines, onlyIn("+ ", split(after), split(before))...)
}

func onlyIn(sign, text, other string) []string {
	count := map[string]int{}
	for line := range strings.Lines(other + "\n") {
		count[strings.TrimSuffix(line, "\n")]++
	}
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if count[line]--; count[line] < 0 {
			lines = append(lines, sign+line)
		}
	}
	return lines
}
