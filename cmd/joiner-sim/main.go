// Command joiner-sim searches for bugs in Joiner's controllers by simulation. It runs them in simulated worlds with
// faults, each drawn from a seed, and checks what must hold (X-01 to X-04, docs/simulation.md).
//
//	joiner-sim -from 1 -n 20000        run many seeds on all cores
//	joiner-sim -seed 42 -v             tell the story of one
//	joiner-sim -seed 42 -reduce        print the shortest script that still fails
//	joiner-sim -file bug.txt -v        run a script
//	joiner-sim -mutants list.txt       plant bugs, and see each one caught
//
// It exits with 1 when something does not hold.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/sim"
)

// collectAt is the memory, in bytes, that the process may use before garbage is collected: worlds are small and
// short-lived.
const collectAt = 768 << 20

type options struct {
	from, n, workers uint64
	seed             uint64
	single           bool
	file             string
	verbose, reduce  bool
	all              bool
	mutants, only    string
	profile          string
	cloud            string
	generate         func(seed uint64) sim.Script
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "joiner-sim:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("joiner-sim", flag.ContinueOnError)
	flags.Uint64Var(&o.from, "from", 0, "first seed of many")
	flags.Uint64Var(&o.n, "n", 1000, "how many seeds")
	flags.Uint64Var(&o.workers, "workers", uint64(runtime.GOMAXPROCS(0)), "how many seeds run at the same time")
	flags.Uint64Var(&o.seed, "seed", 0, "run this seed alone")
	flags.StringVar(&o.file, "file", "", "run this script")
	flags.BoolVar(&o.verbose, "v", false, "tell the story")
	flags.BoolVar(&o.reduce, "reduce", false, "print the shortest script that still fails")
	flags.BoolVar(&o.all, "all", false, "go on after the first failure and count what fails")
	flags.StringVar(&o.mutants, "mutants", "",
		"build with each planted bug of this list, and search; run from the top of the tree")
	flags.StringVar(&o.only, "only", "", "with -mutants: those whose name contains this")
	flags.StringVar(&o.cloud, "cloud", "", "whose machines seeds have: ec2, or those of the simulated cloud")
	flags.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile to this file")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	flags.Visit(func(f *flag.Flag) { o.single = o.single || f.Name == "seed" || f.Name == "file" })
	if o.n == 0 || o.workers == 0 {
		return o, errors.New("-n and -workers must be above 0")
	}
	if o.generate = sim.Generators()[o.cloud]; o.generate == nil {
		return o, fmt.Errorf("-cloud is %q: want ec2, or nothing", o.cloud)
	}
	return o, nil
}

func run(args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.mutants != "" {
		return runMutants(o, out)
	}
	ground, err := sim.NewGround()
	if err != nil {
		return err
	}
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(collectAt)
	if o.profile != "" {
		file, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			return errors.Join(err, file.Close())
		}
		defer func() {
			pprof.StopCPUProfile()
			if err := file.Close(); err != nil {
				fmt.Fprintln(os.Stderr, "joiner-sim:", err)
			}
		}()
	}
	if o.single {
		return runOne(ground, o, out)
	}
	return runMany(ground, o, out)
}

// runOne runs one script, from a seed or from a file.
func runOne(ground *sim.Ground, o options, out io.Writer) error {
	script := o.generate(o.seed)
	if o.file != "" {
		text, err := os.ReadFile(o.file)
		if err != nil {
			return err
		}
		if script, err = sim.Parse(string(text)); err != nil {
			return fmt.Errorf("%s: %w", o.file, err)
		}
	}
	var story io.Writer
	if o.verbose {
		story = out
		fmt.Fprintln(out, script)
	}
	result := sim.Run(ground, script, story)
	if result.Violation != "" && o.reduce {
		fmt.Fprint(out, sim.Reduce(ground, script, result))
	}
	return report(out, "", result)
}

func report(out io.Writer, name string, result sim.Result) error {
	if result.Violation == "" {
		_, err := fmt.Fprintf(out,
			"%severything held: %d steps, %d machines, %d crashes in %s of virtual time; trace %016x\n",
			name, result.Steps, result.Launches, result.Deaths, result.At.Round(time.Second), result.Trace)
		return err
	}
	return fmt.Errorf("%sviolation of %q at %s: %s", name, result.Check, result.At, result.Violation)
}

// runMany runs seeds on all cores until one fails.
func runMany(ground *sim.Ground, o options, out io.Writer) error {
	var next, done, steps, crashes atomic.Uint64
	var mu sync.Mutex
	failed := map[uint64]sim.Result{}
	counts := map[string]int{}
	stop := atomic.Bool{}
	begun := time.Now()
	var workers sync.WaitGroup
	for range o.workers {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < o.n && !stop.Load(); i = next.Add(1) - 1 {
				result := sim.Run(ground, o.generate(o.from+i), nil)
				done.Add(1)
				steps.Add(uint64(result.Steps))
				crashes.Add(uint64(result.Deaths))
				if result.Violation != "" {
					mu.Lock()
					failed[o.from+i] = result
					counts[result.Check]++
					if o.all {
						fmt.Fprintf(out, "seed %d: %s: %s\n", o.from+i, result.Check, result.Violation)
					}
					mu.Unlock()
					stop.Store(!o.all)
				}
			}
		})
	}
	workers.Wait()
	took := time.Since(begun)
	fmt.Fprintf(out, "%d seeds from %d in %s (%.1f per second), %d steps, %d crashes\n", done.Load(), o.from,
		took.Round(time.Millisecond), float64(done.Load())/took.Seconds(), steps.Load(), crashes.Load())
	if len(failed) == 0 {
		return nil
	}
	first := ^uint64(0)
	for seed := range failed {
		first = min(first, seed)
	}
	if o.all {
		fmt.Fprintln(out, counts)
	}
	return fmt.Errorf("%w\nreplay: joiner-sim -seed %d -v; shorten: joiner-sim -seed %d -reduce",
		report(out, fmt.Sprintf("seed %d: ", first), failed[first]), first, first)
}
