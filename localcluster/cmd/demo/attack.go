package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// mutation is an attack that no admission policy can forbid: the tenant is cluster-admin, and changes the operator's
// writes on their way to storage. make attack tries all other attacks.
const mutation = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: cheaper}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [karpenter.sh], apiVersions: ["*"], resources: [nodepools], operations: [CREATE, UPDATE]}]
  matchConditions: [{name: the-pool, expression: object.metadata.name == "tenant"}]
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: '[JSONPatch{op: "replace", path: "/spec/template/spec/requirements/0/values", value: ["` +
	outside + `"]}]'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: cheaper}
spec: {policyName: cheaper}
`

// attacked lets the tenant alter the operator's writes. The provider sees that on the policy, and it leads to no node
//
func (s *story) attacked(ctx context.Context) error {
	if err := s.Apply(ctx, mutation); err != nil {
		return err
	}
	began, weight := time.Now(), 0
	var ready, conforming karpenterv1.Condition
	const awaited = "the provider to see that NodePool tenant was altered"
	err := s.Eventually(ctx, refusing, awaited, func(ctx context.Context) (bool, string, error) {
		// Once the API server knows the mutation, it applies to the operator's writes.
		if weight++; ready.Status != "False" {
			patch := client.RawPatch("application/merge-patch+json",
				fmt.Appendf(nil, `{"spec":{"weight":%d}}`, weight%100+1))
			asked := &hypershiftv1beta1.OpenshiftNodePool{}
			asked.Name = "tenant"
			if err := s.Client.Patch(ctx, asked, patch); err != nil {
				return false, "", err
			}
		}
		var err error
		ready, conforming, err = s.verdicts(ctx)
		found := conforming.Status == "False" && strings.Contains(conforming.Message, "NodePool tenant")
		return ready.Status == "False" && found, fmt.Sprintf("%+v %+v", ready, conforming), err
	})
	if err != nil {
		return err
	}
	if !strings.Contains(ready.Message, "tenant") {
		return fmt.Errorf("the AutoNodePolicy does not name the pool that was altered: %+v", ready)
	}
	s.done(
		"The tenant, who is cluster-admin, makes an admission policy that puts %s into whatever the operator writes. "+
			"%.1f s after that the provider sees it, in the management cluster:\n\n    Ready=%s %s: %s\n\n    Conforming=%s %s: %s",
		outside, time.Since(began).Seconds(),
		ready.Status, ready.Reason, ready.Message, conforming.Status, conforming.Reason, conforming.Message)
	if err := show(ctx, s.management, "provider$", "get", "autonodepolicies", "-n", namespace); err != nil {
		return err
	}
	if _, err := s.Kubectl(ctx, "", "delete", "mutatingadmissionpolicybinding,mutatingadmissionpolicy",
		"cheaper"); err != nil {
		return err
	}
	err = s.Eventually(ctx, refusing, "the AutoNodePolicy to be Ready and Conforming again",
		func(ctx context.Context) (bool, string, error) {
			ready, conforming, err := s.verdicts(ctx)
			return ready.Status == "True" && conforming.Status == "True", fmt.Sprintf("%+v %+v", ready, conforming),
				err
		})
	if err != nil {
		return err
	}
	if err := s.checkTypes(ctx, "tenant", tenantPods, allowed); err != nil {
		return err
	}
	s.done(
		"Once the tenant's policy is gone, the operator's next write mends the pool. Checked: no node of another type came. More such " +
			"attacks, and what becomes of each: make attack")
	return nil
}

// verdicts returns the conditions of the policy, which the provider reads.
func (s *story) verdicts(ctx context.Context) (ready, conforming karpenterv1.Condition, err error) {
	var policy hypershiftv1beta1.AutoNodePolicy
	err = s.management.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: hypershiftv1beta1.PolicyName},
		&policy)
	ready, _ = condition.Get(policy.Status.Conditions, hypershiftv1beta1.ConditionTypeReady)
	conforming, _ = condition.Get(policy.Status.Conditions, hypershiftv1beta1.ConditionTypeConforming)
	return ready, conforming, err
}
