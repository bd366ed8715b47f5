// Command churn lets random users loose on a local cluster with Joiner in it, and judges the result; see package churn
// and docs/churn.md. The exit code is 0 only if nothing was wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/joiner-autoscaler/joiner/localcluster/churn"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	ctrllog.SetLogger(logr.Discard())
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "FAILED:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to defer
	}
}

// settings are the options of the command line.
type settings struct {
	rig.Options
	seed   int64
	seeds  int
	length time.Duration
	keep   bool
	script bool
}

func command() *cobra.Command {
	var with settings
	c := &cobra.Command{
		Use: "churn", Short: "Random users on a real local control plane with Joiner", Args: cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error { return run(c.Context(), with) },
	}
	c.Flags().StringVar(&with.ControlPlane, "controlplane", "bin/controlplane", "path of the controlplane binary")
	c.Flags().StringVar(&with.Joiner, "joiner", "bin/joiner", "path of the joiner binary")
	c.Flags().Int64Var(&with.seed, "seed", -1, "the seed to run; without it fresh ones, which are printed")
	c.Flags().IntVar(&with.seeds, "n", 3, "how many seeds, one after another; with --seed those that follow it")
	c.Flags().DurationVar(&with.length, "t", time.Minute, "for how long the users of a seed act")
	c.Flags().BoolVar(&with.keep, "keep", false, "after a fault, leave the cluster running until Ctrl-C")
	c.Flags().BoolVar(&with.script, "script", false, "only print what the users of --seed would do")
	return c
}

func run(ctx context.Context, with settings) error {
	if with.script {
		fmt.Print(churn.Draw(uint64(with.seed), with.length))
		return nil
	}
	if with.seeds < 1 || with.length <= 0 {
		return fmt.Errorf("--n is %d and --t is %s: want at least one seed and a time above 0", with.seeds,
			with.length)
	}
	first := uint64(with.seed)
	if with.seed < 0 {
		first = rand.Uint64N(churn.FreshSeeds)
	}
	var bad []uint64
	var town *churn.Town
	for i := range uint64(with.seeds) {
		var err error
		if town == nil {
			if town, err = churn.Start(ctx, with.Options); err != nil {
				return err
			}
		}
		report, err := town.Run(ctx, first+i, with.length)
		if err != nil {
			return errors.Join(err, town.Stop())
		}
		fmt.Println(report)
		for _, barren := range report.Barren {
			fmt.Printf("  launched for nothing: %s\n", barren)
		}
		if len(report.Faults) == 0 {
			continue
		}
		bad = append(bad, report.Seed)
		fmt.Print(town.Show(report))
		if with.keep {
			fmt.Printf("the cluster runs until Ctrl-C: export KUBECONFIG=%s\n", town.Cluster.AdminKubeconfig())
			<-ctx.Done()
		}
		if err := town.Stop(); err != nil { // the next seed needs a clean cluster
			return err
		}
		town = nil
	}
	if town != nil {
		if err := town.Stop(); err != nil {
			return err
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("%d of %d seeds: %v", len(bad), with.seeds, bad)
	}
	fmt.Printf("%d seeds, nothing wrong\n", with.seeds)
	return nil
}
