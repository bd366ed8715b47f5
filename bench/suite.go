package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/bench/internal/bound"
	"github.com/joiner-autoscaler/joiner/bench/internal/report"
	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
)

// do runs every scenario on every side, prints the tables and writes the results. A violation in a plan of Joiner's is
// an error.
func (s *suite) do() error {
	fmt.Print(machine())
	earlier, err := report.Read(s.out)
	if err != nil {
		return err
	}
	var lines []report.Line
	var records []report.Record
	broken := 0
	for _, name := range s.scenarios {
		measure := s.compare
		if strings.HasPrefix(name, systemPrefix) {
			measure = s.whole
		} else if strings.HasPrefix(name, restPrefix) {
			measure = s.atRest
		} else if strings.HasPrefix(name, streamPrefix) {
			measure = s.stream
		}
		own, err := measure(name)
		if err != nil {
			return err
		}
		for _, l := range own {
			lines, records = append(lines, l), append(records, l.Record)
			if l.Side == report.Joiner {
				broken += violationsOf(l.Record)
			}
		}
		if err := report.Write(s.out, records); err != nil { // each time: the next may take long and be interrupted
			return err
		}
	}
	fmt.Println()
	if err := report.Tables(os.Stdout, lines); err != nil {
		return err
	}
	if err := report.Frontiers(os.Stdout, lines, earlier); err != nil {
		return err
	}
	fmt.Println()
	report.Exponents(os.Stdout, lines)
	fmt.Println()
	report.Aims(os.Stdout, lines)
	report.FrontierAims(os.Stdout, lines, earlier)
	if broken > 0 {
		return fmt.Errorf("%d violations in plans of Joiner's", broken)
	}
	return nil
}

// violationsOf counts a record's known violations, including those under other settings.
func violationsOf(r report.Record) int {
	count := 0
	if r.Violations != nil {
		count = *r.Violations
	}
	for _, p := range r.Frontier {
		if p.Violations != nil {
			count += *p.Violations
		}
	}
	return count
}

// compare measures a scenario on every side.
func (s *suite) compare(name string) ([]report.Line, error) {
	input, err := scenario.Make(name, s.run.Seed)
	if err != nil {
		return nil, err
	}
	bounds := bound.Of(input)
	input = scenario.Scenario{}
	var lines []report.Line
	for _, side := range s.sides {
		a, err := s.measure(name, side)
		if err != nil {
			return nil, err
		}
		a.Record.LowerBound, a.Record.LowerBoundKind = bounds[0].Dollars, bounds[0].Kind
		a.Record.LowerBounds = map[string]float64{}
		for _, b := range bounds {
			a.Record.LowerBounds[b.Kind] = b.Dollars
		}
		if side == report.Joiner {
			if a.Record.Frontier, err = s.frontier(name); err != nil {
				return nil, err
			}
		}
		fmt.Fprintf(os.Stderr, "%s, %s: %.4f s, %d placed, %d nodes, %.3f $/h (at least %s) %s\n", name, side,
			a.Record.WallSeconds, a.Record.PodsPlaced, a.Record.Nodes, a.Record.PricePerHour, inWords(bounds), a.Note)
		for _, violation := range a.Violations {
			fmt.Fprintf(os.Stderr, "%s, %s: VIOLATION: %s\n", name, side, violation)
		}
		lines = append(lines, report.Line{Record: a.Record, Note: a.Note})
	}
	return lines, nil
}

// inWords lists bounds, the highest first.
func inWords(bounds []bound.Bound) string {
	var words []string
	for _, b := range bounds {
		words = append(words, fmt.Sprintf("%.3f %s", b.Dollars, b.Kind))
	}
	return strings.Join(words, ", ")
}

// longRun is the time, in seconds, after which a run is not repeated: chance matters little in long runs.
const longRun = 120

// measure runs a side's processes and returns the answer of the median one by time.
func (s *suite) measure(name, side string) (answer, error) {
	r := s.run
	r.Scenario, r.Side = name, side
	repeats := s.repeats
	if side == report.Karpenter {
		repeats = s.peerRepeats
	}
	var answers []answer
	for i := range repeats {
		if i > 0 && side == report.Joiner {
			r.Oracle = "" // the same plan again (P-20)
		}
		a, err := r.inProcess()
		if err != nil {
			return answer{}, err
		}
		if i > 0 && side == report.Joiner {
			first := answers[0].Record
			whole := !a.Record.CutOff && !first.CutOff // where rounds are cut off depends on the clock
			if whole && (a.Record.Nodes != first.Nodes || a.Record.PricePerHour != first.PricePerHour) {
				return answer{}, fmt.Errorf("%s: two plans for the same input: %d nodes, then %d", name, first.Nodes,
					a.Record.Nodes)
			}
			a.Record.Violations, a.Violations = answers[0].Record.Violations, answers[0].Violations
		}
		answers = append(answers, a)
		if a.Record.WallSeconds > longRun {
			break
		}
	}
	slices.SortFunc(answers, func(a, b answer) int { return cmp.Compare(a.Record.WallSeconds, b.Record.WallSeconds) })
	return answers[(len(answers)-1)/2], nil
}

// inProcess measures in a process of its own: the peak of memory and the warmth of caches are then those of one run.
func (r run) inProcess() (answer, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return answer{}, err
	}
	program, err := os.Executable()
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.Background(), func() {}
	if r.Side == report.Karpenter {
		ctx, cancel = context.WithTimeout(ctx, r.Peer.Limit+grace)
	}
	defer cancel()
	start := time.Now()
	command := exec.CommandContext(ctx, program, "-measure", string(text))
	command.Stderr, command.WaitDelay = os.Stderr, time.Second
	out, err := command.Output()
	if ctx.Err() != nil {
		return r.killed(time.Since(start))
	}
	if err != nil {
		return answer{}, fmt.Errorf("measuring %s, %s: %w", r.Scenario, r.Side, err)
	}
	var a answer
	if err := json.Unmarshal(bytes.TrimSpace(out), &a); err != nil {
		return a, fmt.Errorf("measuring %s, %s: reading %q: %w", r.Scenario, r.Side, strings.TrimSpace(string(out)),
			err)
	}
	return a, nil
}

// grace is how much time a process of the peer has beyond the limit of its pass: for making the scenario, for its work
// before and after it looks at the clock, and for the check of its plan.
const grace = 20 * time.Minute

// killed returns the answer for a process that had to be stopped.
func (r run) killed(after time.Duration) (answer, error) {
	s, err := scenario.Make(r.Scenario, r.Seed)
	if err != nil {
		return answer{}, err
	}
	a := answer{Note: fmt.Sprintf("stopped after %s without a plan", after.Round(time.Second))}
	a.Record = report.Record{Scenario: r.Scenario, Side: r.Side, PodsUnplaced: len(s.Pending), CutOff: true}
	a.Record.WallSeconds = r.Peer.Limit.Seconds()
	return a, nil
}
