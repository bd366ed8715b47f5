package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

const (
	// namespace of the hosted control plane in the management cluster.
	namespace = "hcp-demo"
	// allowed is the instance type that policy and tenant agree on. outside is one that the tenant wants and the
	// policy does not allow. It is cheaper, so without the policy it would be chosen.
	allowed = "s-2x-amd64-linux"
	outside = "c-1x-amd64-linux"
	// tenantPods is the number of the tenant's pods, each on a node of its own.
	tenantPods = 3
)

// host turns the cluster into a hosted one: joiner-operator connects it with the management cluster.
func (s *story) host(ctx context.Context) error {
	// The operator does not change objects that users made before it existed (G18).
	if _, err := s.Kubectl(ctx, "", "delete", "nodepool", "default"); err != nil {
		return err
	}
	if err := s.InstallHosted(ctx); err != nil {
		return err
	}
	var err error
	s.operator, err = s.Run(ctx, rig.OperatorProgram(s.binary, s.kubeconfig, namespace, "--platform=KWOK",
		"--operand-user-name="+rig.User))
	if err != nil {
		return err
	}
	if err := s.checkRights(ctx); err != nil {
		return err
	}
	s.done(
		"The cluster becomes a hosted one: joiner-operator runs between it and the provider's management cluster, " +
			"the second control plane. Checked: there it may read the policies of its namespace and write their status, " +
			"but change no policy, read no Secret and see no other namespace")
	return nil
}

// checkRights asks the management cluster what the operator may do there (R41).
func (s *story) checkRights(ctx context.Context) error {
	const policies = "autonodepolicies"
	for _, right := range []struct {
		namespace, verbs, group, resource, sub string
		want                                   bool
	}{
		{namespace, "get list watch", hypershiftv1beta1.Group, policies, "", true},
		{namespace, "update patch", hypershiftv1beta1.Group, policies, "status", true},
		{namespace, "create update patch delete", hypershiftv1beta1.Group, policies, "", false},
		{namespace, "get list", "", "secrets", "", false},
		{"default", "get list watch", hypershiftv1beta1.Group, policies, "", false},
	} {
		for verb := range strings.FieldsSeq(right.verbs) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: fmt.Sprintf("system:serviceaccount:%s:%s", namespace, rig.OperatorAccount),
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace,
					"system:authenticated"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: right.namespace, Verb: verb, Group: right.group, Resource: right.resource,
					Subresource: right.sub,
				},
			}}
			if err := s.management.Client.Create(ctx, review); err != nil {
				return err
			}
			if review.Status.Allowed != right.want {
				return fmt.Errorf("the operator may %s %s %s in namespace %s of the management cluster: %t, want %t",
					verb, right.resource, right.sub, right.namespace, review.Status.Allowed, right.want)
			}
		}
	}
	return nil
}

// policy creates the provider's policy in the management cluster.
func (s *story) policy(ctx context.Context) error {
	if err := s.management.Apply(ctx, manifest("policy")); err != nil {
		return err
	}
	if err := s.policyReady(ctx, ""); err != nil {
		return err
	}
	s.done(
		"The provider's AutoNodePolicy, in the management cluster, allows three instance types. %s is not among them",
		outside)
	return show(ctx, s.management, "provider$", "get", "autonodepolicies", "-n", namespace, "-o",
		"custom-columns=NAME:.metadata.name,ALLOWED:.spec.nodePoolDefaults.requirements[*].values")
}

// policyReady waits until the policy is applied everywhere and its message contains part.
func (s *story) policyReady(ctx context.Context, part string) error {
	return s.Eventually(ctx, refusing, "the AutoNodePolicy to be Ready",
		func(ctx context.Context) (bool, string, error) {
			var policy hypershiftv1beta1.AutoNodePolicy
			err := s.management.Client.Get(ctx,
				client.ObjectKey{Namespace: namespace, Name: hypershiftv1beta1.PolicyName}, &policy)
			ready, _ := condition.Get(policy.Status.Conditions, hypershiftv1beta1.ConditionTypeReady)
			done := ready.Status == "True" && ready.ObservedGeneration == policy.Generation &&
				strings.Contains(ready.Message, part)
			return done, fmt.Sprintf("%+v", ready), err
		})
}

// tenant asks for an instance type inside the policy and one outside, and gets nodes of the former.
func (s *story) tenant(ctx context.Context) error {
	if err := s.Apply(ctx, manifest("tenant")); err != nil {
		return err
	}
	if err := s.merged(ctx, "tenant"); err != nil {
		return err
	}
	s.done("A tenant's OpenshiftNodePool allows %s and %s. The NodePool made from it carries the policy's entry, "+
		"then the tenant's", allowed, outside)
	err := show(ctx, s.Rig, "tenant$", "get", "nodepool", "tenant", "-o",
		`jsonpath={range .spec.template.spec.requirements[*]}{.key} {.operator} {.values}{"\n"}{end}`)
	if err != nil {
		return err
	}
	err = s.Eventually(ctx, placing, "the tenant's pods to run", func(ctx context.Context) (bool, string, error) {
		running, err := s.running(ctx, "tenant")
		return running == tenantPods, fmt.Sprintf("%d of %d run", running, tenantPods), err
	})
	if err != nil {
		return err
	}
	if err := s.checkTypes(ctx, "tenant", tenantPods, allowed); err != nil {
		return err
	}
	s.done("The tenant's %d pods run. Checked: every node of the pool is %s, the one type that both allow, "+
		"though %s costs less", tenantPods, allowed, outside)
	return s.showNodes(ctx)
}

// showNodes prints the nodes with their types and prices.
func (s *story) showNodes(ctx context.Context) error {
	labels := []string{karpenterv1.NodePoolLabelKey, corev1.LabelInstanceTypeStable, priceLabel}
	return show(ctx, s.Rig, "tenant$", "get", "nodes", "-L", strings.Join(labels, ","))
}

// merged waits until a NodePool has exactly the policy's entries and then those of the OpenshiftNodePool.
func (s *story) merged(ctx context.Context, name string) error {
	return s.Eventually(ctx, refusing, "NodePool "+name+" to carry the policy's entries and the tenant's",
		func(ctx context.Context) (bool, string, error) {
			var policy hypershiftv1beta1.AutoNodePolicy
			var asked hypershiftv1beta1.OpenshiftNodePool
			var pool karpenterv1.NodePool
			err := errors.Join(
				s.management.Client.Get(ctx,
					client.ObjectKey{Namespace: namespace, Name: hypershiftv1beta1.PolicyName}, &policy),
				s.Client.Get(ctx, client.ObjectKey{Name: name}, &asked),
				s.Client.Get(ctx, client.ObjectKey{Name: name}, &pool))
			want := slices.Concat(policy.Spec.NodePoolDefaults.Requirements, asked.Spec.Template.Spec.Requirements)
			got := pool.Spec.Template.Spec.Requirements
			return equality.Semantic.DeepEqual(got, want), fmt.Sprintf("%+v, want %+v", got, want), err
		})
}

// running counts the running pods of a team.
func (s *story) running(ctx context.Context, team string) (int, error) {
	list, err := s.pods(ctx)
	count := 0
	for _, pod := range list {
		if pod.Spec.NodeSelector["team"] == team && pod.Status.Phase == corev1.PodRunning {
			count++
		}
	}
	return count, err
}

// checkTypes checks that a pool has this number of nodes, all of one instance type, and that each pod of its team is
// on one.
func (s *story) checkTypes(ctx context.Context, pool string, nodes int, kind string) error {
	all, err := s.nodes(ctx)
	if err != nil {
		return err
	}
	found := 0
	for name, node := range all {
		if node.Labels[karpenterv1.NodePoolLabelKey] != pool {
			continue
		}
		found++
		if got := node.Labels[corev1.LabelInstanceTypeStable]; got != kind {
			return fmt.Errorf("node %s of pool %s is a %s; only %s is allowed", name, pool, got, kind)
		}
	}
	if found != nodes {
		return fmt.Errorf("pool %s has %d nodes, want %d", pool, found, nodes)
	}
	pods, err := s.pods(ctx)
	for _, pod := range pods {
		if node := all[pod.Spec.NodeName]; pod.Spec.NodeSelector["team"] == pool &&
			node.Labels[karpenterv1.NodePoolLabelKey] != pool {
			return fmt.Errorf("pod %s stands on node %q, which is not of pool %s", pod.Name, pod.Spec.NodeName, pool)
		}
	}
	return err
}

// nothing creates a pool that allows only what the policy forbids. The pool is accepted, launches nothing, and says
// why in its status.
func (s *story) nothing(ctx context.Context) error {
	if err := s.Apply(ctx, manifest("outside")); err != nil {
		return err
	}
	var why string // as a user reads it
	err := s.Eventually(ctx, refusing, "OpenshiftNodePool outside to say that nothing is left",
		func(ctx context.Context) (bool, string, error) {
			var asked hypershiftv1beta1.OpenshiftNodePool
			err := s.Client.Get(ctx, client.ObjectKey{Name: "outside"}, &asked)
			compatible, _ := condition.Get(asked.Status.Conditions,
				hypershiftv1beta1.ConditionTypeRequirementsCompatible)
			ready, _ := condition.Get(asked.Status.Conditions, hypershiftv1beta1.ConditionTypeReady)
			why = fmt.Sprintf("%s=%s %s: %s", compatible.Type, compatible.Status, compatible.Reason,
				compatible.Message)
			return compatible.Status == "False" && ready.Status == "False" &&
					compatible.Reason == hypershiftv1beta1.ReasonNoCompatibleInstanceTypes,
				fmt.Sprintf("%+v", asked.Status.Conditions), err
		})
	if err != nil {
		return err
	}
	for _, part := range []string{corev1.LabelInstanceTypeStable, allowed, outside} {
		if !strings.Contains(why, part) {
			return fmt.Errorf("the condition of OpenshiftNodePool outside does not name %s: %s", part, why)
		}
	}
	// When Joiner says that it has no node for the pod, it has looked at the pod and the pool.
	if _, err := s.event(ctx, "outside", "pool outside"); err != nil {
		return err
	}
	var claims karpenterv1.NodeClaimList
	if err := s.Client.List(ctx, &claims, client.MatchingLabels{karpenterv1.NodePoolLabelKey: "outside"}); err != nil {
		return err
	}
	if len(claims.Items) > 0 {
		return fmt.Errorf("NodeClaim %s was made for a pool that allows nothing", claims.Items[0].Name)
	}
	if err := s.policyReady(ctx, "1 of the pools"); err != nil {
		return err
	}
	s.done(
		"A pool that allows only %s is accepted, launches nothing for the pod that waits, and says why:\n\n    %s\n\n"+
			"    Checked: so does the pod's event; the policy stays Ready, and counts the pool in its message",
		outside, why)
	return show(ctx, s.Rig, "tenant$", "get", "openshiftnodepools", "-o", "wide")
}

// lifted deletes the policy. The waiting pod then runs, so the policy was what held it.
func (s *story) lifted(ctx context.Context) error {
	if _, err := s.management.Kubectl(ctx, "", "delete", "autonodepolicy", "default", "-n", namespace); err != nil {
		return err
	}
	start := time.Now()
	err := s.Eventually(ctx, placing, "the pod that waited to run", func(ctx context.Context) (bool, string, error) {
		running, err := s.running(ctx, "outside")
		return running == 1, fmt.Sprintf("%d of 1 run", running), err
	})
	if err != nil {
		return err
	}
	took := time.Since(start)
	if err := errors.Join(s.checkTypes(ctx, "outside", 1, outside),
		s.checkTypes(ctx, "tenant", tenantPods, allowed)); err != nil {
		return err
	}
	if err := s.checkCheaper(ctx); err != nil {
		return err
	}
	s.done("The provider deletes the policy. %.1f s later the pod that waited runs, on a cheaper %s: "+
		"only the policy had held it back", took.Seconds(), outside)
	return s.showNodes(ctx)
}

// checkCheaper checks that the type outside of the policy costs less than what the tenant got, so that the policy did
// make the difference.
func (s *story) checkCheaper(ctx context.Context) error {
	kept, err := s.price(ctx, "outside")
	if err != nil {
		return err
	}
	got, err := s.price(ctx, "tenant")
	if err == nil && kept >= got/tenantPods {
		return fmt.Errorf("a %s costs $%.3f/h, a %s $%.3f/h: the policy would have changed nothing", outside, kept,
			allowed, got/tenantPods)
	}
	return err
}
