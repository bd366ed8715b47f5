package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/joiner-autoscaler/joiner/internal/convert"
	"github.com/joiner-autoscaler/joiner/internal/migrate"
)

// maxErrors is how many documents that cannot be read are told at once.
const maxErrors = 20

func migrateCheck(config Config) *cobra.Command {
	var files []string
	var kubeconfig, output string
	command := &cobra.Command{
		Use: "check", Short: "Say what of v1beta1 is left, and what to do about it", Args: cobra.NoArgs,
		Long: `Say what of v1beta1 is left in a cluster, or in files, and what to do about it: objects that may be stored in v1beta1,
manifests and writers of v1beta1, annotations that keep what only v1beta1 can say, NodePools that share a node class with
different kubelet blocks, objects that cannot be converted, and annotations that do nothing any more.

Without -f the cluster is read; nothing is ever written.

Exit code: 0 nothing is left, 1 something is left, 2 the check could not be made.`,
		Example: "  joinerctl migrate check\n  joinerctl migrate check -f manifests/ -o json\n  helm template . | joinerctl migrate check -f -",
		RunE: func(command *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("--output is %q: it must be text or json", output)
			}
			objects, err := gather(command.Context(), config, files, kubeconfig)
			if err != nil {
				return err
			}
			converter, err := convert.New(convert.Config{})
			if err != nil {
				return err
			}
			return report(config.Out, migrate.Check(objects, converter), output)
		},
	}
	command.Flags().StringArrayVarP(&files, "filename", "f", nil,
		"file or directory with manifests (.yaml, .yml, .json), or - for standard input; may be repeated")
	command.Flags().StringVar(&kubeconfig, "kubeconfig", "", "path of the kubeconfig; without it $KUBECONFIG, then ~/.kube/config")
	command.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	command.MarkFlagsMutuallyExclusive("filename", "kubeconfig")
	return command
}

func gather(ctx context.Context, config Config, files []string, kubeconfig string) ([]migrate.Object, error) {
	if len(files) > 0 {
		return readFiles(config.In, files)
	}
	client, err := config.Client(kubeconfig)
	if err != nil {
		return nil, err
	}
	return readCluster(ctx, client)
}

// findings is a report that can be written, of whatever was looked at.
type findings interface {
	Clean() bool
	WriteText(io.Writer) error
	WriteJSON(io.Writer) error
}

func report(out io.Writer, found findings, output string) error {
	write := found.WriteText
	if output == "json" {
		write = found.WriteJSON
	}
	if err := write(out); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if !found.Clean() {
		return errFindings
	}
	return nil
}
