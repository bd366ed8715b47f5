package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// Exit codes, the same for every command (U-30).
const (
	// CodeFine: nothing is wrong.
	CodeFine = 0
	// CodeFindings: the command worked, and found something to do.
	CodeFindings = 1
	// CodeFailed: the command could not do its work, or was called wrongly.
	CodeFailed = 2
	// CodeInterrupted: it was told to stop before it was done.
	CodeInterrupted = 130
)

// Config is the commands' access to the outside world.
type Config struct {
	// Client returns a client for a cluster.
	Client func(Connection) (dynamic.Interface, error)
	// Clientset is Client for the kinds of Kubernetes itself.
	Clientset func(Connection) (kubernetes.Interface, error)
	// Namespace returns the namespace of a connection's context; nil where contexts have none.
	Namespace func(Connection) string
	// Forward returns a Forwarder to pods; nil where forwarding is impossible.
	Forward func(Connection) (Forwarder, error)
	// Open opens an address in a browser; nil where that is impossible.
	Open func(address string) error
	// In, Out and Err are the standard streams.
	In       io.Reader
	Out, Err io.Writer
	// Beside runs do in the background of the command, until do ends. If it is nil, nothing is watched: what is looked
	// at again is read again.
	Beside func(do func())
	// InTerminal and OutTerminal say that In and Out are terminals.
	InTerminal, OutTerminal bool
	// Plain says that the environment wants no colours (NO_COLOR).
	Plain bool
	// Dumb says that the terminal can only print (TERM=dumb).
	Dumb bool
	// Called is how users call the program, if that is not joinerctl: a plugin is kubectl joiner (U-28).
	Called string
}

// errFindings ends a command that found something; the finding has been printed.
var errFindings = errors.New("something is left to do")

// Run runs joinerctl with arguments, and returns its exit code. On a failure it writes one line to Err for each fault.
func Run(ctx context.Context, config Config, args []string) int {
	command := root(config)
	command.SetArgs(append([]string{}, args...)) // nil would mean those of the process
	command.SetIn(config.In)
	command.SetOut(config.Out)
	command.SetErr(config.Err)
	ran, err := command.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return CodeFine
	case errors.Is(err, errFindings):
		if forgiven, known := ran.Flags().GetBool(exitZero); known == nil && forgiven {
			return CodeFine
		}
		return CodeFindings
	case ctx.Err() != nil:
		fmt.Fprintf(config.Err, "%s: interrupted\n", config.called())
		return CodeInterrupted
	}
	if out := (errTimeout{}); ran.Context() != nil && errors.As(context.Cause(ran.Context()), &out) {
		err = out
	} else if after, known := ran.Flags().GetDuration(flagTimeout); known == nil &&
		strings.Contains(err.Error(), limiterGaveUp) {
		err = errTimeout{after}
	}
	for line := range strings.SplitSeq(strings.TrimSpace(unanswered(err).Error()), "\n") {
		fmt.Fprintf(config.Err, "%s: %s\n", config.called(), config.renamed(line))
	}
	return CodeFailed
}

// limiterGaveUp is in the error of the client's rate limiter when a request's turn would come after --timeout. The
// limiter fails at once, with an error that has no type.
const limiterGaveUp = "would exceed context deadline"

// exitZero is the flag that makes findings exit with 0.
const exitZero = "exit-zero"

func root(config Config) *cobra.Command {
	command := parent(program, "Inspect and operate a cluster that runs Joiner", "")
	command.SilenceErrors, command.SilenceUsage = true, true
	command.PersistentFlags().Bool(exitZero, false, "exit with 0 instead of 1 when something is found")
	command.SetFlagErrorFunc(mistypedFlag)
	command.SetUsageFunc(usage)
	migrate := parent("migrate", "Migrate from v1beta1 to v1",
		"Migrate NodePool, NodeClaim and EC2NodeClass from v1beta1 to v1. The guide is docs/migrating-v1beta1.md.")
	migrate.AddCommand(migrateCheck(config), migrateStorage(config))
	takeover := parent("takeover", "Move a cluster from Karpenter to Joiner, and back",
		"Move a cluster from Karpenter to Joiner, and back. The guide is docs/takeover.md.")
	takeover.AddCommand(takeoverCheck(config), adoptDefinitions(config))
	audit := parent("audit", "Report what a policy would refuse", "")
	audit.AddCommand(auditControlPlane(config))
	command.AddCommand(status(config), top(config), simulate(config), explain(config), console(config),
		historyCommand(config), dumps(config), replay(config), pause(config), resume(config), headroomCommand(config),
		migrate, takeover, audit, policyCommands(config), version(config))
	config.rename(command)
	return command
}

// parent makes a command that only has subcommands.
func parent(use, short, long string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Long: long, Args: subcommands,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() }}
}
