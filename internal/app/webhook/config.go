package webhook

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/certificate"
	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// Config is everything that a user of joiner-webhook can set. Its fields are named like their flags.
type Config struct {
	Cluster *rest.Config

	PolicyFile string // a NodeSchedulingPolicyConfig
	Namespace  string // the webhook's own, which is exempt; "" when it runs outside the cluster

	BindAddress             string
	TLSCertFile, TLSKeyFile string // both "" with OwnCertificates
	OwnCertificates         OwnCertificates
	Authentication          Authentication
	PathTokenFile           string // "" with OwnCertificates, which have tokens of their own
	ClientCAFile            string
	ClientNames             []string

	KubeClientQPS   float32
	KubeClientBurst int

	MetricsBindAddress, HealthProbeBindAddress string // "0" serves nothing

	// Linger is how long the webhook still answers after it was asked to stop. It has no flag.
	Linger time.Duration
}

// DefaultConfig returns the default configuration.
func DefaultConfig() Config {
	return Config{
		BindAddress: ":8443", OwnCertificates: OwnCertificates{Lifetime: certificate.Lifetime}, Authentication: ByPath,
		KubeClientQPS: 500, KubeClientBurst: 1000, // verdicts that need a read wait for this limit
		MetricsBindAddress: ":8080", HealthProbeBindAddress: ":8081",
		Linger: serve.LingerFor,
	}
}

// Validate returns an error for each field that cannot work, with the flag's name, the value and what is allowed.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if c.PolicyFile == "" {
		fault("--policy-file is missing: want the path of a NodeSchedulingPolicyConfig")
	}
	faults = append(faults, c.validateCertificates(), c.validateCallers())
	if problems := validation.IsDNS1123Label(c.Namespace); c.Namespace != "" && len(problems) > 0 {
		fault("--namespace is %q: want the name of a namespace (%s)", c.Namespace, strings.Join(problems, "; "))
	}
	if !(c.KubeClientQPS > 0) { // also true for NaN
		fault("--kube-client-qps is %v: want requests per second above 0", c.KubeClientQPS)
	}
	if c.KubeClientBurst <= 0 {
		fault("--kube-client-burst is %d: want a number above 0", c.KubeClientBurst)
	}
	if err := serve.ValidAddress(c.BindAddress); err != nil || c.BindAddress == "0" {
		fault("--bind-address is %q: want host:port or :port", c.BindAddress)
	}
	faults = append(faults, serve.ValidateAddresses(c.MetricsBindAddress, c.HealthProbeBindAddress))
	return errors.Join(faults...)
}

// readPolicy reads the file that --policy-file names.
func (c Config) readPolicy() (*v1alpha1.NodeSchedulingPolicyConfig, error) {
	content, err := os.ReadFile(c.PolicyFile)
	if err != nil {
		return nil, fmt.Errorf("--policy-file: %w", err)
	}
	config, err := evaluator.Decode(content)
	if err != nil {
		return nil, fmt.Errorf("--policy-file %s: %w", c.PolicyFile, err)
	}
	return config, nil
}
