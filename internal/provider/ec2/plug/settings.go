package plug

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/queue"
)

// settings are the flags of the provider (E-59). Names and defaults are Karpenter's where it has them.
type settings struct {
	clusterName, clusterEndpoint, clusterCA, serviceCIDR string
	isolatedVPC, eksControlPlane                         bool
	memoryOverhead                                       float64
	queue                                                string
	reservedInterfaces                                   int64
	dryRunOff, zonalShift                                bool
	amis, subnets, groups                                time.Duration
	gates                                                string
	pricingRegion                                        string
}

// leastRefresh is the minimum interval between two equal questions to AWS.
const leastRefresh = time.Minute

func defaults() settings {
	return settings{memoryOverhead: 0.075, amis: leastRefresh, subnets: leastRefresh, groups: leastRefresh}
}

func (s *settings) flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.clusterName, "cluster-name", s.clusterName,
		"EC2: name of the cluster, in tags and user data; without it the provider for EC2 is left out")
	flags.StringVar(&s.clusterEndpoint, "cluster-endpoint", s.clusterEndpoint,
		"EC2: URL of the API server for new nodes; without it EKS is asked")
	flags.StringVar(&s.clusterCA, "cluster-ca-bundle", s.clusterCA,
		"EC2: certificates of the API server's authority for new nodes, PEM in base64; without it EKS is asked")
	flags.StringVar(&s.serviceCIDR, "cluster-service-cidr", s.serviceCIDR,
		"EC2: range of the addresses of services, for nodes with AL2023; without it EKS is asked")
	flags.BoolVar(&s.isolatedVPC, "isolated-vpc", s.isolatedVPC,
		"EC2: IAM and the Pricing service cannot be reached; node classes have to name an instance profile")
	flags.BoolVar(&s.eksControlPlane, "eks-control-plane", s.eksControlPlane,
		"EC2: take the version of Kubernetes from EKS instead of the API server")
	flags.Float64Var(&s.memoryOverhead, "vm-memory-overhead-percent", s.memoryOverhead,
		"EC2: part of the advertised memory that a machine does not show, from 0 to 1, until nodes have shown it")
	flags.StringVar(&s.queue, "interruption-queue", s.queue,
		"EC2: name, URL or ARN of the SQS queue with warnings; without it there are none")
	flags.Int64Var(&s.reservedInterfaces, "reserved-enis", s.reservedInterfaces,
		"EC2: network interfaces of a node that are kept from pods")
	flags.BoolVar(&s.dryRunOff, "disable-dry-run", s.dryRunOff, "EC2: do not try node classes by dry runs")
	flags.BoolVar(&s.zonalShift, "enable-zonal-shift", s.zonalShift, "EC2: not served yet; has to be off")
	flags.DurationVar(&s.amis, "ami-refresh-interval", s.amis,
		"EC2: how long an answer about images holds, 1m or more")
	flags.DurationVar(&s.subnets, "subnet-refresh-interval", s.subnets,
		"EC2: how long an answer about subnets holds, 1m or more")
	flags.DurationVar(&s.groups, "security-group-refresh-interval", s.groups,
		"EC2: how long an answer about security groups holds, 1m or more")
	flags.StringVar(&s.gates, "aws-feature-gates", s.gates,
		"EC2: Karpenter's list of NAME=true; what is on there and not served is refused")
	flags.StringVar(&s.pricingRegion, "pricing-region", s.pricingRegion,
		"EC2: region whose Pricing endpoint is asked; without it the nearest")
}

// validate returns an error for each setting that cannot work, with its value and what is allowed.
func (s *settings) validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if len(s.clusterName) > 100 {
		fault("--cluster-name has %d characters: want 1 to 100", len(s.clusterName))
	}
	if u, err := url.Parse(s.clusterEndpoint); s.clusterEndpoint != "" &&
		(err != nil || u.Scheme != "https" || u.Host == "") {
		fault("--cluster-endpoint is %q: want a URL such as https://example.gr7.us-east-1.eks.amazonaws.com",
			s.clusterEndpoint)
	}
	if s.clusterCA != "" {
		text, err := base64.StdEncoding.DecodeString(s.clusterCA)
		if block, _ := pem.Decode(text); err != nil || block == nil {
			fault("--cluster-ca-bundle has %d characters: want certificates as PEM in base64", len(s.clusterCA))
		}
	}
	if _, err := netip.ParsePrefix(s.serviceCIDR); s.serviceCIDR != "" && err != nil {
		fault("--cluster-service-cidr is %q: want a range such as 10.100.0.0/16", s.serviceCIDR)
	}
	if s.memoryOverhead < 0 || s.memoryOverhead >= 1 {
		fault("--vm-memory-overhead-percent is %v: want a part from 0 to below 1, for example 0.075", s.memoryOverhead)
	}
	if s.reservedInterfaces < 0 {
		fault("--reserved-enis is %d: want 0 or more", s.reservedInterfaces)
	}
	for _, each := range []struct {
		flag  string
		value time.Duration
	}{{"ami-refresh-interval", s.amis}, {"subnet-refresh-interval", s.subnets},
		{"security-group-refresh-interval", s.groups}} {
		if each.value < leastRefresh {
			fault("--%s is %s: want 1m or more", each.flag, each.value)
		}
	}
	if s.zonalShift {
		fault("--enable-zonal-shift is true: shifts away from a zone are not served; take it out, or set it to false")
	}
	if s.queue != "" {
		_, err := queue.ParseAddress(s.queue)
		faults = append(faults, err)
	}
	return errors.Join(append(faults, s.checkGates())...)
}

// checkGates refuses every gate that is on: Joiner serves none of Karpenter's for AWS.
func (s *settings) checkGates() error {
	var faults []error
	for entry := range strings.SplitSeq(s.gates, ",") {
		name, value, found := strings.Cut(strings.TrimSpace(entry), "=")
		switch {
		case name == "":
		case !found || value != "true" && value != "false":
			faults = append(faults, fmt.Errorf("--aws-feature-gates has %q: want NAME=true or NAME=false", entry))
		case value == "false":
		default:
			faults = append(faults,
				fmt.Errorf(
					"--aws-feature-gates has %s=true: Joiner does not serve what it stands for; set it to false",
					name))
		}
	}
	return errors.Join(faults...)
}
