package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joiner-autoscaler/joiner/internal/dump"
)

// dumping holds the flags of dump.
type dumping struct {
	explainer
	out, redact, key, maxSize, now string
	costs                          costs
	rebuild                        bool
	port                           int
}

// differs ends the name of a dump whose replay differs from the controller's plan.
const differs = ".differs"

func dumps(config Config) *cobra.Command {
	with := &dumping{}
	command := &cobra.Command{
		Use: "dump", Short: "Save what the engine plans with, and its plans, in a file to replay elsewhere",
		Args: cobra.NoArgs,
		Long: `Write a file with what the engine plans with (instance types, NodePools, nodes, requests of pods,
DaemonSets, PodDisruptionBudgets, budgets of this moment), and with its plans. joinerctl replay
plans from that file again, anywhere. Attach it to bug reports. It contains only what planning
looks at: no secret, environment, image, argument or annotation (docs/dump.md).

It asks the controller that leads, through the API server, what it planned with last. That needs
the right to create pods/portforward in its namespace, and to list leases. With --rebuild it makes
the dump from the objects of the cluster, and with -f from those of files. Both use the
default flags of a controller, except those that its pod shows or that this command has, too.
They need the rights that explain needs. It names everything else that it may not read.

It replaces names by ranks that keep their order, so that the plan is the same apart from names.
--redact names covers pods, nodes, pools, namespaces and values of labels. --redact all adds keys
of labels, zones and resources of your own. --redact none keeps all names. --key also writes a
file with the name behind each rank.

It replays the dump before it writes it. If the replay differs, the name of the file gets the
ending .differs. That is a bug: please report it with the file.

Exit code: 0 written, 2 not written, or the replay differs, or not everything could be read.`,
		Example: "  joinerctl dump -o dump.gz\n  joinerctl dump --rebuild -o dump.gz\n" +
			"  joinerctl dump -f manifests/ -o dump.gz --redact none\n" +
			"  joinerctl replay dump.gz",
		RunE: func(command *cobra.Command, _ []string) error { return with.run(command.Context(), config) },
	}
	flags := command.Flags()
	flags.StringVarP(&with.out, "output", "o", "-", "file to write; - is standard output")
	flags.BoolVar(&with.rebuild, "rebuild", false, "make the dump from the objects of the API server, and ask no "+
		"controller")
	flags.IntVar(&with.port, "read-port", usualReadPort, "loopback port of the controller's pod to ask")
	with.where.flags(command)
	flags.StringArrayVarP(&with.files, "filename", "f", nil,
		"file or directory with manifests (.yaml, .yml, .json), or - for standard input, instead of a cluster; "+
			"may be repeated")
	flags.StringVar(&with.catalogue, "catalogue", catalogueAuto,
		"with --rebuild or -f: instance types and prices: auto, aws, default, or a file (joinerctl simulate --help)")
	flags.StringVar(&with.redact, "redact", string(dump.RedactNames), "what to redact: "+dump.Redactions())
	flags.StringVar(&with.key, "key", "", "file to write with the name behind each rank; keep it to yourself")
	flags.StringVar(&with.maxSize, "max-size", "64Mi", "maximum size of the file")
	flags.StringVar(&with.now, "now", "",
		"with --rebuild or -f: the time to plan for, as 2026-11-22T07:00:00Z; the default is now")
	with.costs.flags(command)
	with.connection = connects(command)
	command.MarkFlagsMutuallyExclusive("filename", "kubeconfig")
	return command
}

func (with *dumping) run(ctx context.Context, config Config) error {
	how, most, now, err := with.check(config)
	if err != nil {
		return err
	}
	made, err := with.gather(ctx, config, now)
	if err != nil {
		return err
	}
	data, key, fault := proven(made, how)
	if data == nil {
		return fault
	}
	if int64(len(data)) > most {
		return fmt.Errorf("the dump has %d bytes, and --max-size is %s: nothing was written", len(data), with.maxSize)
	}
	if err := with.write(config, data, key, fault != nil); err != nil {
		return err
	}
	if fault != nil {
		return fault
	}
	if len(made.Header.NotRead) > 0 {
		return partial(made.Header.NotRead)
	}
	return nil
}

// check validates the flags.
func (with *dumping) check(config Config) (how dump.Redaction, most int64, now time.Time, err error) {
	how = dump.Redaction(with.redact)
	size, err := resource.ParseQuantity(with.maxSize)
	switch {
	case !how.Known():
		return how, 0, now, fmt.Errorf("--redact is %q: it must be %s", with.redact, dump.Redactions())
	case err != nil || size.Value() <= 0:
		return how, 0, now, fmt.Errorf("--max-size is %q: it must be a number of bytes above 0, such as 64Mi",
			with.maxSize)
	case with.out == "-" && config.OutTerminal:
		return how, 0, now, errors.New("a dump is packed, and no text for a terminal: name a file with -o, or pipe it")
	case with.key != "" && how == dump.RedactNone:
		return how, 0, now, errors.New("--key is set and --redact is none: nothing is taken away that it could name")
	case with.key != "" && (with.key == with.out || with.key == "-"):
		return how, 0, now, fmt.Errorf("--key is %q: it must be a file of its own", with.key)
	}
	now, err = planTime{text: with.now}.at()
	return how, size.Value(), now, err
}

// gather makes the dump of the cluster, or of files.
func (with *dumping) gather(ctx context.Context, config Config, now time.Time) (dump.Dump, error) {
	if !with.rebuild && len(with.files) == 0 {
		return with.ask(ctx, config, now)
	}
	documents, unread, _, err := with.read(ctx, config)
	if err != nil {
		return dump.Dump{}, err
	}
	world, _, err := pictureAt(documents, with.catalogue, with.costs, now)
	if err != nil {
		return dump.Dump{}, err
	}
	snapshot, terms, err := world.Picture()
	if err != nil {
		fmt.Fprintf(config.Err, "joinerctl: %v\n", err)
	}
	made, err := dump.Make(snapshot, terms, dump.All()...)
	made.Header = dump.Header{Program: programVersion(), Source: dump.Rebuilt, NotRead: unread}
	return made, err
}

// programVersion returns the name and version of this program.
func programVersion() string { return program + " " + ownVersion(debug.ReadBuildInfo()).Version }

// proven redacts and packs a dump, and replays the result. If it returns both bytes and an error, the replay differs.
func proven(made dump.Dump, how dump.Redaction) ([]byte, dump.Key, error) {
	var differences []dump.Difference
	if made.Header.Source != dump.Rebuilt { // rebuilt plans were just made by this program
		found, err := dump.Replay(made)
		if err != nil {
			return nil, nil, err
		}
		differences = found
	}
	packed, key, same, err := dump.Redact(made, how, differences...)
	if err != nil {
		return nil, nil, err
	}
	var data bytes.Buffer
	if err := dump.Write(&data, packed); err != nil {
		return nil, nil, err
	}
	again, _, err := dump.Read(bytes.NewReader(data.Bytes()), dump.Options{Strict: true})
	if err != nil {
		return data.Bytes(), key, fmt.Errorf("the dump cannot be read again, please report that: %w", err)
	}
	read, err := dump.Replay(again)
	switch {
	case err != nil:
		return data.Bytes(), key, err
	case len(differences) > 0:
		return data.Bytes(), key, fmt.Errorf("the dump does not replay to the plan that was made, please report that "+
			"with the file: %s", firstLines(differences))
	case len(read) > 0:
		return data.Bytes(), key,
			fmt.Errorf("the dump does not replay to the plan that was made, please report that: %s",
				firstLines(read))
	case !same:
		return data.Bytes(), key, errors.New("without the names the plan is another one, please report that; " +
			"--redact none keeps them")
	}
	return data.Bytes(), key, nil
}

func firstLines(differences []dump.Difference) string {
	const most = 4
	lines := slices.Clone(differences[0].Lines)
	if len(lines) > most {
		lines = append(lines[:most], "...")
	}
	return string(differences[0].Question) + ":\n" + strings.Join(lines, "\n")
}

// write writes the dump and the key.
func (with *dumping) write(config Config, data []byte, key dump.Key, bad bool) error {
	if with.key != "" && key != nil {
		names, err := json.MarshalIndent(struct {
			Format string   `json:"format"`
			Names  dump.Key `json:"names"`
		}{"key." + dump.Format, key}, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(with.key, append(names, '\n'), private); err != nil {
			return fmt.Errorf("--key: %w", err)
		}
	}
	if with.out == "-" {
		_, err := config.Out.Write(data)
		return err
	}
	name := with.out
	if bad {
		name += differs
	}
	if err := os.WriteFile(name, data, private); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	if !bad {
		fmt.Fprintf(config.Out, "%s: %d bytes, replayed with the same plans\n", name, len(data))
	}
	return nil
}

// private is the mode of files for their owner only.
const private = 0o600
