package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/joiner-autoscaler/joiner/internal/cli/printer"
	terminal "github.com/joiner-autoscaler/joiner/internal/cli/top"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// errPartial ends a command that found nothing, but could not check everything.
var errPartial = errors.New("nothing was found, and not everything was checked")

// partial is errPartial with the parts that were not checked.
func partial(notChecked []string) error {
	return fmt.Errorf("%w: %s", errPartial, strings.Join(notChecked, "; "))
}

// Defaults: after how long a waiting pod, and a draining node, needs attention.
const (
	podsWaiting = 5 * time.Minute
	drainingFor = 30 * time.Minute
)

func status(config Config) *cobra.Command {
	with := &explainer{}
	var where place
	var in whatif.StatusInput
	var watch watching
	command := &cobra.Command{
		Use: "status", Short: "Show the state of the cluster on one screen, and what needs attention first",
		Args: cobra.NoArgs,
		Long: `Show on one screen who leads, whether disruption is paused, and how each NodePool stands. Below
are the pods that wait and the nodes that should go but stay, by cause, and the command to run
next.

It reads the objects of the cluster and asks no controller: it works while none runs, and where
Karpenter decides. Nothing is ever written. It needs the right to list nodes, nodepools and
nodeclaims. It names everything else that it may not read, and leaves it out.

Exit code: 0 nothing needs attention; 1 something does: nobody leads or more than one does, a
NodePool is not ready, a pod waits longer than --pods-waiting with no node on its way, or a node
takes longer than --draining to go; 2 failed, or not everything could be read and nothing was
found in the rest.`,
		Example: "  joinerctl status\n  joinerctl status -f cluster.yaml\n" +
			"  joinerctl status -o jsonpath='{.attention[*].text}'",
		RunE: func(command *cobra.Command, _ []string) error {
			printer, err := with.printing.printer(config)
			if err != nil {
				return err
			}
			if in.PodsWaiting < 0 || in.Draining < 0 {
				return fmt.Errorf("--pods-waiting is %s and --draining is %s: neither may be negative", in.PodsWaiting,
					in.Draining)
			}
			once := func() error { return with.status(command.Context(), config, where, in, printer) }
			if !watch.on {
				return once()
			}
			with.follows = true
			return watch.repeat(command.Context(), config, with.files, printer, once)
		},
	}
	where.flags(command)
	command.Flags().BoolVarP(&watch.on, "watch", "w", false, "look again every --every, until interrupted")
	command.Flags().DurationVar(&watch.every, "every", 5*time.Second,
		"with --watch: how long to wait between two looks")
	command.Flags().DurationVar(&in.PodsWaiting, "pods-waiting", podsWaiting,
		"how long a pod may wait before it needs attention")
	command.Flags().DurationVar(&in.Draining, "draining", drainingFor,
		"how long a node may take to go before it needs attention")
	command.Flags().StringArrayVarP(&with.files, "filename", "f", nil,
		"file or directory with manifests (.yaml, .yml, .json), or - for standard input, instead of a cluster; "+
			"may be repeated")
	command.Flags().StringVar(&with.catalogue, "catalogue", catalogueAuto,
		"instance types and prices: auto, aws, default, or a file (joinerctl simulate --help)")
	with.now.flag(command)
	with.now.costs.flags(command)
	with.connection, with.printing = connects(command), prints(command)
	command.MarkFlagsMutuallyExclusive("filename", "kubeconfig")
	return command
}

// status looks at the cluster once.
func (with *explainer) status(ctx context.Context, config Config, where place, in whatif.StatusInput,
	to *printer.Printer) error {
	documents, from, err := with.surroundings(ctx, config, where, &in, with.statusResources())
	if err != nil {
		return err
	}
	world, offered, err := with.now.picture(documents, with.catalogue)
	if err != nil {
		return err
	}
	err = report(config.Out, to, world.Status(in), sources(world, from, offered))
	if err == nil && len(in.NotChecked) > 0 {
		return partial(in.NotChecked)
	}
	return err
}

// watching holds the flags of a command that looks repeatedly.
type watching struct {
	on    bool
	every time.Duration
}

// emptying clears a terminal.
const emptying = "\x1b[H\x1b[2J"

// repeat looks until it is interrupted. Findings and unchecked parts do not end it; other errors do.
func (w watching) repeat(ctx context.Context, config Config, files []string, to *printer.Printer,
	once func() error) error {
	switch {
	case w.every <= 0:
		return fmt.Errorf("--every is %s: it must be more than 0", w.every)
	case slices.Contains(files, "-"):
		return errors.New("--watch reads again and again, and standard input can be read once: leave out -f -")
	}
	for {
		if config.OutTerminal && to.ForPeople() {
			fmt.Fprint(config.Out, emptying)
		}
		began := time.Now()
		if err := once(); err != nil && !errors.Is(err, errFindings) && !errors.Is(err, errPartial) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(terminal.Pause(w.every, time.Since(began))):
		}
	}
}

// surroundings reads the files or the cluster, and finds who decides there.
func (with *explainer) surroundings(ctx context.Context, config Config, where place, in *whatif.StatusInput,
	resources []whatif.Resource) (documents []whatif.Document, from string, err error) {
	in.Surroundings = whatif.Surroundings{LeaseName: where.lease, Live: len(with.files) == 0}
	if !in.Surroundings.Live {
		objects, err := readFiles(config.In, with.files)
		if err != nil {
			return nil, "", err
		}
		documents = fromFiles(objects)
		return documents, "files", findSurroundings(documents, where, &in.Surroundings)
	}
	client, err := config.Client(*with.connection)
	if err != nil {
		return nil, "", err
	}
	if with.follows && with.feed == nil && config.Beside != nil {
		if with.feed, err = newFeed(ctx, config.Beside, client, resources); err != nil {
			return nil, "", err
		}
	}
	if with.feed != nil {
		documents, in.NotChecked, err = with.feed.documents()
	} else {
		documents, in.NotChecked, err = readAll(ctx, client, resources)
	}
	if err != nil {
		return nil, "", err
	}
	more, unread, err := where.read(ctx, client, asked{leader: true, pause: true}, &in.Surroundings)
	in.NotChecked = append(in.NotChecked, unread...)
	return append(documents, more...), "cluster", err
}

// statusResources returns what a status is made from. Nodes, NodePools and NodeClaims are required, pods are not.
func (with *explainer) statusResources() []whatif.Resource {
	list := with.now.costs.resources()
	for i := range list {
		list[i].Required = slices.Contains([]string{"nodes", "nodepools", "nodeclaims"}, list[i].Resource)
	}
	return list
}
