package joiner

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/joiner-autoscaler/joiner/internal/certificate"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// Config is everything that a user can set. Its fields are named like their flags.
type Config struct {
	REST *rest.Config

	MetricsPort, HealthProbePort int // 0 serves nothing
	EnableProfiling              bool
	ReadPort                     int // of the read API, on the loopback; 0 serves none
	// HistoryRetention is how long decisions are kept, HistoryMaxSize how many bytes of them ConfigMaps hold. With 0
	// for either, decisions are kept in memory only.
	HistoryRetention time.Duration
	HistoryMaxSize   int
	Conversion
	KubeClientQPS   float32
	KubeClientBurst int

	DisableLeaderElection   bool
	ObserveOnly             bool // writes nothing, and needs no lease (K-26)
	LeaderElectionName      string
	LeaderElectionNamespace string // "" is SystemNamespace
	SystemNamespace         string // of what Joiner keeps: pause switch, history, boot records of simulated machines

	BatchIdleDuration, BatchMaxDuration time.Duration
	PreferencePolicy                    string // Respect or Ignore
	MinValuesPolicy                     string // Strict or BestEffort
	// IgnoreDRARequests ignores pods that ask for devices by ResourceClaims (K-41). Without it they are expected on
	// existing nodes that have these devices, if the API server serves claims at all (K-42).
	IgnoreDRARequests bool
	// RepairVeto says which annotations keep an unhealthy node from repair (K-49): RepairVetoBoth or
	// RepairVetoKarpenter.
	RepairVeto string
	// DefaultSpreadConstraints is the text for translate.ParseDefaultSpread.
	DefaultSpreadConstraints string
	// SchedulerConfig is the same setting in Karpenter's form, see spreadOf; "" when it is not given.
	SchedulerConfig                    string
	LaunchTimeout, RegistrationTimeout time.Duration
	InitializationTimeout              time.Duration // 0 waits for ever

	// TakeoverGrace is how long nothing is removed voluntarily after the first start on a cluster that another program
	// managed (K-27); 0 is no grace.
	TakeoverGrace time.Duration

	FeatureGates string // the text for ParseGates
	// IgnoredSettings are settings that were given and have no effect. InvalidSettings could not be read and have
	// their default. Both are for metrics only.
	IgnoredSettings, InvalidSettings []string
	// ConsolidationMinSaving is what a replacement has to save, in dollars per hour; 0 accepts any saving.
	ConsolidationMinSaving float64
	// PriceTolerance is how much dearer than the cheapest nodes a plan with fewer nodes may be, in percent, from 0 to
	// 100 (P-22).
	PriceTolerance int
	// MaxNodes is the most nodes and NodeClaims that the whole cluster should have, whoever manages them; 0 is no
	// limit (K-53).
	MaxNodes int64
	// MaxNodeClaimsHard is the most NodeClaims that the whole cluster may have, guaranteed; 0 is no limit (K-53, ADR
	// 0023).
	MaxNodeClaimsHard int64
	// NodeOverheadPrice is what a node costs beside its price, in dollars per hour (B-20). A NodePool may set its own.
	NodeOverheadPrice float64
	// CommitmentsFile is the file of commitments, which are paid for whether nodes use them or not; "" for none
	// (K-55).
	CommitmentsFile string
	// ConsolidationMinSavingPercent is the same in percent of what is replaced, from 0 to 99. The greater of both
	// counts.
	ConsolidationMinSavingPercent int

	Observability

	// Providers are the names of the providers to run; none means all whose node classes the API server knows.
	Providers []string
	// Plugins are the providers to choose from, with their settings.
	Plugins []plugin.Plugin

	buffersServed bool // the API server serves CapacityBuffers
	devicesServed bool // the API server serves device claims, and they are looked at
}

// Values of PreferencePolicy (P-05): preferences of pods shape the nodes that are launched for them, or are ignored.
const (
	PreferencesRespected = "Respect"
	PreferencesIgnored   = "Ignore"
	RepairVetoBoth       = "Both"      // do-not-disrupt and do-not-repair keep node repair away
	RepairVetoKarpenter  = "Karpenter" // do-not-repair alone, as in Karpenter
)

// Values of MinValuesPolicy (P-09), for when fewer values are left than a pool's minValues demands: launch nothing, or
// launch a node with the values that are left.
const (
	MinValuesStrict     = "Strict"
	MinValuesBestEffort = "BestEffort"
)

// DefaultConfig returns the default configuration: Karpenter's values where it has the setting.
func DefaultConfig() Config {
	return Config{
		MetricsPort: 8080, HealthProbePort: 8081, ReadPort: 8082, KubeClientQPS: 200, KubeClientBurst: 300,
		Conversion:       Conversion{WebhookPort: 8443, CertLifetime: certificate.Lifetime},
		HistoryRetention: 7 * 24 * time.Hour, HistoryMaxSize: mostHistory,
		LeaderElectionName: "karpenter-leader-election", SystemNamespace: "kube-system",
		BatchIdleDuration: time.Second, BatchMaxDuration: 10 * time.Second, PreferencePolicy: PreferencesRespected,
		DefaultSpreadConstraints: translate.DefaultSpreadNone, MinValuesPolicy: MinValuesStrict,
		IgnoreDRARequests:             true,
		RepairVeto:                    RepairVetoBoth,
		TakeoverGrace:                 15 * time.Minute,
		ConsolidationMinSavingPercent: engine.DefaultMinSavingPercent,
		PriceTolerance:                engine.DefaultPriceTolerance,
		Plugins:                       Plugins(),
		Observability:                 defaultObservability(),
		LaunchTimeout:                 5 * time.Minute, RegistrationTimeout: 15 * time.Minute,
		InitializationTimeout: time.Hour,
	}
}

// portFaults returns an error for each bad port.
func (c Config) portFaults() (faults []error) {
	port := func(flag string, value int) {
		if value < 0 || value > 65535 {
			faults = append(faults, fmt.Errorf("--%s is %d: want a port from 1 to 65535, or 0 to serve nothing", flag,
				value))
		}
	}
	port("metrics-port", c.MetricsPort)
	port("health-probe-port", c.HealthProbePort)
	port("read-port", c.ReadPort)
	if c.ReadPort != 0 && (c.ReadPort == c.MetricsPort || c.ReadPort == c.HealthProbePort) {
		faults = append(faults,
			fmt.Errorf("--read-port is %d, as --metrics-port or --health-probe-port is: give each its own",
				c.ReadPort))
	}
	if c.MetricsPort != 0 && c.MetricsPort == c.HealthProbePort {
		faults = append(faults, fmt.Errorf("--metrics-port and --health-probe-port are both %d: give each its own",
			c.MetricsPort))
	}
	return faults
}

// observeFaults returns an error for settings that conflict with ObserveOnly.
func (c Config) observeFaults() []error {
	if c.ObserveOnly && c.V1beta1 {
		return []error{
			errors.New(
				"--v1beta1 writes CustomResourceDefinitions, and --observe-only writes nothing: give one of them"),
		}
	}
	return nil
}

// planFaults returns an error for each bad number that plans depend on.
func (c Config) planFaults() (faults []error) {
	if percent := c.PriceTolerance; percent < 0 || percent > 100 {
		faults = append(faults, fmt.Errorf("--price-tolerance is %d: want percent from 0 to 100", percent))
	}
	if c.MaxNodes < 0 {
		faults = append(faults, fmt.Errorf("--max-nodes is %d: want a number of nodes above 0, or 0 for no limit",
			c.MaxNodes))
	}
	if c.MaxNodeClaimsHard < 0 {
		faults = append(faults,
			fmt.Errorf("--max-node-claims-hard is %d: want a number of NodeClaims above 0, or 0 for no limit",
				c.MaxNodeClaimsHard))
	}
	return faults
}

// Validate returns an error for each field that cannot work, with the flag's name, the value and what is allowed.
func (c Config) Validate() error {
	var faults []error
	positive := func(flag string, value time.Duration) {
		if value <= 0 {
			faults = append(faults, fmt.Errorf("--%s is %s: want a duration above 0, for example 10s", flag, value))
		}
	}
	faults = append(faults, c.portFaults()...)
	faults = append(faults, c.historyFaults()...)
	faults = append(faults, c.observeFaults()...)
	faults = append(faults, c.Observability.validate())
	faults = append(faults, c.Conversion.validate(c.MetricsPort, c.HealthProbePort))
	if !(c.KubeClientQPS > 0) { // also true for NaN
		faults = append(faults, fmt.Errorf("--kube-client-qps is %v: want requests per second above 0",
			c.KubeClientQPS))
	}
	if c.KubeClientBurst <= 0 {
		faults = append(faults, fmt.Errorf("--kube-client-burst is %d: want a number above 0", c.KubeClientBurst))
	}
	positive("batch-idle-duration", c.BatchIdleDuration)
	positive("batch-max-duration", c.BatchMaxDuration)
	if c.PreferencePolicy != PreferencesRespected && c.PreferencePolicy != PreferencesIgnored {
		faults = append(faults, fmt.Errorf("--preference-policy is %q: want %s or %s",
			c.PreferencePolicy, PreferencesRespected, PreferencesIgnored))
	}
	if c.RepairVeto != RepairVetoBoth && c.RepairVeto != RepairVetoKarpenter {
		faults = append(faults, fmt.Errorf("--repair-veto is %q: want %s or %s", c.RepairVeto, RepairVetoBoth,
			RepairVetoKarpenter))
	}
	if chosen, err := named(c.Plugins, c.Providers); err != nil {
		faults = append(faults, err)
	} else if _, err := able(chosen, len(c.Providers) > 0, func(string, string) {}); err != nil {
		faults = append(faults, err)
	}
	if c.MinValuesPolicy != MinValuesStrict && c.MinValuesPolicy != MinValuesBestEffort {
		faults = append(faults, fmt.Errorf("--min-values-policy is %q: want %s or %s", c.MinValuesPolicy,
			MinValuesStrict, MinValuesBestEffort))
	}
	if _, err := spreadOf(c.SchedulerConfig, c.DefaultSpreadConstraints); err != nil {
		faults = append(faults, err)
	}
	if _, err := translate.ParseDefaultSpread(c.DefaultSpreadConstraints); err != nil {
		faults = append(faults,
			fmt.Errorf("--default-spread-constraints: %s", strings.ReplaceAll(err.Error(), "\n", "; ")))
	}
	positive("launch-timeout", c.LaunchTimeout)
	positive("registration-timeout", c.RegistrationTimeout)
	if c.InitializationTimeout < 0 {
		faults = append(faults, fmt.Errorf("--initialization-timeout is %s: want a duration, or 0 to wait for ever",
			c.InitializationTimeout))
	}
	if c.TakeoverGrace < 0 {
		faults = append(faults, fmt.Errorf("--takeover-grace is %s: want a duration, or 0 for none", c.TakeoverGrace))
	}
	if _, _, err := ParseGates(c.FeatureGates); err != nil {
		faults = append(faults, err)
	}
	faults = append(faults, c.savingFaults()...)
	faults = append(faults, c.planFaults()...)
	if c.LeaderElectionName == "" && !c.DisableLeaderElection {
		const unnamed = "--leader-election-name is empty: want the name of the lease, or set --disable-leader-election"
		faults = append(faults, errors.New(unnamed))
	}
	if c.SystemNamespace == "" {
		const unnamed = "--system-namespace is empty: want the namespace that this program may keep its own objects in"
		faults = append(faults, errors.New(unnamed))
	}
	return errors.Join(faults...)
}

// savingFaults returns an error for each bad setting of node costs and consolidation savings.
func (c Config) savingFaults() (faults []error) {
	if _, err := resources.FromDollars(c.ConsolidationMinSaving); err != nil {
		faults = append(faults, fmt.Errorf("--consolidation-min-saving: %w", err))
	}
	if _, err := resources.FromDollars(c.NodeOverheadPrice); err != nil {
		faults = append(faults, fmt.Errorf("--node-overhead-price: %w", err))
	}
	if percent := c.ConsolidationMinSavingPercent; percent < 0 || percent > 99 {
		faults = append(faults, fmt.Errorf("--consolidation-min-saving-percent is %d: want 0 to 99", percent))
	}
	return faults
}

// Settings returns the part of a valid configuration that the controllers need.
func (c Config) Settings() Settings {
	gates, _, _ := ParseGates(c.FeatureGates)
	saving, _ := resources.FromDollars(c.ConsolidationMinSaving)
	return Settings{
		// An idle pause longer than the maximum would never end a batch; Karpenter accepts one (K-03).
		BatchIdle: min(c.BatchIdleDuration, c.BatchMaxDuration), BatchMax: c.BatchMaxDuration,
		Timeouts: claim.Timeouts{Launch: c.LaunchTimeout, Registration: c.RegistrationTimeout,
			Initialization: c.InitializationTimeout},
		SystemNamespace: c.SystemNamespace, MaxClaims: c.MaxNodeClaimsHard,
		SpotToSpot: gates.SpotToSpotConsolidation,
		MinSaving:  saving, MinSavingPercent: c.ConsolidationMinSavingPercent,
		TakeoverGrace: c.TakeoverGrace,
		NodeRepair:    gates.NodeRepair, RepairOnlyOwnVeto: c.RepairVeto == RepairVetoKarpenter,
		StaticOff: !gates.StaticCapacity, BuffersServed: c.buffersServed, BuffersOff: !gates.CapacityBuffer,
		DeprecatedMetrics: c.DeprecatedMetrics, Unobserved: c.DisableClusterStateObservability,
		ConditionEvents: c.ConditionEvents && !c.DisableClusterStateObservability && !c.ObserveOnly,
		ObserveOnly:     c.ObserveOnly,
	}
}

// lease returns the name of the leader's lease; empty without leader election.
func (c Config) lease() types.NamespacedName {
	if c.DisableLeaderElection || c.ObserveOnly {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: c.leaseNamespace(), Name: c.LeaderElectionName}
}

func (c Config) leaseNamespace() string {
	if c.LeaderElectionNamespace != "" {
		return c.LeaderElectionNamespace
	}
	return c.SystemNamespace
}
