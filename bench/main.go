// Command bench measures Joiner's planning against that of Karpenter, on the same inputs and the same machine. See
// docs/benchmarks.md.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/bench/internal/karpenter"
	"github.com/joiner-autoscaler/joiner/bench/internal/oracle"
	"github.com/joiner-autoscaler/joiner/bench/internal/report"
	"github.com/joiner-autoscaler/joiner/internal/engine"
)

func main() {
	if err := bench(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(args []string) error {
	var s suite
	var quick bool
	var scenarios, sides, measure string
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	flags.BoolVar(&quick, "quick", false, "sizes up to 5,000 and fewer repetitions")
	flags.StringVar(&scenarios, "scenarios", "", "names, joined by commas, instead of all")
	flags.StringVar(&sides, "sides", report.Joiner+","+report.Karpenter, "which sides to run")
	flags.IntVar(&s.repeats, "repeats", 0, "processes for each of Joiner's scenarios; 0: 3 when quick, else 5")
	flags.IntVar(&s.peerRepeats, "peer-repeats", 0, "the same for Karpenter; 0: 1 when quick, else 3")
	flags.StringVar(&s.out, "out", "results.json", "file for the results")
	flags.Uint64Var(&s.run.Seed, "seed", 1, "of the scenarios")
	flags.IntVar(&s.run.Passes, "passes", 0, "measured passes in each process; 0: 1, or 21 for one-more-pod")
	flags.StringVar(&s.run.Profile, "profile", "", "file for a CPU profile of the last process")
	flags.IntVar(&s.run.Peer.Workers, "peer-workers", karpenter.Workers,
		"candidates that Karpenter looks at in parallel")
	flags.DurationVar(&s.run.Peer.Limit, "peer-limit", 20*time.Minute, "after which a pass of Karpenter is cut off")
	flags.DurationVar(&s.run.DisruptLimit, "disrupt-limit", 5*time.Minute,
		"of planning, after which rounds of disruption are cut off, on either side")
	flags.Uint64Var(&s.run.SchedulerSeed, "scheduler-seed", 0,
		"consolidate-N, drift-N: have a model of kube-scheduler place Joiner's pods that moved, drawn by this seed; "+
			"0: they go where Joiner expects them")
	flags.IntVar(&s.run.PriceTolerance, "price-tolerance", engine.DefaultPriceTolerance,
		"percent by which fewer nodes may be dearer than the cheapest, for Joiner")
	flags.Float64Var(&s.run.NodeOverheadPrice, "node-overhead-price", 0,
		"dollars per hour that a node costs beside its price, for Joiner")
	flags.BoolVar(&s.run.Trace, "trace", false, "print each round of a disruption")
	flags.BoolVar(&s.run.Peer.IgnorePreferences, "peer-ignore-preferences", false,
		"run Karpenter with PREFERENCE_POLICY=Ignore")
	flags.StringVar(&s.run.Oracle, "oracle", "",
		"program that checks every plan, none for none; default: oraclecheck beside this program")
	flags.StringVar(&s.stateDir, "state", "",
		"directory that keeps the control plane of system-N, with its audit log and all logs; empty: none")
	flags.IntVar(&s.rounds, "rounds", 3, "of each side in scenarios system-N, which are not a part of -quick")
	flags.StringVar(&s.programs.controlPlane, "controlplane", "",
		"program of the local control plane; default: controlplane beside this program")
	flags.StringVar(&s.programs.joiner, "joiner", "", "the same for joiner")
	flags.StringVar(&s.programs.karpenter, "karpenter", "", "the same for karpenter, its controller for KWOK nodes")
	flags.StringVar(&measure, "measure", "", "internal: what to measure in this process, as JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if measure != "" {
		return child(measure)
	}
	if err := s.findOracle(); err != nil {
		return err
	}
	s.choose(quick)
	if scenarios != "" {
		s.scenarios = strings.Split(scenarios, ",")
	}
	s.sides = strings.Split(sides, ",")
	return s.do()
}

// suite has what one call of the benchmark runs.
type suite struct {
	scenarios, sides     []string
	repeats, peerRepeats int
	out                  string
	run                  run
	rounds               int // of whole controllers
	stateDir             string
	programs             programs
}

func (s *suite) choose(quick bool) {
	s.scenarios = []string{
		"diverse-100", "diverse-1000", "diverse-5000", "preferences-4000", "plain-5000", "one-more-pod-500",
		"one-more-pod-5000", "limit-20", "stream-1000", "consolidate-200", "drift-200",
	}
	repeats, peerRepeats := 3, 1
	if !quick {
		repeats, peerRepeats = 5, 3
		s.scenarios = append(s.scenarios, "system-500", "system-2000", "one-more-pod-20000", "stream-10000",
			"drift-2000",
			"consolidate-2000", "diverse-20000", "plain-100k") // the longest last
	}
	if s.repeats == 0 {
		s.repeats = repeats
	}
	if s.peerRepeats == 0 {
		s.peerRepeats = peerRepeats
	}
}

// findOracle finds the program that checks the plans. Without one it fails, unless the flag says none.
func (s *suite) findOracle() error {
	switch s.run.Oracle {
	case "none":
		s.run.Oracle = ""
		return nil
	case "":
		own, err := os.Executable()
		if err != nil {
			return err
		}
		s.run.Oracle = filepath.Join(filepath.Dir(own), "oraclecheck")
	}
	return oracle.Find(s.run.Oracle)
}

// child runs one measurement and prints the answer.
func child(text string) error {
	var r run
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return fmt.Errorf("reading what to measure: %w", err)
	}
	a, err := r.do()
	if err != nil {
		return fmt.Errorf("%s, %s: %w", r.Scenario, r.Side, err)
	}
	return json.NewEncoder(os.Stdout).Encode(a)
}
