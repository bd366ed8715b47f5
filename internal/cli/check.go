package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/joiner-autoscaler/joiner/internal/convert"
	"github.com/joiner-autoscaler/joiner/internal/migrate"
)

// maxErrors bounds how many unreadable documents are reported at once.
const maxErrors = 20

func migrateCheck(config Config) *cobra.Command {
	var files []string
	var connection *Connection
	var printing *printing
	command := &cobra.Command{
		Use: "check", Short: "Show what is left of v1beta1, and what to do about it", Args: cobra.NoArgs,
		Long: `Show what is left of v1beta1 in a cluster or in files, and what to do about it. It finds objects
that may be stored in v1beta1, manifests and writers of v1beta1, annotations that preserve what
only v1beta1 can express, NodePools that share a node class with different kubelet blocks, objects
that cannot be converted, and annotations without effect.

Without -f it reads the cluster; nothing is ever written.

Exit code: 0 nothing is left, 1 something is left, 2 failed.`,
		Example: "  joinerctl migrate check\n  joinerctl migrate check -f manifests/ -o json\n" +
			"  helm template . | joinerctl migrate check -f -",
		RunE: func(command *cobra.Command, _ []string) error {
			printer, err := printing.printer(config)
			if err != nil {
				return err
			}
			objects, err := gather(command.Context(), config, files, connection)
			if err != nil {
				return err
			}
			converter, err := convert.New(convert.Config{})
			if err != nil {
				return err
			}
			return report(config.Out, printer, migrationAnswer{typed: ofKind("MigrationCheck"),
				Report: migrate.Check(objects, converter)}, "")
		},
	}
	command.Flags().StringArrayVarP(&files, "filename", "f", nil,
		"file or directory with manifests (.yaml, .yml, .json), or - for standard input; may be repeated")
	connection, printing = connects(command), prints(command)
	command.MarkFlagsMutuallyExclusive("filename", "kubeconfig")
	return command
}

func gather(ctx context.Context, config Config, files []string, connection *Connection) ([]migrate.Object, error) {
	if len(files) > 0 {
		return readFiles(config.In, files)
	}
	client, err := config.Client(*connection)
	if err != nil {
		return nil, err
	}
	return readCluster(ctx, client)
}
