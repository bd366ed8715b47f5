package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// alice may create pods in her namespace, and nothing else.
const alice = "alice"

// attempts are alice's ways to get a pod onto a control plane node, with the codes of the answers (N13, N18).
func attempts() []attempt {
	return []attempt{
		{`{"spec":{"nodeName":"master-0"}}`, "[ControlPlane/NodeName]"},
		{`{"spec":{"tolerations":[{"key":"node-role.kubernetes.io/control-plane","operator":"Exists"}]}}`,
			"[ControlPlane/Toleration]"},
	}
}

type attempt struct{ overrides, code string }

// protect lets alice try to get onto a control plane node, and then audits what runs there.
func (s *story) protect(ctx context.Context) error {
	if err := s.Apply(ctx, manifest("protected")); err != nil {
		return err
	}
	kubeconfig, err := s.Cluster.Kubeconfig(alice)
	if err != nil {
		return err
	}
	if err := s.agentRuns(ctx); err != nil {
		return err
	}
	s.done("kube-apiserver runs with a node scheduling policy. User alice, who may create pods in namespace shop, " +
		"asks for a control plane node: by name, then by a toleration. She is refused, and told what to do")
	fmt.Printf("\n    %s\n", strings.ReplaceAll(strings.TrimSpace(manifest("protection")), "\n", "\n    "))
	for _, try := range attempts() {
		args := []string{"run", "debug", "--namespace=shop", "--image=example.invalid/debug", "--overrides=" +
			try.overrides}
		output, err := s.Kubectl(ctx, "", append(args, "--kubeconfig="+kubeconfig)...)
		if err == nil {
			return fmt.Errorf("kubectl %s was let through: %s", strings.Join(args, " "), output)
		}
		if !strings.Contains(output, try.code) {
			return fmt.Errorf("the refusal does not say %s: %w", try.code, err)
		}
		printed("alice$", args, folded(output))
	}
	if err := s.audit(ctx); err != nil {
		return err
	}
	// The users of the next chapter have no control plane node, and nothing that runs on it.
	_, err = s.Kubectl(ctx, "", "delete", "daemonset/agent", "node/master-0", "--namespace=kube-system")
	return err
}

// agentRuns waits for the DaemonSet's pod, whose namespace is authorized.
func (s *story) agentRuns(ctx context.Context) error {
	return s.Eventually(ctx, placing, "the agent to run on master-0", func(ctx context.Context) (bool, string, error) {
		var list corev1.PodList
		if err := s.Client.List(ctx, &list, client.InNamespace("kube-system"),
			client.MatchingLabels{"app": "agent"}); err != nil {
			return false, "", err
		}
		for _, pod := range list.Items {
			if pod.Status.Phase == corev1.PodRunning && pod.Spec.NodeName == "master-0" {
				return true, "", nil
			}
		}
		return false, fmt.Sprintf("%d pods of the agent", len(list.Items)), nil
	})
}

// audit checks that joinerctl finds the agent's pod and nothing that the policy would refuse.
func (s *story) audit(ctx context.Context) error {
	command := s.Cluster.Program(ctx, s.joinerctl, "audit", "control-plane", "--policy-file", "-")
	command.Stdin = strings.NewReader(manifest("protection"))
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("joinerctl audit control-plane: %w\n%s", err, output)
	}
	const want = "1 pod of authorized namespaces (kube-system 1)"
	if !strings.Contains(string(output), want) {
		return fmt.Errorf("the audit does not count %q: %s", want, output)
	}
	s.done(
		"What runs there already? The administrator looks: an agent of kube-system, which is authorized, and nothing else")
	said := strings.ReplaceAll(strings.TrimSpace(string(output)), "\n", "\n    ")
	fmt.Printf("\n    $ joinerctl audit control-plane --policy-file policy.yaml\n    %s\n", said)
	return nil
}
