package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/joiner-autoscaler/joiner/internal/app"
)

// options are the flags that are not part of app.Config.
type options struct {
	app.Config
	kubeconfig  string
	logLevel    string
	memoryLimit int64
}

// group is a part of the help.
type group struct {
	title string
	flags *pflag.FlagSet
}

func newCommand(lookup func(string) (string, bool), logs io.Writer) *cobra.Command {
	o := &options{Config: app.DefaultConfig()}
	groups := flagGroups(o)
	command := &cobra.Command{
		Use: "joiner", Short: "Joiner launches nodes for pods that find no room, and removes nodes that nobody needs.",
		Args: cobra.NoArgs, SilenceErrors: true, SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := fromEnvironment(command.Flags(), lookup); err != nil {
				return usageError{err}
			}
			return start(command.Context(), o, logs)
		},
	}
	command.CompletionOptions.DisableDefaultCmd = true
	for _, g := range groups {
		command.Flags().AddFlagSet(g.flags)
	}
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	command.SetHelpFunc(func(command *cobra.Command, _ []string) { printHelp(command.OutOrStdout(), command.Short, groups) })
	return command
}

func flagGroups(o *options) []group {
	general, cluster := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	planning, disruption, life, serving := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)

	general.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error; SIGUSR1 switches to debug while running, and back")
	general.Int64Var(&o.memoryLimit, "memory-limit", -1, "memory of the container in bytes; the Go runtime keeps to 90 % of it; -1 for no limit")

	cluster.StringVar(&o.kubeconfig, "kubeconfig", "", "path of the kubeconfig; without it $KUBECONFIG, then the service account of the pod")
	cluster.Float32Var(&o.KubeClientQPS, "kube-client-qps", o.KubeClientQPS, "requests per second to the API server")
	cluster.IntVar(&o.KubeClientBurst, "kube-client-burst", o.KubeClientBurst, "requests at once to the API server")
	cluster.StringVar(&o.SystemNamespace, "system-namespace", o.SystemNamespace, "namespace in which this program keeps its own objects")
	cluster.BoolVar(&o.DisableLeaderElection, "disable-leader-election", o.DisableLeaderElection, "run without a lease; only for a single replica")
	cluster.StringVar(&o.LeaderElectionName, "leader-election-name", o.LeaderElectionName, "name of the lease; Karpenter's, so that only one of both acts")
	cluster.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", o.LeaderElectionNamespace, "namespace of the lease; without it the system namespace")

	planning.StringVar(&o.PreferencePolicy, "preference-policy", o.PreferencePolicy, "what preferences of pods do to the nodes launched for them: Respect or Ignore")
	planning.StringVar(&o.MinValuesPolicy, "min-values-policy", o.MinValuesPolicy, "when fewer values are left than minValues demands, launch nothing or what there is: Strict or BestEffort")
	planning.StringVar(&o.DefaultSpreadConstraints, "default-spread-constraints", o.DefaultSpreadConstraints, "the cluster's default topology spread constraints, as kube-scheduler has them: None, System or its list defaultConstraints in JSON")
	planning.DurationVar(&o.BatchIdleDuration, "batch-idle-duration", o.BatchIdleDuration, "plan when no further pod has come for this long")
	planning.DurationVar(&o.BatchMaxDuration, "batch-max-duration", o.BatchMaxDuration, "plan when the first pod has waited for this long")
	planning.StringVar(&o.InstanceTypes, "instance-types-file-path", o.InstanceTypes, "instance types of simulated nodes: a file in Karpenter's format, aws for EC2 types and prices, empty for the built-in ones")
	planning.StringVar(&o.KwokFaults, "kwok-faults-file-path", o.KwokFaults, "what goes wrong with simulated nodes on purpose: a file as in docs/kwok.md, empty for nothing")

	disruption.StringVar(&o.FeatureGates, "feature-gates", o.FeatureGates, "Karpenter's list of NAME=true; SpotToSpotConsolidation and NodeRepair switch something, both are off by default")
	disruption.Float64Var(&o.ConsolidationMinSaving, "consolidation-min-saving", o.ConsolidationMinSaving, "what replacing nodes by cheaper ones has to save, in dollars per hour")
	disruption.IntVar(&o.ConsolidationMinSavingPercent, "consolidation-min-saving-percent", o.ConsolidationMinSavingPercent, "what replacing nodes by cheaper ones has to save, in percent of what they cost")

	life.DurationVar(&o.LaunchTimeout, "launch-timeout", o.LaunchTimeout, "a NodeClaim without an instance is given up after this long")
	life.DurationVar(&o.RegistrationTimeout, "registration-timeout", o.RegistrationTimeout, "an instance whose node has not joined is given up after this long")
	life.DurationVar(&o.InitializationTimeout, "initialization-timeout", o.InitializationTimeout, "a node that does not get ready for pods is given up after this long; 0 waits for ever")

	serving.IntVar(&o.MetricsPort, "metrics-port", o.MetricsPort, "port of /metrics; 0 for none")
	serving.IntVar(&o.HealthProbePort, "health-probe-port", o.HealthProbePort, "port of /healthz and /readyz; 0 for none")
	serving.BoolVar(&o.EnableProfiling, "enable-profiling", o.EnableProfiling, "serve /debug/pprof on the metrics port")
	return []group{{"General", general}, {"Cluster", cluster}, {"Planning", planning}, {"Disruption", disruption}, {"Life of a node", life}, {"Serving", serving}}
}

func printHelp(out io.Writer, short string, groups []group) {
	fmt.Fprintf(out, "%s\n\nUsage:\n  joiner [flags]\n\nEvery flag can be set by an environment variable: --batch-idle-duration is BATCH_IDLE_DURATION.\n", short)
	for _, g := range groups {
		fmt.Fprintf(out, "\n%s:\n%s", g.title, g.flags.FlagUsages())
	}
}

// fromEnvironment sets the flags that were not given from variables of their name in capitals. KUBECONFIG is left to
// the Kubernetes libraries, which know lists of paths.
func fromEnvironment(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var faults []error
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed || flag.Name == "kubeconfig" || flag.Name == "help" {
			return
		}
		name := strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		if value, found := lookup(name); found && value != "" {
			if err := flag.Value.Set(value); err != nil {
				faults = append(faults, fmt.Errorf("%s=%q: %w", name, value, err))
			}
		}
	})
	return errors.Join(faults...)
}

// start checks what was asked for, and runs.
func start(ctx context.Context, o *options, logs io.Writer) error {
	level, err := parseLevel(o.logLevel)
	if err != nil {
		return usageError{err}
	}
	if err := o.Validate(); err != nil {
		return usageError{err}
	}
	if o.REST, err = loadREST(o.kubeconfig); err != nil {
		return usageError{err}
	}
	if o.memoryLimit > 0 {
		debug.SetMemoryLimit(o.memoryLimit / 10 * 9)
	}
	var current slog.LevelVar
	current.Set(level)
	log := logr.FromSlogHandler(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: &current}))
	ctrllog.SetLogger(log.V(1))
	klog.SetLogger(log.V(1))
	defer switchLevel(&current, level)()
	return app.Run(ctx, o.Config, log)
}

// loadREST reads the kubeconfig of the flag, then that of the environment, then what a pod finds in itself.
func loadREST(path string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no usable kubeconfig: give --kubeconfig or set KUBECONFIG (%s)", strings.Join(strings.Fields(err.Error()), " "))
	}
	return config, nil
}

func parseLevel(text string) (slog.Level, error) {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, found := levels[text]
	if !found {
		names := []string{"debug", "info", "warn", "error"}
		return 0, fmt.Errorf("--log-level is %q: want one of %s", text, strings.Join(names, ", "))
	}
	return level, nil
}

// switchLevel changes between debug and the level of the flag at each SIGUSR1, until the returned function is called.
func switchLevel(current *slog.LevelVar, usual slog.Level) func() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for range signals {
			if current.Level() == slog.LevelDebug {
				current.Set(usual)
			} else {
				current.Set(slog.LevelDebug)
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}
