package main

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/pflag"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline"
	"github.com/joiner-autoscaler/joiner/internal/app/joiner"
)

// options are the flags that are not part of joiner.Config.
type options struct {
	joiner.Config
	kubeconfig  string
	logLevel    string
	logFormat   string
	logPaths    string
	memoryLimit int64
	ignored     *pflag.FlagSet // settings of Karpenter without effect here
	providers   *pflag.FlagSet // settings of providers
	unknown     string         // how to treat unknown flags
	strict      bool           // unreadable settings of Karpenter are errors
	notKnown    []string       // unknown flags that were given
	invalid     []commandline.Mistake
}

func newProgram(logs io.Writer) commandline.Program {
	o := &options{Config: joiner.DefaultConfig()}
	return commandline.Program{
		Name:    "joiner",
		Short:   "Joiner launches nodes for pods that find no room, and removes nodes that nobody needs.",
		Example: "batch-idle-duration", Groups: flagGroups(o),
		Start:   func(ctx context.Context) error { return start(ctx, o, logs) },
		Excuses: o.excuses, Unknown: func(names []string) { o.notKnown = names },
	}
}

func flagGroups(o *options) []commandline.Group {
	return []commandline.Group{
		commandline.NewGroup("General", o.addGeneral), commandline.NewGroup("Cluster", o.addCluster),
		commandline.NewGroup("Planning", o.addPlanning), commandline.NewGroup("Disruption", o.addDisruption),
		commandline.NewGroup("Life of a node", o.addLife), commandline.NewGroup("Serving", o.addServing),
		commandline.NewGroup("Providers", o.addProviders),
	}
}

func (o *options) addGeneral(flags *pflag.FlagSet) {
	o.ignored = pflag.NewFlagSet("", pflag.ContinueOnError)
	addIgnored(o.ignored)
	flags.AddFlagSet(o.ignored)
	flags.StringVar(&o.unknown, commandline.UnknownFlags, commandline.RefuseUnknown,
		"what to do with unknown flags: refuse, or warn and go on without them")
	flags.BoolVar(&o.strict, "strict-settings", false,
		"refuse variables of Karpenter's settings that cannot be read; without it they get their default, as in "+
			"Karpenter")
	flags.StringVar(&o.logLevel, "log-level", "info", commandline.Levels)
	flags.StringVar(&o.logFormat, "log-format", commandline.KarpenterFormat, commandline.Formats)
	flags.StringVar(&o.logPaths, "log-output-paths", "stdout",
		"where to write the log: stdout, stderr or files, separated by commas")
	flags.Int64Var(&o.memoryLimit, "memory-limit", -1,
		"memory of the container in bytes; the Go runtime aims to use at most 90 % of it; -1 for no limit")
}

func (o *options) addCluster(flags *pflag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "",
		"path of the kubeconfig; the default is $KUBECONFIG, then the service account of the pod")
	flags.Float32Var(&o.KubeClientQPS, "kube-client-qps", o.KubeClientQPS, "requests per second to the API server")
	flags.IntVar(&o.KubeClientBurst, "kube-client-burst", o.KubeClientBurst, "burst of requests to the API server")
	flags.StringVar(&o.SystemNamespace, "system-namespace", o.SystemNamespace,
		"namespace in which this program keeps its own objects")
	flags.BoolVar(&o.DisableLeaderElection, "disable-leader-election", o.DisableLeaderElection,
		"run without a lease; only for a single replica")
	flags.BoolVar(&o.ObserveOnly, "observe-only", o.ObserveOnly,
		"plan but write nothing, beside whatever acts in the cluster; the log and metrics show what it would do")
	flags.StringVar(&o.LeaderElectionName, "leader-election-name", o.LeaderElectionName,
		"name of the lease; the default is Karpenter's, so that only one of the two acts")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", o.LeaderElectionNamespace,
		"namespace of the lease; the default is the system namespace")
}

func (o *options) addPlanning(flags *pflag.FlagSet) {
	flags.StringVar(&o.PreferencePolicy, "preference-policy", o.PreferencePolicy,
		"how to treat preferences of pods when launching nodes for them: Respect or Ignore")
	flags.StringVar(&o.MinValuesPolicy, "min-values-policy", o.MinValuesPolicy,
		"when fewer values are left than minValues demands: Strict launches nothing, BestEffort launches with "+
			"those left")
	flags.StringVar(&o.DefaultSpreadConstraints, "default-spread-constraints", o.DefaultSpreadConstraints,
		"the cluster's default topology spread constraints, as in kube-scheduler: None, System or its list "+
			"defaultConstraints in JSON")
	flags.StringVar(&o.SchedulerConfig, "scheduler-config", o.SchedulerConfig,
		"like --default-spread-constraints, in Karpenter's form: a document with "+
			"podTopologySpread.defaultConstraints")
	flags.BoolVar(&o.IgnoreDRARequests, "ignore-dra-requests", o.IgnoreDRARequests,
		"leave alone pods that request devices by ResourceClaims; false expects them on existing nodes with these "+
			"devices, and launches none for them")
	flags.DurationVar(&o.BatchIdleDuration, "batch-idle-duration", o.BatchIdleDuration,
		"plan when no further pod has arrived for this long")
	flags.DurationVar(&o.BatchMaxDuration, "batch-max-duration", o.BatchMaxDuration,
		"plan when the first pod has waited for this long")
}

func (o *options) addProviders(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.Providers, "providers", nil,
		"names of the node providers, separated by commas; the default is those whose node classes the cluster knows")
	for _, p := range o.Plugins {
		p.Flags(flags)
	}
	o.providers = flags
}

func (o *options) addDisruption(flags *pflag.FlagSet) {
	flags.StringVar(&o.FeatureGates, "feature-gates", o.FeatureGates,
		"Karpenter's list of NAME=true; without a list, ReservedCapacity, NodeOverlay, StaticCapacity, "+
			"CapacityBuffer and TerminateFirstDrift are on, SpotToSpotConsolidation and NodeRepair off; gates that "+
			"a list leaves out have Karpenter's default")
	flags.StringVar(&o.RepairVeto, "repair-veto", o.RepairVeto,
		"annotations that keep an unhealthy node from node repair: Both (karpenter.sh/do-not-disrupt and "+
			"karpenter.sh/do-not-repair) or Karpenter (only do-not-repair)")
	flags.DurationVar(&o.TakeoverGrace, "takeover-grace", o.TakeoverGrace,
		"remove nothing voluntarily for this long after the first start on a cluster with NodeClaims of another "+
			"program; 0 is no grace")
	flags.Float64Var(&o.ConsolidationMinSaving, "consolidation-min-saving", o.ConsolidationMinSaving,
		"least saving for replacing nodes by cheaper ones, in dollars per hour")
	flags.IntVar(&o.PriceTolerance, "price-tolerance", o.PriceTolerance,
		"take fewer nodes if they cost at most this many percent more than the cheapest ones; 0 takes the cheapest")
	flags.Int64Var(&o.MaxNodes, "max-nodes", o.MaxNodes,
		"the most nodes that the whole cluster should have, no matter who launched them: above it nothing is launched "+
			"for pods or replicas, and nothing is removed for it; 0 is no limit")
	flags.Int64Var(&o.MaxNodeClaimsHard, "max-node-claims-hard", o.MaxNodeClaimsHard,
		"the most NodeClaims that the whole cluster may have, guaranteed even while nodes are replaced or two "+
			"controllers work; 0 is no limit")
	flags.Float64Var(&o.NodeOverheadPrice, "node-overhead-price", o.NodeOverheadPrice,
		"what a node costs on top of its price, in dollars per hour; the annotation joiner.sh/node-overhead-price "+
			"of a NodePool overrides it")
	flags.StringVar(&o.CommitmentsFile, "commitments-file", o.CommitmentsFile,
		"file of commitments, such as savings plans: capacity that is paid for whether nodes use it or not, so "+
			"using it costs nothing more")
	flags.IntVar(&o.ConsolidationMinSavingPercent, "consolidation-min-saving-percent", o.ConsolidationMinSavingPercent,
		"least saving for replacing nodes by cheaper ones, in percent of their cost")
}

func (o *options) addLife(flags *pflag.FlagSet) {
	flags.DurationVar(&o.LaunchTimeout, "launch-timeout", o.LaunchTimeout,
		"give up a NodeClaim without an instance after this long")
	flags.DurationVar(&o.RegistrationTimeout, "registration-timeout", o.RegistrationTimeout,
		"give up an instance whose node has not joined after this long, or is gone for this long")
	flags.DurationVar(&o.InitializationTimeout, "initialization-timeout", o.InitializationTimeout,
		"give up a node that is not ready for pods after this long; 0 waits for ever")
}

func (o *options) addServing(flags *pflag.FlagSet) {
	o.addObservability(flags)
	flags.IntVar(&o.MetricsPort, "metrics-port", o.MetricsPort, "port of /metrics; 0 for none")
	flags.IntVar(&o.HealthProbePort, "health-probe-port", o.HealthProbePort,
		"port of /healthz and /readyz; 0 for none")
	flags.DurationVar(&o.HistoryRetention, "history-retention", o.HistoryRetention,
		"how long to keep decisions in ConfigMaps of the system namespace; 0 keeps them in memory only")
	flags.IntVar(&o.HistoryMaxSize, "history-max-size", o.HistoryMaxSize,
		"maximum size in bytes of the ConfigMaps with decisions; 0 keeps decisions in memory only")
	flags.IntVar(&o.ReadPort, "read-port", o.ReadPort,
		"loopback port that joinerctl dump asks for what was planned with; 0 for none")
	flags.BoolVar(&o.EnableProfiling, "enable-profiling", o.EnableProfiling, "serve /debug/pprof on the metrics port")
	flags.BoolVar(&o.V1beta1, "v1beta1", o.V1beta1,
		"serve v1beta1 beside v1: a conversion webhook, and the version in the CustomResourceDefinitions; needs "+
			"deploy/v1beta1.yaml. Off removes both, once joinerctl migrate storage has run")
	flags.IntVar(&o.WebhookPort, "webhook-port", o.WebhookPort,
		"with --v1beta1: port of the conversion webhook, and of the service in front of it")
	flags.StringVar(&o.KarpenterService, "karpenter-service", o.KarpenterService,
		"with --v1beta1: service in the system namespace through which the API server reaches the webhook")
	flags.StringVar(&o.WebhookURL, "webhook-url", o.WebhookURL,
		"with --v1beta1, instead of a service: https, host and port at which the API server reaches the webhook")
	flags.DurationVar(&o.CertLifetime, "cert-lifetime", o.CertLifetime,
		"with --v1beta1: how long certificates of its own are valid; they are renewed after two thirds of that time")
	flags.StringVar(&o.TLSCertFile, "tls-cert-file", "",
		"with --v1beta1, instead of certificates of its own: path of the webhook's serving certificate; the three "+
			"files are reloaded when they change")
	flags.StringVar(&o.TLSKeyFile, "tls-key-file", "", "path of the key of --tls-cert-file")
	flags.StringVar(&o.TLSCAFile, "tls-ca-file", "",
		"path of the authorities that the API server should trust for --tls-cert-file; they are written into the "+
			"CustomResourceDefinitions")
}

// leastMemory is the least --memory-limit, in bytes, that is respected. With a lower one the runtime would only
// collect garbage; such a number probably means megabytes.
const leastMemory = 16 << 20

// collectorPercent is how much the heap may grow between two garbage collections; Go's default is 100. Most of the
// heap is the cluster, which stays. Compared with 100, 50 needs a quarter more CPU under load and a seventh less
// memory (B-13). Compared with 50, 30 needs a tenth more CPU and a tenth less memory; at rest that is a third of a
// percent of a core (B-22). GOGC overrides it.
const collectorPercent = 30

// start validates the options, and runs.
func start(ctx context.Context, o *options, logs io.Writer) error {
	level, err := commandline.ParseLevel(o.logLevel)
	if err != nil {
		return commandline.Usage(err)
	}
	if err := errors.Join(o.misread(), o.Validate()); err != nil {
		return commandline.Usage(err)
	}
	if o.REST, err = commandline.LoadREST("kubeconfig", o.kubeconfig); err != nil {
		return commandline.Usage(err)
	}
	if _, chosen := os.LookupEnv("GOGC"); !chosen {
		debug.SetGCPercent(collectorPercent)
	}
	if o.memoryLimit >= leastMemory {
		debug.SetMemoryLimit(o.memoryLimit / 10 * 9)
	}
	log, stop, err := commandline.NewLoggerAs(logs, o.logFormat, strings.Split(o.logPaths, ","), level)
	if err != nil {
		return commandline.Usage(err)
	}
	defer stop()
	o.tell(log)
	return joiner.Run(ctx, o.Config, log)
}
