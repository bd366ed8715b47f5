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

// Config is what the commands reach the world through.
type Config struct {
	// Client returns a client for a cluster.
	Client func(Connection) (dynamic.Interface, error)
	// Clientset is Client for the kinds of Kubernetes itself.
	Clientset func(Connection) (kubernetes.Interface, error)
	// Namespace is that of a connection's context; nil where contexts have none.
	Namespace func(Connection) string
	// Forward reaches the loopback of pods; nil where nothing can.
	Forward func(Connection) (Forwarder, error)
	// Open opens an address in a browser; nil where nothing can.
	Open func(address string) error
	// In, Out and Err are the standard streams.
	In       io.Reader
	Out, Err io.Writer
	// Beside does something beside the command, until that ends. Where it is nil nothing is watched: what is looked at
	// again is read anew.
	Beside func(do func())
	// InTerminal and OutTerminal say that a person is at the other end of In and Out.
	InTerminal, OutTerminal bool
	// Plain says that the environment wants no colours (NO_COLOR).
	Plain bool
	// Dumb says that the terminal cannot do more than print (TERM=dumb).
	Dumb bool
	// Called is how its user calls the program, where that is not joinerctl: a plugin is kubectl joiner (U-28).
	Called string
}

// errFindings ends a command that found something; it was printed already.
var errFindings = errors.New("something is left to do")

// Run runs joinerctl with arguments, and returns its exit code. A failure is one line on Err for each thing that is wrong.
func Run(ctx context.Context, config Config, args []string) int {
	command := root(config)
	command.SetArgs(append([]string{}, args...)) // none at all would mean those of the process
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
	} else if after, known := ran.Flags().GetDuration(flagTimeout); known == nil && strings.Contains(err.Error(), limiterGaveUp) {
		err = errTimeout{after}
	}
	for line := range strings.SplitSeq(strings.TrimSpace(unanswered(err).Error()), "\n") {
		fmt.Fprintf(config.Err, "%s: %s\n", config.called(), config.renamed(line))
	}
	return CodeFailed
}

// limiterGaveUp is what the client's limiter of requests says when the turn of a request comes after --timeout. It does not
// wait for that time, and has no error of its own to ask for.
const limiterGaveUp = "would exceed context deadline"

// exitZero is the flag that makes a finding no failure.
const exitZero = "exit-zero"

func root(config Config) *cobra.Command {
	command := parent(program, "joinerctl looks after a cluster with Joiner", "")
	command.SilenceErrors, command.SilenceUsage = true, true
	command.PersistentFlags().Bool(exitZero, false, "end with 0 instead of 1 when something is found")
	command.SetFlagErrorFunc(mistypedFlag)
	command.SetUsageFunc(usage)
	migrate := parent("migrate", "Get from v1beta1 to v1",
		"Get from the v1beta1 versions of NodePool, NodeClaim and EC2NodeClass to v1. "+
			"docs/migrating-v1beta1.md is the guide.")
	migrate.AddCommand(migrateCheck(config), migrateStorage(config))
	takeover := parent("takeover", "Get from Karpenter to Joiner",
		"Get from Karpenter to Joiner. docs/takeover.md is the guide.")
	takeover.AddCommand(takeoverCheck(config), adoptDefinitions(config))
	audit := parent("audit", "Report what a policy would refuse", "")
	audit.AddCommand(auditControlPlane(config))
	command.AddCommand(status(config), top(config), simulate(config), explain(config), console(config), historyCommand(config), dumps(config),
		replay(config), pause(config), resume(config), headroomCommand(config), migrate, takeover, audit, policyCommands(config),
		version(config))
	config.rename(command)
	return command
}

// parent makes a command that only has others below it.
func parent(use, short, long string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Long: long, Args: subcommands,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() }}
}
