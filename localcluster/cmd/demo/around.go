package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

const (
	// binding enables the admission policy that keeps the hosted cluster's own admins from changing NodePools (R37).
	binding = "karpenter-binding.nodepool.hypershift.io"
	// refusal is the message that they get (R34).
	refusal = "NodePool resources cannot be modified directly. Use OpenshiftNodePool instead."
	// restoring bounds how long the operator takes to restore something (R38).
	restoring = 10 * time.Second
	// inForce is how long API servers may take to notice that a binding was deleted or restored: they check once a
	// second.
	inForce = 2 * time.Second
)

// edit returns the command that removes the policy's entry from the tenant's NodePool.
func edit() []string {
	return []string{"patch", "nodepool", "tenant", "--type=json", "-p",
		`[{"op":"remove","path":"/spec/template/spec/requirements/0"}]`}
}

// refused runs a command of the tenant, a cluster-admin, that the API server has to refuse, and returns its message.
func (s *story) refused(ctx context.Context, args ...string) (string, error) {
	output, err := s.Kubectl(ctx, "", args...)
	if err == nil {
		return output, fmt.Errorf("kubectl %s was let through: %s", strings.Join(args, " "), output)
	}
	if !strings.Contains(output, refusal) {
		return output, fmt.Errorf("the refusal does not say %q: %w", refusal, err)
	}
	return strings.TrimSpace(output), nil
}

// editPool lets the tenant try to edit the operator's NodePool.
func (s *story) editPool(ctx context.Context) error {
	var before, after karpenterv1.NodePool
	if err := s.Client.Get(ctx, client.ObjectKey{Name: "tenant"}, &before); err != nil {
		return err
	}
	output, err := s.refused(ctx, edit()...)
	if err != nil {
		return err
	}
	if err := s.Client.Get(ctx, client.ObjectKey{Name: "tenant"}, &after); err != nil {
		return err
	}
	if before.Generation != after.Generation {
		return fmt.Errorf("the spec of NodePool tenant changed though the edit was refused: generation %d, was %d",
			after.Generation, before.Generation)
	}
	s.done(
		"The tenant, cluster-admin of the hosted cluster, tries to take the policy's entry out of the NodePool, and is refused")
	printed("tenant$", edit(), folded(output))
	return nil
}

// deleteBinding lets the tenant disable the admission policy; the operator restores it.
func (s *story) deleteBinding(ctx context.Context) error {
	var before admissionv1.ValidatingAdmissionPolicyBinding
	if err := s.Client.Get(ctx, client.ObjectKey{Name: binding}, &before); err != nil {
		return err
	}
	args := []string{"delete", "validatingadmissionpolicybinding", binding, "--wait=false"}
	start := time.Now()
	output, err := s.Kubectl(ctx, "", args...)
	if err != nil {
		return err
	}
	err = s.Eventually(ctx, restoring, "the binding to be back", func(ctx context.Context) (bool, string, error) {
		var now admissionv1.ValidatingAdmissionPolicyBinding
		if err := s.Client.Get(ctx, client.ObjectKey{Name: binding}, &now); err != nil {
			return false, "", err
		}
		return now.UID != before.UID, "the one that was deleted", nil
	})
	if err != nil {
		return err
	}
	back := time.Since(start)
	// Earlier, the API server may not have noticed the change. A dry run asks without changing the NodePool.
	err = s.Eventually(ctx, restoring, "the edit to be refused again",
		func(ctx context.Context) (bool, string, error) {
			if time.Since(start) < inForce {
				return false, "", nil
			}
			_, err := s.refused(ctx, append(edit(), "--dry-run=server")...)
			return err == nil, "", err
		})
	if err != nil {
		return err
	}
	if err := s.merged(ctx, "tenant"); err != nil {
		return err
	}
	s.done("The tenant deletes the binding of the admission policy. It is back after %.1f s; "+
		"after %.1f s the same edit, as a dry run, is refused as before",
		back.Seconds(), time.Since(start).Seconds())
	printed("tenant$", args, output)
	return nil
}
