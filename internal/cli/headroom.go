package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/cli/printer"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// headroomCommand has the commands for the room that NodePools keep free (K-54).
func headroomCommand(config Config) *cobra.Command {
	command := parent("headroom", "Keep room free in a NodePool for future pods",
		"Keep room free in a NodePool for future pods, so that they need not wait for a machine.\n"+
			"docs/capacity-buffers.md explains how much that is, and which rules apply.")
	command.AddCommand(headroomSet(config), headroomShow(config), headroomClear(config))
	return command
}

// annotating holds the flags of commands that write annotations of a NodePool.
type annotating struct {
	dryRun     bool
	connection *Connection
	printing   *printing
}

func (a *annotating) flags(command *cobra.Command) {
	command.Flags().BoolVar(&a.dryRun, "dry-run", false, "show what would be written, and write nothing")
	a.connection, a.printing = connects(command), prints(command, printer.Text, printer.JSON, printer.YAML)
}

func headroomSet(config Config) *cobra.Command {
	var with annotating
	var schedule, length, zone string
	command := &cobra.Command{
		Use: "set NODEPOOL SHARE|AMOUNTS", Short: "Set how much room a NodePool keeps free",
		Args: two("set", "the headroom, such as 10%"),
		Long: `Writes to the cluster. Set how much room a NodePool keeps free: a share of the pods that run on its
nodes, such as 10%, or amounts of resources, such as cpu=20,memory=80Gi. With --schedule it keeps
the room only at these times.

It writes the annotations ` + karpenterv1.HeadroomAnnotationKey + ` and ` + karpenterv1.HeadroomScheduleAnnotationKey +
			`
of the NodePool, replaces existing values, and writes nothing else. It needs the right to get and
patch NodePools.

Exit code: 0 written, 2 failed.`,
		Example: "  joinerctl headroom set web 10%\n" +
			"  joinerctl headroom set web cpu=20,memory=80Gi --schedule '0 7 * * 1-5' --for 12h --time-zone Europe/Berlin",
		RunE: func(command *cobra.Command, args []string) error {
			fresh := map[string]any{karpenterv1.HeadroomAnnotationKey: args[1],
				karpenterv1.HeadroomScheduleAnnotationKey: nil}
			if _, err := translate.ParseHeadroom(args[1]); err != nil {
				return fmt.Errorf("the headroom %w", err)
			}
			when, err := headroomTimes(schedule, length, zone)
			if err != nil {
				return err
			}
			if when != "" {
				fresh[karpenterv1.HeadroomScheduleAnnotationKey] = when
			}
			return with.run(command.Context(), config, args[0], fresh)
		},
	}
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.StringVar(&schedule, "schedule", "",
		"when the room is kept: the start, as five cron fields or a macro such as @daily; the default is always")
	own.StringVar(&length, "for", "", "with --schedule: how long to keep the room each time, such as 12h")
	own.StringVar(&zone, "time-zone", "", "with --schedule: time zone, such as Europe/Berlin; the default is UTC")
	command.Flags().AddFlagSet(own)
	with.flags(command)
	return command
}

// two requires two arguments: a NodePool and something more.
func two(command, more string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 2 {
			return fmt.Errorf("headroom %s takes two arguments, the name of a NodePool and %s: there are %d", command,
				more, len(args))
		}
		return nil
	}
}

// headroomTimes combines flags into the text of the annotation.
func headroomTimes(schedule, length, zone string) (string, error) {
	switch {
	case schedule == "" && length == "" && zone == "":
		return "", nil
	case schedule == "":
		return "", errors.New("--for and --time-zone are about a schedule: give --schedule too, or leave them out")
	case length == "":
		return "", errors.New("--schedule says when it begins: give --for too, for how long, such as 12h")
	}
	when := translate.HeadroomWindow(schedule, length, zone)
	if err := translate.CheckHeadroomSchedule(when); err != nil {
		return "", fmt.Errorf("the schedule %w", err)
	}
	return when, nil
}

func headroomClear(config Config) *cobra.Command {
	var with annotating
	command := &cobra.Command{
		Use: "clear NODEPOOL", Short: "Stop keeping room free in a NodePool",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("headroom clear takes one argument, the name of a NodePool: there are %d", len(args))
			}
			return nil
		},
		Long: `Writes to the cluster. Stop keeping room free in a NodePool: remove the annotations
` + karpenterv1.HeadroomAnnotationKey + ` and ` + karpenterv1.HeadroomScheduleAnnotationKey + `.
Nodes that held only free room are then removed as empty ones. It needs the right to get and patch
NodePools.

Exit code: 0 the NodePool keeps no room free, 2 failed.`,
		Example: "  joinerctl headroom clear web",
		RunE: func(command *cobra.Command, args []string) error {
			return with.run(command.Context(), config, args[0],
				map[string]any{karpenterv1.HeadroomAnnotationKey: nil, karpenterv1.HeadroomScheduleAnnotationKey: nil})
		},
	}
	with.flags(command)
	return command
}

func headroomShow(config Config) *cobra.Command {
	var connection *Connection
	var printing *printing
	command := &cobra.Command{
		Use: "show [NODEPOOL]", Short: "Show the room that NodePools keep free", Args: cobra.MaximumNArgs(1),
		Long: `Show the room that NodePools keep free, whether it is there, and which of their annotations cannot
be understood. Without a name it lists the NodePools that keep any. It only reads, and needs the
right to get and list NodePools.

Exit code: 0 the room is there, or not wanted now; 1 some of it is not there, or is not
understood; 2 failed.`,
		Example: "  joinerctl headroom show\n  joinerctl headroom show web -o json",
		RunE: func(command *cobra.Command, args []string) error {
			to, err := printing.printer(config)
			if err != nil {
				return err
			}
			client, err := config.Client(*connection)
			if err != nil {
				return err
			}
			answer := headroomAnswer{typed: ofKind("Headroom"), Pools: []poolHeadroom{}}
			if len(args) == 1 {
				pool, err := poolNamed(command.Context(), client, args[0])
				if err != nil {
					return err
				}
				answer.Pools = append(answer.Pools, headroomIn(pool))
				return report(config.Out, to, answer, "")
			}
			err = eachObject(command.Context(), client, nodePools(), func(o *unstructured.Unstructured) error {
				var pool karpenterv1.NodePool
				if err := understand(o.Object, &pool); err != nil {
					return err
				}
				if own := headroomIn(&pool); own.Headroom != "" || own.Fault != "" {
					answer.Pools = append(answer.Pools, own)
				}
				return nil
			})
			if err != nil {
				return err
			}
			slices.SortFunc(answer.Pools,
				func(a, b poolHeadroom) int { return strings.Compare(a.NodePool, b.NodePool) })
			return report(config.Out, to, answer, "")
		},
	}
	connection, printing = connects(command), prints(command, printer.Text, printer.JSON, printer.YAML)
	return command
}

// headroomAnswer is what room NodePools keep free.
type headroomAnswer struct {
	typed
	Pools []poolHeadroom `json:"pools"`
	// Changed says that it was otherwise before, and DryRun that nothing was written.
	Changed bool `json:"changed,omitempty"`
	DryRun  bool `json:"dryRun,omitempty"`

	written bool
}

// poolHeadroom is that of one NodePool.
type poolHeadroom struct {
	NodePool string `json:"nodePool"`
	// Headroom and Schedule are as they stand in the annotations.
	Headroom string `json:"headroom,omitempty"`
	Schedule string `json:"schedule,omitempty"`
	// Fault says what of them cannot be understood: then no room is kept.
	Fault string `json:"fault,omitempty"`
	// Status, Reason and Message are of the NodePool's condition; empty before the controller has looked.
	Status  string `json:"status,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// headroomIn returns the headroom of a NodePool, as its annotations and its condition show it.
func headroomIn(pool *karpenterv1.NodePool) poolHeadroom {
	own := poolHeadroom{NodePool: pool.Name, Headroom: pool.Annotations[karpenterv1.HeadroomAnnotationKey],
		Schedule: pool.Annotations[karpenterv1.HeadroomScheduleAnnotationKey]}
	if _, err := translate.HeadroomOf(pool); err != nil {
		own.Fault = err.Error()
	}
	if c, found := condition.Get(pool.Status.Conditions, karpenterv1.ConditionTypeHeadroom); found {
		own.Status, own.Reason, own.Message = string(c.Status), c.Reason, c.Message
	}
	return own
}

// Clean reports whether all room is there that should be kept now. It is true after a write.
func (a headroomAnswer) Clean() bool {
	return a.written || !slices.ContainsFunc(a.Pools, func(p poolHeadroom) bool {
		return p.Fault != "" || p.Status == string(metav1.ConditionFalse) && p.Reason != "NotNow"
	})
}

// WriteText writes it for people.
func (a headroomAnswer) WriteText(out io.Writer) error {
	if a.written {
		return a.writeChange(out)
	}
	if len(a.Pools) == 0 {
		_, err := fmt.Fprintln(out, "no NodePool keeps room free")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NODEPOOL\tHEADROOM\tSCHEDULE\tSTANDS")
	for _, p := range a.Pools {
		stands := cmp.Or(p.Fault, strings.TrimSpace(p.Reason+" "+p.Message), "nobody has looked at it yet")
		if p.Headroom == "" && p.Fault == "" {
			stands = "it keeps no room free"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", p.NodePool, cmp.Or(p.Headroom, "-"), cmp.Or(p.Schedule, "-"), stands)
	}
	return table.Flush()
}

func (a headroomAnswer) writeChange(out io.Writer) error {
	pool, keeps := a.Pools[0], "keeps "
	if a.DryRun {
		keeps = "would keep "
	}
	text := "no room free"
	if pool.Headroom != "" {
		text = pool.Headroom + " free"
	}
	if pool.Schedule != "" {
		text += " at " + pool.Schedule
	}
	if !a.Changed {
		text += ", as before"
	}
	_, err := fmt.Fprintf(out, "NodePool %s %s%s\n", pool.NodePool, keeps, text)
	return err
}

// run writes annotations of a NodePool; nil removes one.
func (a *annotating) run(ctx context.Context, config Config, name string, fresh map[string]any) error {
	to, err := a.printing.printer(config)
	if err != nil {
		return err
	}
	client, err := config.Client(*a.connection)
	if err != nil {
		return err
	}
	pool, err := poolNamed(ctx, client, name)
	if err != nil {
		return err
	}
	if pool.Spec.Replicas != nil && fresh[karpenterv1.HeadroomAnnotationKey] != nil {
		return fmt.Errorf(
			"NodePool %s is static: spec.replicas is how many nodes it keeps, and headroom has no effect", name)
	}
	before := headroomIn(pool)
	if pool.Annotations == nil {
		pool.Annotations = map[string]string{}
	}
	for key, value := range fresh {
		if text, some := value.(string); some {
			pool.Annotations[key] = text
		} else {
			delete(pool.Annotations, key)
		}
	}
	now := headroomIn(pool)
	answer := headroomAnswer{typed: ofKind("Headroom"), DryRun: a.dryRun, written: true, Pools: []poolHeadroom{{
		NodePool: name, Headroom: now.Headroom, Schedule: now.Schedule}}}
	answer.Changed = before.Headroom != now.Headroom || before.Schedule != now.Schedule
	if answer.Changed && !a.dryRun {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": fresh}})
		if err != nil {
			return err
		}
		if _, err := client.Resource(nodePools()).Patch(ctx, name, types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("writing NodePool %s: %w", name, err)
		}
	}
	return report(config.Out, to, answer, "")
}

func nodePools() schema.GroupVersionResource {
	return karpenterv1.GroupVersion().WithResource("nodepools")
}

// poolNamed reads a NodePool.
func poolNamed(ctx context.Context, client dynamic.Interface, name string) (*karpenterv1.NodePool, error) {
	object, err := client.Resource(nodePools()).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no NodePool %s", name)
	case err != nil:
		return nil, fmt.Errorf("reading NodePool %s: %w", name, err)
	}
	var pool karpenterv1.NodePool
	return &pool, understand(object.Object, &pool)
}
