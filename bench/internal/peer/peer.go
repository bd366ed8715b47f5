// Package peer runs Karpenter's own controller for KWOK nodes as a process in a local cluster. Joiner takes over from
// it (P-34), and is measured against it (B-10 to B-13). The binary is the program of Karpenter's module, which make
// builds: see the tool line of go.mod.
package peer

import (
	"bytes"
	"context"
	"fmt"

	kwokapis "sigs.k8s.io/karpenter/kwok/apis"
	"sigs.k8s.io/karpenter/pkg/apis"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

const (
	// User is the peer's user name at the API server.
	User = "karpenter"
	// BinaryEnv is the environment variable in which tests expect the path of the built binary.
	BinaryEnv = "JOINER_PEER"
	// namespace is where the peer keeps its own objects.
	namespace = "kube-system"
	// admins may do everything: the peer's rights are not examined here.
	admins = "system:masters"
)

// Program returns the peer's controller with its defaults, without leader election. env (NAME=value) overrides them.
func Program(path string, env ...string) rig.Program {
	return rig.Program{Name: User, Groups: []string{admins}, Path: path,
		Command: func(at rig.Place) ([]string, []string) {
			return nil, append([]string{
				"KUBECONFIG=" + at.Kubeconfig,
				"KUBERNETES_MIN_VERSION=1.19.0-0", // without it, the program ends
				"SYSTEM_NAMESPACE=" + namespace,
				"LEADER_ELECTION_NAMESPACE=" + namespace,
				"DISABLE_LEADER_ELECTION=true",
				fmt.Sprintf("METRICS_PORT=%d", at.MetricsPort),
				fmt.Sprintf("HEALTH_PROBE_PORT=%d", at.HealthPort),
			}, env...)
		}}
}

// Install installs the peer's own CRDs, over existing ones.
func Install(ctx context.Context, r *rig.Rig) error {
	var all bytes.Buffer
	for _, definition := range append(apis.CRDs, kwokapis.CRDs...) {
		definition.APIVersion, definition.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
		text, err := yaml.Marshal(definition)
		if err != nil {
			return fmt.Errorf("writing CRD %s of the peer: %w", definition.Name, err)
		}
		fmt.Fprintf(&all, "---\n%s", text)
	}
	if err := r.Apply(ctx, all.String()); err != nil {
		return fmt.Errorf("installing the peer's CRDs: %w", err)
	}
	_, err := r.Kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	return err
}
