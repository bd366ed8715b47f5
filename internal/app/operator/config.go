package operator

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"

	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

// Config is everything that a user of joiner-operator can set. Its fields are named like their flags.
type Config struct {
	Guest, Management *rest.Config

	Namespace       string // of the hosted control plane, in the management cluster
	GuestUserName   string // of the operator in the guest
	OperandUserName string // of Karpenter in the guest, if nobody else uses it
	KubeClientQPS   float32
	KubeClientBurst int

	Own                   []string // parts of the hosted cluster that the operator writes; see operator.NewOwning
	OnPolicyUnreadable    string   // PolicyPermissive or PolicyKeepLast
	FeatureGates          string
	Platforms             []string // PlatformAWS, PlatformKWOK
	InfraFrom             string   // InfraFromFlags or InfraFromHosted
	InfraID               string
	InstanceProfile       string
	ResourceTags          map[string]string // of the hosted cluster; they override those of users
	OverridableTags       map[string]string // of the hosted cluster; those of users override them
	DefaultRootVolumeSize string
	UserDataSecrets       bool
	UserDataFile          string
	AMIs                  []string // with UserDataFile
	ReleaseVersion        string   // of OpenShift, with UserDataFile; "" when unknown

	ProtectNodeClaims string // a merge.NodeClaimRule, or Auto
	StrictAdmission   bool
	ForeignObjects    string // an operator.ForeignRule
	Teardown          bool
	Release           bool

	ApproveKubeletCSRs       bool
	NodeBootstrapperUserName string // with ApproveKubeletCSRs

	MetricsBindAddress, HealthProbeBindAddress string // "0" serves nothing
}

// Values of --on-policy-unreadable (G15).
const (
	PolicyPermissive = "Permissive"
	PolicyKeepLast   = "KeepLast"
)

// Values of --infra-from.
const (
	InfraFromFlags  = "Flags"
	InfraFromHosted = "HostedControlPlane"
)

// Values of --platforms (G25).
const (
	PlatformAWS  = "AWS"
	PlatformKWOK = "KWOK"
)

// nodeClaimsAuto asks for the default rule of NodeClaims: by identity if the operand has a user name of its own, by
// content otherwise.
const nodeClaimsAuto = "Auto"

// gateAutoNodePolicy is the only feature gate (G24).
const gateAutoNodePolicy = "AutoNodePolicy"

// DefaultConfig returns the default configuration.
func DefaultConfig() Config {
	return Config{
		GuestUserName: merge.DefaultOperator, KubeClientQPS: 200, KubeClientBurst: 300,
		Own: []string{operator.OwnFull}, InfraFrom: InfraFromFlags, OnPolicyUnreadable: PolicyPermissive,
		FeatureGates: gateAutoNodePolicy + "=true", Platforms: []string{PlatformAWS},
		DefaultRootVolumeSize: merge.DefaultRootVolumeSize, ProtectNodeClaims: nodeClaimsAuto,
		ForeignObjects: string(operator.ForeignQuarantine), NodeBootstrapperUserName: defaultNodeBootstrapper,
		MetricsBindAddress: ":8080", HealthProbeBindAddress: ":8081",
	}
}

// Validate returns an error for each field that cannot work, with the flag's name, the value and what is allowed.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if c.Namespace == "" {
		fault("--namespace is missing: want the namespace of the hosted control plane in the management cluster")
	} else if problems := validation.IsDNS1123Label(c.Namespace); len(problems) > 0 {
		fault("--namespace is %q: want the name of a namespace (%s)", c.Namespace, strings.Join(problems, "; "))
	}
	if c.GuestUserName == "" {
		fault(
			"--guest-user-name is empty: want the user name of the certificate or token in --guest-kubeconfig, usually %s",
			merge.DefaultOperator)
	}
	if !(c.KubeClientQPS > 0) { // also true for NaN
		fault("--kube-client-qps is %v: want requests per second above 0", c.KubeClientQPS)
	}
	if c.KubeClientBurst <= 0 {
		fault("--kube-client-burst is %d: want a number above 0", c.KubeClientBurst)
	}
	if c.OnPolicyUnreadable != PolicyPermissive && c.OnPolicyUnreadable != PolicyKeepLast {
		fault("--on-policy-unreadable is %q: want %s or %s", c.OnPolicyUnreadable, PolicyPermissive, PolicyKeepLast)
	}
	if rules := []operator.ForeignRule{operator.ForeignQuarantine, operator.ForeignReport,
		operator.ForeignDelete}; !slices.Contains(rules, operator.ForeignRule(c.ForeignObjects)) {
		fault("--foreign-objects is %q: want one of %s", c.ForeignObjects, rules)
	}
	if _, err := operator.NewOwning(c.Own); err != nil {
		fault("--own %w", err)
	}
	if c.InfraFrom != InfraFromFlags && c.InfraFrom != InfraFromHosted {
		fault("--infra-from is %q: want %s or %s", c.InfraFrom, InfraFromFlags, InfraFromHosted)
	}
	if c.Release && c.Teardown {
		fault(
			"--release and --teardown are both set: the one leaves what runs and the other deletes it; want one of " +
				"them")
	}
	if _, err := c.policyEnabled(); err != nil {
		faults = append(faults, err)
	}
	addresses := serve.ValidateAddresses(c.MetricsBindAddress, c.HealthProbeBindAddress)
	faults = append(faults, c.validatePlatforms(), addresses, c.validateApproval())
	if _, err := merge.Admission(c.admission()); err != nil {
		fault("--guest-user-name, --operand-user-name, --strict-admission and --protect-nodeclaims: %w", err)
	}
	return errors.Join(faults...)
}

func (c Config) validatePlatforms() error {
	var faults []error
	if len(c.Platforms) == 0 {
		faults = append(faults, fmt.Errorf("--platform is empty: want %s, %s or both", PlatformAWS, PlatformKWOK))
	}
	for _, platform := range c.Platforms {
		if platform != PlatformAWS && platform != PlatformKWOK {
			faults = append(faults, fmt.Errorf("--platform is %q: want %s, %s or both with a comma between", platform,
				PlatformAWS, PlatformKWOK))
		}
	}
	if !slices.Contains(c.Platforms, PlatformAWS) {
		return errors.Join(faults...)
	}
	return errors.Join(append(faults, c.validateAWS())...)
}

func (c Config) validateAWS() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	owning, err := operator.NewOwning(c.Own)
	if err != nil {
		return nil // already reported
	}
	classes, flags := owning.Has(operator.PartEC2NodeClasses), c.InfraFrom == InfraFromFlags
	if c.InfraID == "" && flags && (classes || owning.Has(operator.PartDefaultClass)) {
		fault(
			"--infra-id is missing: want the cluster's infrastructure ID, by which its subnets and security groups are found on AWS")
	}
	if c.InstanceProfile == "" && flags && classes {
		fault("--instance-profile is missing: want the name of the instance profile of the cluster's nodes on AWS")
	}
	for key := range c.ResourceTags {
		if _, both := c.OverridableTags[key]; both {
			fault("--resource-tags and --overridable-resource-tags both have %q: want it in one of them", key)
		}
	}
	switch {
	case c.UserDataSecrets && c.UserDataFile != "":
		fault("--userdata-secrets and --userdata-file are both set: want one of them")
	case c.UserDataFile != "" && len(c.AMIs) == 0:
		fault("--ami-ids is missing: want the machine images that go with --userdata-file, one for each architecture")
	case c.UserDataFile == "" && !c.UserDataSecrets && classes:
		fault(
			"--userdata-file is missing: want the path of the user data that makes an instance a node of the " +
				"cluster, or --userdata-secrets")
	case c.UserDataFile == "" && len(c.AMIs) > 0:
		fault(
			"--ami-ids is %s: it goes with --userdata-file; with --userdata-secrets the machine images stand on the Secrets",
			strings.Join(c.AMIs, ","))
	}
	if _, err := version.ParseSemantic(c.ReleaseVersion); c.ReleaseVersion != "" && err != nil {
		fault("--release-version is %q: want the OpenShift release of --userdata-file, such as 4.21.0",
			c.ReleaseVersion)
	}
	if c.ReleaseVersion != "" && c.UserDataSecrets {
		fault(
			"--release-version is %s: it goes with --userdata-file; with --userdata-secrets each node class has a version of its own",
			c.ReleaseVersion)
	}
	if volume, err := c.rootVolume(); err != nil {
		faults = append(faults, err)
	} else if volume.Size.Sign() <= 0 {
		fault("--default-root-volume-size is %q: want a size above 0, such as %s", c.DefaultRootVolumeSize,
			merge.DefaultRootVolumeSize)
	}
	return errors.Join(faults...)
}

// rootVolume returns the root volume for policies that say nothing about it (G7).
func (c Config) rootVolume() (merge.RootVolume, error) {
	size, err := resource.ParseQuantity(c.DefaultRootVolumeSize)
	if err != nil {
		return merge.RootVolume{}, fmt.Errorf("--default-root-volume-size is %q: want a quantity such as %s",
			c.DefaultRootVolumeSize, merge.DefaultRootVolumeSize)
	}
	volume := merge.DefaultRootVolume()
	volume.Size = size
	return volume, nil
}

// policyEnabled reads --feature-gates.
func (c Config) policyEnabled() (bool, error) {
	enabled := true
	for part := range strings.SplitSeq(c.FeatureGates, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		on, err := strconv.ParseBool(strings.TrimSpace(value))
		if strings.TrimSpace(name) != gateAutoNodePolicy || err != nil {
			return false, fmt.Errorf("--feature-gates has %q: want %s=true or %s=false", part, gateAutoNodePolicy,
				gateAutoNodePolicy)
		}
		enabled = on
	}
	return enabled, nil
}

// admission returns the admission policies that the flags ask for.
func (c Config) admission() merge.AdmissionConfig {
	rule := merge.NodeClaimRule(c.ProtectNodeClaims)
	switch {
	case c.ProtectNodeClaims == nodeClaimsAuto && c.OperandUserName != "":
		rule = merge.NodeClaimsByIdentity
	case c.ProtectNodeClaims == nodeClaimsAuto:
		rule = merge.NodeClaimsByContent
	}
	return merge.AdmissionConfig{Operator: c.GuestUserName, Operand: c.OperandUserName, Strict: c.StrictAdmission,
		NodeClaims: rule}
}
