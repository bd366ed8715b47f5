// Command waves plays Joiner's plans with a model of kube-scheduler (B-16). It prints how many nodes were planned and
// how many were launched, in how many waves, at which price. It starts no control plane, and takes seconds. See
// docs/benchmarks.md.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/joiner-autoscaler/joiner/bench/internal/joiner"
	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest/waves"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "waves:", err)
		os.Exit(1)
	}
}

// limit ends a play that does not come to rest, in milliseconds.
const limit = 600_000

func run(args []string, out io.Writer) error {
	c := waves.Config{Plan: engine.Provision, Limit: limit}
	var scenarios string
	var inputs, seeds uint64
	var verbose, keep bool
	var costs joiner.Costs
	flags := flag.NewFlagSet("waves", flag.ContinueOnError)
	flags.StringVar(&scenarios, "scenarios", "waves-500,waves-2000",
		"names, joined by commas; mixed-N has workloads that are drawn")
	flags.Uint64Var(&inputs, "inputs", 1, "how many inputs are drawn for each")
	flags.Uint64Var(&seeds, "seeds", 5, "how many courses of events are played with each input")
	flags.Int64Var(&c.Launch, "launch", 300, "milliseconds until the first node has joined")
	flags.Int64Var(&c.Spread, "spread", 500, "milliseconds from then until the last one has")
	flags.Int64Var(&c.Try, "try", 5, "milliseconds that the scheduler takes for a pod")
	flags.Int64Var(&c.Every, "every", 100, "milliseconds between plans")
	flags.Int64Var(&c.Hold, "hold", 0, "milliseconds for which nodes wait for the others of their plan")
	flags.Int64Var(&c.Quiet, "quiet", 1000, "milliseconds without a binding before further nodes are launched")
	flags.Int64Var(&c.PutOff, "put-off", 10_000,
		"milliseconds for which they are put off at most, unless the scheduler needs longer")
	flags.Int64Var(&c.Slowest, "slowest", 60_000, "milliseconds for which they are put off in any case")
	flags.IntVar(&costs.PriceTolerance, "price-tolerance", engine.DefaultPriceTolerance,
		"how much dearer fewer nodes may be, in percent")
	flags.BoolVar(&c.Nominate, "nominate", false, "bind pods where they were planned")
	flags.BoolVar(&keep, "keep", true, "keep the room of pods that keep apart where they were planned")
	flags.BoolVar(&verbose, "v", false, "print each play")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if keep {
		c.Keep = engine.PlacesToKeep
	}
	for _, name := range strings.Split(scenarios, ",") {
		for input := range inputs {
			sum, err := play(name, input+1, seeds, costs, c, func(o waves.Outcome) {
				if verbose {
					fmt.Fprintf(out, "%s, input %d: %s\n", name, input+1, o)
				}
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s, input %d: %s\n", name, input+1, sum)
		}
	}
	return nil
}

// play plays one input several times.
func play(name string, input, seeds uint64, costs joiner.Costs, c waves.Config,
	each func(waves.Outcome)) (sums, error) {
	var sum sums
	s, err := scenario.Make(name, input)
	if err != nil {
		return sum, err
	}
	p, err := joiner.New(s, costs)
	if err != nil {
		return sum, err
	}
	for _, pod := range s.Pending {
		if err := p.Add(pod); err != nil {
			return sum, err
		}
	}
	for seed := range seeds {
		c.Seed = seed + 1
		o := waves.Play(p.Snapshot(), c)
		sum.add(o)
		each(o)
	}
	return sum, nil
}

// sums adds up the results of several plays.
type sums struct {
	plays, planned, launched, waves, most, left int
	price, plannedPrice, seconds                float64
}

func (s *sums) add(o waves.Outcome) {
	s.plays++
	s.planned, s.plannedPrice = s.planned+o.Planned, s.plannedPrice+o.PlannedPrice
	s.launched, s.waves, s.left = s.launched+o.Launched, s.waves+o.Waves, s.left+o.Left
	s.most = max(s.most, o.Launched)
	s.price += o.Price
	s.seconds += float64(o.Took) / 1000
}

// String is a line for people: means over the plays.
func (s sums) String() string {
	n := float64(max(1, s.plays))
	return fmt.Sprintf(
		"planned %.1f nodes for %.3f $/h; launched %.1f (at most %d), %.2f times as many, in %.1f waves for %.3f $/h; "+
			"%d pods left; %.1f s", float64(s.planned)/n, s.plannedPrice/n, float64(s.launched)/n, s.most,
		float64(s.launched)/float64(max(1, s.planned)), float64(s.waves)/n, s.price/n, s.left, s.seconds/n)
}
