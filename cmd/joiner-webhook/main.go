// Command joiner-webhook is a validating webhook for the node scheduling policy. It protects groups of nodes, such as
// those of the control plane, from pods that may not run there. Settings are flags, or environment variables of the
// same name in capitals.
//
// It exits with 0 when it was asked to stop, with 2 when a flag is wrong, and with 1 on any other failure, with one
// line for each fault. docs/control-plane-protection.md is the user's page.
package main

import (
	"context"
	"io"

	"github.com/spf13/pflag"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline"
	"github.com/joiner-autoscaler/joiner/internal/app/webhook"
)

func main() { commandline.Main(newProgram) }

// options are the flags that are not part of webhook.Config.
type options struct {
	webhook.Config
	webhook.Manifest
	kubeconfig, logLevel string
}

func newProgram(logs io.Writer) commandline.Program {
	o := &options{Config: webhook.DefaultConfig()}
	return commandline.Program{
		Name: "joiner-webhook", Short: "joiner-webhook protects control plane nodes from pods that may not be there.",
		Example: "policy-file", Groups: flagGroups(o),
		Start: func(ctx context.Context) error { return start(ctx, o, logs) },
	}
}

func flagGroups(o *options) []commandline.Group {
	return []commandline.Group{
		commandline.NewGroup("Policy", o.addPolicy), commandline.NewGroup("Cluster", o.addCluster),
		commandline.NewGroup("Serving", o.addServing), commandline.NewGroup("Manifest", o.addManifest),
	}
}

func (o *options) addPolicy(flags *pflag.FlagSet) {
	flags.StringVar(&o.PolicyFile, "policy-file", o.PolicyFile,
		"path of the NodeSchedulingPolicyConfig: the protected groups of nodes, and who may use them")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace,
		"the webhook's own namespace, whose pods it does not judge; without it, it judges every namespace")
}

func (o *options) addCluster(flags *pflag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "",
		"path of a kubeconfig; the default is $KUBECONFIG, then the service account of the pod")
	flags.Float32Var(&o.KubeClientQPS, "kube-client-qps", o.KubeClientQPS, "requests per second to the API server")
	flags.IntVar(&o.KubeClientBurst, "kube-client-burst", o.KubeClientBurst, "burst of requests to the API server")
}

func (o *options) addServing(flags *pflag.FlagSet) {
	flags.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "address of the webhook; its path is "+webhook.Path)
	flags.StringVar(&o.TLSCertFile, "tls-cert-file", o.TLSCertFile,
		"path of the serving certificate; it is reloaded when it changes")
	flags.StringVar(&o.TLSKeyFile, "tls-key-file", o.TLSKeyFile, "path of the key of --tls-cert-file")
	flags.StringVar(&o.OwnCertificates.CertSecretName, "cert-secret-name", "",
		"instead of files: Secret in --namespace for certificates of its own, made and renewed without a restart, "+
			"and shared by all replicas")
	flags.StringVar(&o.OwnCertificates.ServiceName, "service-name", "",
		"service in --namespace through which the API server calls; for certificates of its own")
	flags.StringSliceVar(&o.OwnCertificates.CertHosts, "cert-hosts", nil,
		"more DNS names and IP addresses for certificates of its own")
	flags.StringVar(&o.OwnCertificates.WebhookConfigurationName, "webhook-configuration-name", "",
		"ValidatingWebhookConfiguration that should trust certificates of its own: its caBundle is kept up to date")
	flags.DurationVar(&o.OwnCertificates.Lifetime, "cert-lifetime", o.OwnCertificates.Lifetime,
		"how long certificates of its own are valid; they are renewed after two thirds of that time")
	flags.StringVar((*string)(&o.Authentication), "authentication", string(o.Authentication),
		"how callers show that they are API servers: Path (the last element of the path), ClientCertificate or None")
	flags.StringVar(&o.PathTokenFile, "path-token-file", o.PathTokenFile,
		"for --authentication=Path with certificates from files: path of a file with the accepted last elements of "+
			"the path, one on each line; it is reloaded when it changes")
	flags.StringVar(&o.ClientCAFile, "client-ca-file", o.ClientCAFile,
		"for --authentication=ClientCertificate: path of the authority that must have issued the certificates of "+
			"callers; it is reloaded when it changes")
	flags.StringSliceVar(&o.ClientNames, "client-names", o.ClientNames,
		"for --authentication=ClientCertificate: common names of the certificates of callers")
	flags.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress,
		"address of /metrics; 0 for none")
	flags.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress,
		"address of /healthz and /readyz; 0 for none")
	flags.StringVar(&o.logLevel, "log-level", "info", commandline.Levels)
}

func (o *options) addManifest(flags *pflag.FlagSet) {
	flags.StringVar(&o.PrintManifestURL, "print-manifest-url", "",
		"print the ValidatingWebhookConfiguration for a kube-apiserver that reads it from a file and calls this "+
			"URL, and exit")
	flags.StringVar(&o.PrintManifestCAFile, "print-manifest-ca-file", "",
		"path of the authority of the certificate served at that URL")
	flags.BoolVar(&o.PrintAutomaticPolicies, "print-automatic-policies", false,
		"print the MutatingAdmissionPolicies to apply for a policy with emergencyOverride Automatic, and exit")
}

// start validates the options, and runs.
func start(ctx context.Context, o *options, logs io.Writer) error {
	level, err := commandline.ParseLevel(o.logLevel)
	if err != nil {
		return commandline.Usage(err)
	}
	if o.PrintAutomaticPolicies {
		return commandline.Usage(o.PrintAutomatic(o.Config, logs))
	}
	if o.PrintManifestURL != "" {
		return commandline.Usage(o.Print(o.Config, logs))
	}
	if err := o.Validate(); err != nil {
		return commandline.Usage(err)
	}
	if o.Cluster, err = commandline.LoadREST("kubeconfig", o.kubeconfig); err != nil {
		return commandline.Usage(err)
	}
	log, stop := commandline.NewLogger(logs, level)
	defer stop()
	return webhook.Run(ctx, o.Config, log)
}
