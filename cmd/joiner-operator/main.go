// Command joiner-operator enforces the AutoNodePolicy of one hosted cluster: it makes NodePools and EC2NodeClasses in
// the guest cluster. They result from what users write (OpenshiftNodePool, OpenshiftEC2NodeClass) and from the
// provider's policy in the management cluster. Settings are flags, or environment variables of the same name in
// capitals.
//
// It exits with 0 when it was asked to stop, or when a teardown or release is done. It exits with 2 when a flag is
// wrong, and with 1 on any other failure, with one line for each fault. docs/autonode-policy.md is the user's page.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline"
	"github.com/joiner-autoscaler/joiner/internal/app/operator"
)

func main() { commandline.Main(newProgram) }

// options are the flags that are not part of operator.Config.
type options struct {
	operator.Config
	guestKubeconfig, managementKubeconfig string
	logLevel                              string
}

func newProgram(logs io.Writer) commandline.Program {
	o := &options{Config: operator.DefaultConfig()}
	return commandline.Program{
		Name: "joiner-operator", Short: "joiner-operator enforces the AutoNodePolicy of one hosted cluster.",
		Example: "guest-user-name", Groups: flagGroups(o),
		Start: func(ctx context.Context) error { return start(ctx, o, logs) },
	}
}

func flagGroups(o *options) []commandline.Group {
	return []commandline.Group{
		commandline.NewGroup("General", o.addGeneral), commandline.NewGroup("Management cluster", o.addManagement),
		commandline.NewGroup("Guest cluster", o.addGuest), commandline.NewGroup("Protection", o.addProtection),
		commandline.NewGroup("Node classes", o.addClasses), commandline.NewGroup("Certificates", o.addCertificates),
		commandline.NewGroup("Serving", o.addServing),
	}
}

func (o *options) addGeneral(flags *pflag.FlagSet) {
	flags.StringVar(&o.logLevel, "log-level", "info", commandline.Levels)
	flags.StringVar(&o.FeatureGates, "feature-gates", o.FeatureGates,
		"AutoNodePolicy=false: do not read the policy, and make pools as if there were none")
	flags.BoolVar(&o.Teardown, "teardown", o.Teardown,
		"delete all OpenshiftNodePools and OpenshiftEC2NodeClasses, wait until everything made from them is gone, "+
			"remove the admission policies, and exit")
	o.addRelease(flags)
}

// addRelease is separate from the teardown, which is the opposite.
func (o *options) addRelease(flags *pflag.FlagSet) {
	flags.BoolVar(&o.Release, "release", o.Release,
		"hand the hosted cluster over to HyperShift's own operator and exit: remove what only joiner-operator "+
			"knows, and leave NodePools, node classes, nodes and the admission policy of EC2NodeClasses. Stop the "+
			"running operator first")
}

func (o *options) addManagement(flags *pflag.FlagSet) {
	flags.StringVar(&o.managementKubeconfig, "management-kubeconfig", "",
		"path of the kubeconfig for the management cluster; the default is $KUBECONFIG, then the service account "+
			"of the pod")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace,
		"namespace of the hosted control plane; nothing outside it is read")
	flags.StringVar(&o.OnPolicyUnreadable, "on-policy-unreadable", o.OnPolicyUnreadable,
		"when reading the policy is refused for 30 s: Permissive enforces none, KeepLast keeps what was applied last "+
			"and lets new pools wait")
}

func (o *options) addGuest(flags *pflag.FlagSet) {
	flags.StringVar(&o.guestKubeconfig, "guest-kubeconfig", "", "path of the kubeconfig for the guest cluster")
	flags.StringVar(&o.GuestUserName, "guest-user-name", o.GuestUserName,
		"user name under which the guest must know this operator; under another it does not start")
	flags.Float32Var(&o.KubeClientQPS, "kube-client-qps", o.KubeClientQPS, "requests per second to each API server")
	flags.IntVar(&o.KubeClientBurst, "kube-client-burst", o.KubeClientBurst, "burst of requests to each API server")
}

func (o *options) addProtection(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.Own, "own", o.Own,
		"what this operator writes in the hosted cluster: Full, Alongside (beside HyperShift's operator: NodePools "+
			"and the admission policies for nodepools and nodeclaims), or some of NodePools, EC2NodeClasses, "+
			"Admission/nodepools, Admission/ec2nodeclasses, Admission/nodeclaims, DefaultClass. It reads and "+
			"judges the rest, and leaves it alone")
	flags.StringVar(&o.OperandUserName, "operand-user-name", o.OperandUserName,
		"the user name of Karpenter in the guest, when nobody else has it; empty when it shares the cluster admin's")
	flags.StringVar(&o.ProtectNodeClaims, "protect-nodeclaims", o.ProtectNodeClaims,
		"who may create NodeClaims and change their spec: ByIdentity (only the operand), ByContent (anyone who names "+
			"a NodePool as owner), Open (everyone), or Auto (ByIdentity with --operand-user-name, otherwise "+
			"ByContent)")
	flags.StringVar(&o.ForeignObjects, "foreign-objects", o.ForeignObjects,
		"what becomes of NodePools and EC2NodeClasses without a wrapper that were made past the admission policies: "+
			"Quarantine (NodePools launch nothing more), Report, or Delete (their nodes go too)")
	flags.BoolVar(&o.StrictAdmission, "strict-admission", o.StrictAdmission,
		"refuse writes of metadata of NodePools and EC2NodeClasses too, except by the operand; needs "+
			"--operand-user-name")
}

func (o *options) addClasses(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.Platforms, "platform", o.Platforms,
		"kinds of node classes: AWS (EC2NodeClasses made from OpenshiftEC2NodeClasses), KWOK (KWOKNodeClasses as they "+
			"are), or both")
	flags.StringVar(&o.InfraFrom, "infra-from", o.InfraFrom,
		"where to take infrastructure ID, instance profile and tags of the hosted cluster from: Flags, or "+
			"HostedControlPlane, the one of --namespace, which also pauses and dismantles; flags may then be left "+
			"out, and must agree with it")
	flags.StringVar(&o.InfraID, "infra-id", o.InfraID,
		"infrastructure ID of the hosted cluster, used to find subnets and security groups; required on AWS")
	flags.StringVar(&o.InstanceProfile, "instance-profile", o.InstanceProfile,
		"instance profile of all nodes; required on AWS")
	flags.StringToStringVar(&o.ResourceTags, "resource-tags", o.ResourceTags,
		"tags of the hosted cluster for all its instances, as name=value,name=value; they override those of users")
	flags.StringToStringVar(&o.OverridableTags, "overridable-resource-tags", o.OverridableTags,
		"like --resource-tags, but tags of users override them")
	flags.StringVar(&o.DefaultRootVolumeSize, "default-root-volume-size", o.DefaultRootVolumeSize,
		"size of root volumes where no policy says one; changing it replaces every node that has this size")
	flags.StringVar(&o.UserDataFile, "userdata-file", o.UserDataFile,
		"path of the user data of all nodes, such as a mounted Secret; the file is reloaded, and node classes wait "+
			"while it does not exist")
	flags.StringSliceVar(&o.AMIs, "ami-ids", o.AMIs,
		"machine images for --userdata-file, one for each architecture")
	flags.StringVar(&o.ReleaseVersion, "release-version", o.ReleaseVersion,
		"OpenShift release of nodes with --userdata-file, such as 4.21.0; a node class that asks for another one "+
			"says so and is not made")
	flags.BoolVar(&o.UserDataSecrets, "userdata-secrets", o.UserDataSecrets,
		"take user data and machine images from Secrets in --namespace instead, as HyperShift writes them; needs a "+
			"Role beyond the policy's")
}

func (o *options) addCertificates(flags *pflag.FlagSet) {
	flags.BoolVar(&o.ApproveKubeletCSRs, "approve-kubelet-csrs", o.ApproveKubeletCSRs,
		"approve the certificate requests of kubelets whose node belongs to a NodeClaim, and leave all others alone. "+
			"For first certificates on AWS the operator looks up the names of instances: it needs credentials")
	flags.StringVar(&o.NodeBootstrapperUserName, "node-bootstrapper-user-name", o.NodeBootstrapperUserName,
		"with --approve-kubelet-csrs: the user name by which instances ask for their first certificate")
}

func (o *options) addServing(flags *pflag.FlagSet) {
	flags.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress,
		"address of /metrics; 0 for none")
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress,
		"address of /healthz and /readyz; 0 for none")
}

// start validates the options, and runs.
func start(ctx context.Context, o *options, logs io.Writer) error {
	level, err := commandline.ParseLevel(o.logLevel)
	if err != nil {
		return commandline.Usage(err)
	}
	if o.guestKubeconfig == "" { // no fallback: it could be the management cluster's
		err = errors.New("--guest-kubeconfig is missing: want the path of the kubeconfig for the guest cluster")
	}
	if err := errors.Join(err, o.Validate()); err != nil {
		return commandline.Usage(err)
	}
	if o.Guest, err = commandline.LoadREST("guest-kubeconfig", o.guestKubeconfig); err != nil {
		return commandline.Usage(err)
	}
	if o.Management, err = commandline.LoadREST("management-kubeconfig", o.managementKubeconfig); err != nil {
		return commandline.Usage(err)
	}
	if o.Guest.Host == o.Management.Host {
		return commandline.Usage(
			fmt.Errorf("--guest-kubeconfig and --management-kubeconfig both lead to %s: they are two clusters",
				o.Guest.Host))
	}
	log, stop := commandline.NewLogger(logs, level)
	defer stop()
	return operator.Run(ctx, o.Config, log)
}
