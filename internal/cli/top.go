package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	terminal "github.com/joiner-autoscaler/joiner/internal/cli/top"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// topping holds the flags of top.
type topping struct {
	explainer
	place
	in       whatif.TopInput
	selector string
	watch    watching
	once     bool
}

func top(config Config) *cobra.Command {
	with := &topping{}
	command := &cobra.Command{
		Use: "top", Short: "Show the nodes: what they cost, what pods request, and why they come, go or stay",
		Args: cobra.NoArgs,
		Long: `Show every node with its pool, machine, price, the requests of its pods, age and state, and what
holds it there. It also shows the waiting pods, by cause, and the totals. On a terminal it is a
live screen with keys (? lists them). With --once, with --output, and elsewhere it prints once. -o
wide adds the NodePools with limits and budgets.

It reads the objects of the cluster and asks no controller: it works while none runs, and where
Karpenter decides. Nothing is ever written. It needs the right to list nodes. It names everything
else that it may not read, and leaves it out. Unknown values are - and in no sum.

Exit code: 0 when you quit the screen; otherwise that of status: 0 nothing needs attention; 1
something does; 2 failed, or not everything could be read and nothing was found in the rest.`,
		Example: "  joinerctl top\n  joinerctl top --nodepool gpu --resources cpu,nvidia.com/gpu --sort free\n" +
			"  joinerctl top -l topology.kubernetes.io/zone=eu-west-1a -o json",
		RunE: func(command *cobra.Command, _ []string) error {
			given := command.Flags().Changed
			with.once = with.once || with.watch.on || given("output") || given("no-headers")
			return with.run(command.Context(), config)
		},
	}
	with.place.flags(command)
	flags := command.Flags()
	flags.StringVarP(&with.selector, "selector", "l", "", "only nodes with labels such as a=b,c!=d")
	flags.StringVar(&with.in.Pool, "nodepool", "", "only nodes of this NodePool")
	flags.StringSliceVar(&with.in.Resources, "resources",
		[]string{string(corev1.ResourceCPU), string(corev1.ResourceMemory)}, "resources to show the use of")
	flags.StringVar(&with.in.Sort, "sort", whatif.SortPrice,
		"order of nodes: price, free, age, name, or the key of a label")
	flags.BoolVar(&with.watch.on, "watch", false, "print again every --every, until interrupted")
	flags.DurationVar(&with.watch.every, "every", 5*time.Second, "how long to wait between two looks")
	flags.BoolVar(&with.once, "once", false, "print once, even on a terminal")
	flags.StringArrayVarP(&with.files, "filename", "f", nil,
		"file or directory with manifests (.yaml, .yml, .json), or - for standard input, instead of a cluster; "+
			"may be repeated")
	flags.StringVar(&with.catalogue, "catalogue", catalogueAuto,
		"instance types and prices: auto, aws, default, or a file (joinerctl simulate --help)")
	with.now.costs.flags(command)
	with.connection, with.printing = connects(command), prints(command)
	command.MarkFlagsMutuallyExclusive("filename", "kubeconfig")
	return command
}

func (with *topping) run(ctx context.Context, config Config) error {
	printer, err := with.printing.printer(config)
	if err != nil {
		return err
	}
	if err := with.check(); err != nil {
		return err
	}
	if !with.once && config.InTerminal && config.OutTerminal && !config.Dumb {
		return with.screen(ctx, config, printer.Paints())
	}
	once := func() error {
		t, footer, err := with.look(ctx, config)
		if err != nil {
			return err
		}
		err = report(config.Out, printer, t, footer)
		if err == nil && len(t.Status.NotChecked) > 0 {
			return partial(t.Status.NotChecked)
		}
		return err
	}
	if with.watch.on {
		with.follows = true
		return with.watch.repeat(ctx, config, with.files, printer, once)
	}
	return once()
}

// screen keeps a terminal up to date. Errors of the first look are reported before it touches the terminal.
func (with *topping) screen(ctx context.Context, config Config, paint bool) error {
	switch {
	case with.watch.every <= 0:
		return fmt.Errorf("--every is %s: it must be more than 0", with.watch.every)
	case slices.Contains(with.files, "-"):
		return errors.New("-f - reads standard input, and top needs that for keys: give --once, or a file")
	}
	with.follows = true
	look := func() (terminal.Look, error) {
		began := time.Now()
		var explain func(whatif.About) string
		t, _, err := with.lookWith(ctx, config, func(w *whatif.World) {
			explain = func(about whatif.About) string { return config.renamed(terminal.Told(w, about)) }
		})
		return terminal.Look{Top: t, At: time.Now(), Took: time.Since(began), Explain: explain}, err
	}
	first, err := look()
	if err != nil {
		return err
	}
	settings := terminal.Settings{Every: with.watch.every, Paint: paint, Look: look}
	return terminal.Run(ctx, terminal.New(settings, first, with.in.Sort), config.In, config.Out)
}

// check validates the flags.
func (with *topping) check() error {
	var err error
	if with.in.Selector, err = labels.Parse(with.selector); err != nil {
		return fmt.Errorf("--selector is %q: %w", with.selector, err)
	}
	if len(with.in.Resources) == 0 {
		return errors.New("--resources is empty: name one resource or more, such as cpu,memory")
	}
	for _, name := range with.in.Resources {
		if faults := validation.IsQualifiedName(name); len(faults) > 0 {
			return fmt.Errorf("--resources has %q, which is no name of a resource: %s", name,
				strings.Join(faults, "; "))
		}
	}
	if faults := validation.IsQualifiedName(with.in.Sort); len(faults) > 0 {
		return fmt.Errorf("--sort is %q: it must be price, free, age, name or the key of a label (%s)", with.in.Sort,
			strings.Join(faults, "; "))
	}
	return nil
}

// look looks once. footer says where everything comes from.
func (with *topping) look(ctx context.Context, config Config) (t whatif.Top, footer string, err error) {
	return with.lookWith(ctx, config, func(*whatif.World) {})
}

// lookWith is look, and passes the World to keep.
func (with *topping) lookWith(ctx context.Context, config Config, keep func(*whatif.World)) (t whatif.Top,
	footer string, err error) {
	in := with.in
	in.StatusInput = whatif.StatusInput{PodsWaiting: podsWaiting, Draining: drainingFor}
	resources := with.now.costs.resources()
	for i := range resources {
		resources[i].Required = resources[i].Resource == "nodes"
	}
	documents, from, err := with.surroundings(ctx, config, with.place, &in.StatusInput, resources)
	if err != nil {
		return t, "", err
	}
	in.PodsUnread = slices.ContainsFunc(in.NotChecked, func(s string) bool { return strings.HasPrefix(s, "pods,") })
	world, offered, err := with.now.picture(documents, with.catalogue)
	if err != nil {
		return t, "", err
	}
	keep(world)
	t = world.Top(in)
	if err := known(t, in); err != nil {
		return t, "", err
	}
	return t, sources(world, from, offered), nil
}

// known returns an error if the named pool or label does not exist, as far as that can be told.
func known(t whatif.Top, in whatif.TopInput) error {
	poolsRead := !slices.ContainsFunc(in.NotChecked, func(s string) bool { return strings.HasPrefix(s, "nodepools.") })
	if in.Pool != "" && poolsRead && len(t.Pools) == 0 {
		var names []string
		for _, pool := range t.Status.Pools {
			names = append(names, pool.Name)
		}
		return fmt.Errorf("--nodepool is %q, and there is none of that name: there are %s", in.Pool,
			strings.Join(names, ", "))
	}
	if slices.Contains([]string{whatif.SortPrice, whatif.SortFree, whatif.SortAge, whatif.SortName}, in.Sort) ||
		len(t.Items) == 0 ||
		slices.ContainsFunc(t.Items, func(n whatif.TopNode) bool { return n.Label(in.Sort) != "" }) {
		return nil
	}
	return fmt.Errorf("--sort is %q: it must be price, free, age, name or the key of a label, and no node has such a "+
		"label", in.Sort)
}
