// Command demo tells Joiner's main job as a story on a real local control plane: pods pend, nodes are launched, the
// scheduler binds the pods, and when the work is gone the nodes go too. A user who wants a pod on a control plane node
// is refused. Then the cluster becomes a hosted one, and a provider's policy says which nodes its users may have.
// Finally a cluster gets nodes that are EC2 instances as far as Joiner can tell. Every step is checked; the exit code
// is 0 only if each of them held. With --up the cluster stays, for the user's own kubectl, until Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// Providers of machines for a cluster.
const (
	kwokMachines = "kwok"
	ec2Machines  = "ec2"
)

// interrupted is the exit code after Ctrl-C (U-30).
const interrupted = 130

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := command().ExecuteContext(ctx); err != nil {
		if ctx.Err() != nil {
			fmt.Fprintln(os.Stderr, "\nInterrupted; everything that was started has been stopped.")
			os.Exit(interrupted) //nolint:gocritic // nothing is left to defer
		}
		fmt.Fprintln(os.Stderr, "\nFAILED:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var with settings
	var up bool
	var machines string
	c := &cobra.Command{
		Use: "demo", Short: "Joiner on a real local control plane, from nothing", Args: cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case machines != kwokMachines && machines != ec2Machines:
				return fmt.Errorf("--provider is %q: kwok or ec2 is allowed", machines)
			case machines == ec2Machines && !up:
				return errors.New("--provider is ec2: it goes with --up; the story is told with KWOK's machines")
			case machines == ec2Machines:
				return stayEC2(c.Context(), with.Options)
			case up:
				return stay(c.Context(), with.Options)
			}
			if with.Dir != "" {
				return fmt.Errorf(
					"--dir is %q: it goes with --up; the story begins with empty clusters, in temporary directories",
					with.Dir)
			}
			if err := checkChapter(with.chapter); err != nil {
				return err
			}
			return tell(c.Context(), with)
		},
	}
	c.Flags().StringVar(&with.ControlPlane, "controlplane", "bin/controlplane", "path of the controlplane binary")
	c.Flags().StringVar(&with.Joiner, "joiner", "bin/joiner", "path of the joiner binary")
	c.Flags().StringVar(&with.operator, "operator", "bin/joiner-operator",
		"path of the joiner-operator binary, for the story")
	c.Flags().StringVar(&with.joinerctl, "joinerctl", "bin/joinerctl", "path of the joinerctl binary, for the story")
	c.Flags().StringVar(&with.Dir, "dir", "",
		"with --up: keep the cluster's state in this directory (default: a temporary one)")
	c.Flags().StringVar(&machines, "provider", kwokMachines, "with --up: whose machines the cluster has, kwok or ec2")
	c.Flags().StringVar(&with.chapter, "chapter", "", "tell one chapter of the story: "+
		strings.Join(chapterNames(), ", "))
	c.Flags().BoolVar(&with.pause, "pause", false, "wait for Enter before each step of the story")
	c.Flags().BoolVar(&up, "up", false, "leave the cluster running until Ctrl-C instead of telling the story")
	return c
}

// stay runs the cluster in the foreground.
func stay(ctx context.Context, options rig.Options) (err error) {
	options.Log, options.NodeSchedulingPolicy = os.Stdout, manifest("protection")
	console, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(console)
	options.Args = append(options.Args, leading, "--read-port="+port)
	r, err := rig.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Stop()) }()
	if err := r.Apply(ctx, manifest("pool")); err != nil {
		return err
	}
	fmt.Print(upText(r.Cluster.AdminKubeconfig(), console, r.JoinerLog(), r.Cluster.Dir()))
	select {
	case <-ctx.Done():
		fmt.Println("\nStopping ...")
		return nil
	case err := <-r.Cluster.Failed():
		return err
	case <-r.JoinerEnded():
		return fmt.Errorf("joiner has ended; its log is %s", r.JoinerLog())
	}
}

// freeAddress returns a loopback address on which nobody listens. If somebody takes it before Joiner does, only the
// console is missing.
func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// upText returns the text on what to do with the cluster: how to reach it, its console, what to try, how to stop and
// how to delete it (U-02).
func upText(kubeconfig, console, log, dir string) string {
	return fmt.Sprintf(`
The cluster runs, with Joiner, a NodePool and a KWOKNodeClass. In another terminal:

  export KUBECONFIG=%s

The console, in a browser: http://%s/

Three things to try:

  1. pods get nodes        kubectl create deployment web --image=example.invalid/web --replicas=20
                           kubectl set resources deployment web --requests=cpu=1
                           bin/joinerctl status
  2. why does it wait?     kubectl create deployment large --image=example.invalid/large
                           kubectl set resources deployment large --requests=cpu=1000
                           bin/joinerctl explain deployment default/large
  3. what would it do?     bin/joinerctl simulate --scale default/web=40

Without a kubectl of your own: bin/controlplane kubectl ...
Joiner's log: %s

Ctrl-C stops it; make up begins again where it was. The state is in %s; make clean deletes it.
`, kubeconfig, console, log, dir)
}
