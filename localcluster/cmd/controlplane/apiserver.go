package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version/verflag"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// helpColumns is the width of the help of kube-apiserver.
const helpColumns = 120

// runAPIServer runs kube-apiserver and returns its exit code.
func runAPIServer() int {
	command, err := newAPIServerCommand()
	if err != nil {
		fmt.Fprintf(os.Stderr, "kube-apiserver: %v\n", err)
		return 1
	}
	return cli.Run(command)
}

// newAPIServerCommand returns the kube-apiserver command with an additional admission plugin. Upstream's command hides
// its options, so this one is assembled from the same exported parts: options, flags and app.Run.
func newAPIServerCommand() (*cobra.Command, error) {
	server := options.NewServerRunOptions()
	gates, mutable := server.GenericServerRunOptions.ComponentGlobalsRegistry.FeatureGateFor(
		basecompatibility.DefaultKubeComponent).(featuregate.MutableFeatureGate)
	if !mutable {
		return nil, errors.New("the feature gates of Kubernetes cannot be extended")
	}
	if err := addNodeScheduling(server.Admission.GenericAdmission, gates); err != nil {
		return nil, err
	}
	command := &cobra.Command{
		Use: "kube-apiserver", Short: "The Kubernetes API server, with the node scheduling policy", SilenceUsage: true,
		Args: cobra.NoArgs, RunE: func(command *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			return serveAPI(command, server, gates)
		},
	}
	groups := server.Flags()
	verflag.AddFlags(groups.FlagSet("global"))
	globalflag.AddGlobalFlags(groups.FlagSet("global"), command.Name(), logs.SkipLoggingConfigurationFlags())
	for _, group := range groups.FlagSets {
		command.Flags().AddFlagSet(group)
	}
	cliflag.SetUsageAndHelpFunc(command, groups, helpColumns)
	return command, nil
}

// serveAPI runs the server until the process is asked to end. Flags must have been parsed.
func serveAPI(command *cobra.Command, server *options.ServerRunOptions, gates featuregate.MutableFeatureGate) error {
	registry := server.GenericServerRunOptions.ComponentGlobalsRegistry
	if err := registry.Set(); err != nil { // gates and versions, before anything asks for them
		return err
	}
	// The server's own requests to itself get warnings too; nobody reads them.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	if err := logsapi.ValidateAndApply(server.Logs, gates); err != nil {
		return err
	}
	cliflag.PrintFlags(command.Flags())
	ctx := genericapiserver.SetupSignalContext()
	completed, err := server.Complete(ctx)
	if err != nil {
		return err
	}
	if wrong := completed.Validate(); len(wrong) > 0 {
		return utilerrors.NewAggregate(wrong)
	}
	gates.AddMetrics()
	registry.AddMetrics()
	return app.Run(ctx, completed)
}
