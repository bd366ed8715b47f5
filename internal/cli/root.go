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

// Exit codes.
const (
	// CodeFine: nothing is wrong.
	CodeFine = 0
	// CodeFindings: the command worked, and found something to do.
	CodeFindings = 1
	// CodeFailed: the command could not do its work, or was called wrongly.
	CodeFailed = 2
)

// Config is what the commands reach the world through.
type Config struct {
	// Client returns a client for the cluster of a kubeconfig; "" means that of the environment.
	Client func(kubeconfig string) (dynamic.Interface, error)
	// Clientset is Client for the kinds of Kubernetes itself.
	Clientset func(kubeconfig string) (kubernetes.Interface, error)
	// In, Out and Err are the standard streams.
	In       io.Reader
	Out, Err io.Writer
}

// errFindings ends a command that found something; it was printed already.
var errFindings = errors.New("something is left to do")

// Run runs joinerctl with arguments, and returns its exit code. A failure is one line on Err for each thing that is wrong.
func Run(ctx context.Context, config Config, args []string) int {
	command := root(config)
	command.SetArgs(args)
	command.SetIn(config.In)
	command.SetOut(config.Out)
	command.SetErr(config.Err)
	err := command.ExecuteContext(ctx)
	switch {
	case err == nil:
		return CodeFine
	case errors.Is(err, errFindings):
		return CodeFindings
	}
	for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") {
		fmt.Fprintf(config.Err, "joinerctl: %s\n", line)
	}
	return CodeFailed
}

func root(config Config) *cobra.Command {
	command := &cobra.Command{
		Use: "joinerctl", Short: "joinerctl looks after a cluster with Joiner", SilenceErrors: true, SilenceUsage: true,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	migrate := &cobra.Command{
		Use: "migrate", Short: "Get from v1beta1 to v1", Args: cobra.NoArgs,
		Long: "Get from the v1beta1 versions of NodePool, NodeClaim and EC2NodeClass to v1. docs/migrating-v1beta1.md is the guide.",
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	migrate.AddCommand(migrateCheck(config), migrateStorage(config))
	audit := &cobra.Command{
		Use: "audit", Short: "Report what a policy would refuse", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	audit.AddCommand(auditControlPlane(config))
	command.AddCommand(simulate(config), explain(config), migrate, audit)
	return command
}
