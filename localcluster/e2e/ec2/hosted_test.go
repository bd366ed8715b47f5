package ec2

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/account"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/eks"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

const (
	// operatorEnv is the environment variable in which tests expect the path of the built joiner-operator binary.
	operatorEnv = "JOINER_OPERATOR_BINARY"
	// hcp is the namespace of the hosted control plane on the management cluster.
	hcp = "hcp-ec2"
	// workers is the instance profile of all nodes of the hosted cluster.
	workers = name + "-worker"
)

// hosted is a town whose cluster is hosted: an AutoNodePolicy lives on a management cluster, and joiner-operator runs
// between the two. The town's admin is the tenant.
type hosted struct {
	*town
	mgmt     *rig.Rig
	operator *rig.Controller
}

// newHosted starts both clusters, the account and both programs. Images are the account's newest of Amazon Linux. The
// provider gives the user data, as in HyperShift, so the family is Custom.
func newHosted(t *testing.T) *hosted {
	t.Helper()
	binary := os.Getenv(operatorEnv)
	if binary == "" {
		t.Fatalf("%s is not set: run `make bin/joiner-operator` and set it to the absolute path of that file",
			operatorEnv)
	}
	ctx, cancel := context.WithTimeout(t.Context(), shared.StartTimeout)
	defer cancel()
	options, err := rig.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	options.Log = io.Discard
	mgmt, err := rig.StartManagement(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // after the town's own end
		if err := mgmt.Stop(); err != nil {
			t.Error(err)
		}
	})
	h := &hosted{town: newTown(t, func(o *eks.Options) { o.Rig.WithoutJoiner = true }), mgmt: mgmt}
	for _, subnet := range h.Account.Subnets { // as HyperShift tags the private ones
		h.Account.AddSubnet(ec2test.Subnet{Zone: subnet.Zone, Tags: map[string]string{
			"kubernetes.io/role/internal-elb": "1", "kubernetes.io/cluster/" + name: "owned",
		}})
	}
	h.Account.AddInstanceProfile(workers, account.Role)
	if err := h.InstallHosted(ctx); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := mgmt.InstallHostedControlPlane(ctx, hcp)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.StartJoiner(ctx); err != nil {
		t.Fatal(err)
	}
	h.operator, err = h.Run(ctx, rig.OperatorProgram(binary, kubeconfig, hcp, "--infra-id", name, "--instance-profile",
		workers, "--userdata-file", h.userDataFile(filepath.Dir(kubeconfig)), "--ami-ids", h.image(),
		"--operand-user-name", rig.User))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.stopOperator)
	return h
}

func (h *hosted) stopOperator() {
	if h.t.Failed() {
		if log, err := os.ReadFile(h.operator.Log()); err == nil {
			lines := strings.Split(strings.TrimSpace(string(log)), "\n")
			h.t.Logf("the end of the operator's log:\n%s", strings.Join(lines[max(0, len(lines)-30):], "\n"))
		}
	}
	if err := h.operator.Stop(); err != nil {
		h.t.Error(err)
	}
}

// image releases images and returns the one of the hosted cluster's nodes.
func (h *hosted) image() string {
	h.t.Helper()
	for _, i := range h.Account.Release(time.Now()) {
		if strings.Contains(i.Name, "al2023-x86_64-standard") {
			return i.ID
		}
	}
	h.t.Fatal("the account has no image of AL2023 for x86_64")
	return ""
}

// userDataFile writes the user data of all nodes: the provider's own text, which Joiner passes on byte for byte.
func (h *hosted) userDataFile(dir string) string {
	h.t.Helper()
	admin, err := h.Cluster.Cluster.RESTConfig("admin")
	if err != nil {
		h.t.Fatal(err)
	}
	config := rest.CopyConfig(admin)
	if err := rest.LoadTLSFiles(config); err != nil {
		h.t.Fatal(err)
	}
	text := fmt.Sprintf(`apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: %s, apiServerEndpoint: %q, certificateAuthority: %s, cidr: 10.96.0.0/16}
  kubelet: {config: {registerWithTaints: [{key: karpenter.sh/unregistered, effect: NoExecute}]}}
`, name, config.Host, base64.StdEncoding.EncodeToString(config.CAData))
	path := filepath.Join(dir, hcp+"-user-data")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// wrapped returns an OpenshiftNodePool of a node class. It launches plain machines on demand and replaces drifted ones
// at once.
func wrapped(pool, class string) string {
	return fmt.Sprintf(`apiVersion: karpenter.hypershift.openshift.io/v1beta1
kind: OpenshiftNodePool
metadata: {name: %[1]s}
spec:
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 0s, budgets: [{nodes: "100%%"}]}
  template:
    metadata: {labels: {tenant: %[1]s}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: %[2]s}
      requirements:
%[3]s
`, pool, class, indent(plain+amd64+onDemand, 6))
}

// wrappedClass returns an OpenshiftEC2NodeClass with lines below its spec.
func wrappedClass(name, spec string) string {
	return fmt.Sprintf(`apiVersion: karpenter.hypershift.openshift.io/v1
kind: OpenshiftEC2NodeClass
metadata: {name: %s}
spec:
%s
`, name, indent(spec, 2))
}
