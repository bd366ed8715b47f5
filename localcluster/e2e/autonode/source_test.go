package autonode

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The manifests of the enhancement, as kubectl applies them, and what its text promises about them.

// manifest returns a whole object; spec becomes an indented block.
func manifest(head, spec string) string {
	return strings.TrimSpace(head) + "\nspec:\n  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
}

func TestTheManifestsOfTheSourceGiveWhatItPromises(t *testing.T) {
	w := begin(t)
	policy := manifest(
		"apiVersion: karpenter.hypershift.openshift.io/v1beta1\nkind: AutoNodePolicy\nmetadata: {name: default, namespace: "+
			hcp+"}", sourcePolicy)
	pool := manifest(
		"apiVersion: karpenter.hypershift.openshift.io/v1beta1\nkind: OpenshiftNodePool\nmetadata: {name: my-nodepool}",
		sourcePool)
	if err := w.mgmt.Apply(w.ctx, policy); err != nil {
		t.Fatal(err)
	}
	if err := w.guest.Apply(w.ctx, pool); err != nil {
		t.Fatal(err)
	}
	types := in(instanceType, "m5.large", "m5.xlarge", "m5.2xlarge", "m5.4xlarge")
	rest := []object{in(zone, "us-east-1a", "us-east-1b", "us-east-1c"), in(arch, "amd64"),
		in(instanceType, "m5.xlarge")}
	w.merged("my-nodepool", append([]object{types}, rest...)...)
	w.folds("my-nodepool", instanceType, []string{"m5.large", "m5.xlarge", "t3.micro"}, []string{"m5.xlarge"})
	w.folds("my-nodepool", zone, []string{"us-east-1a", "us-east-1-bos-1a"}, []string{"us-east-1a"})
	w.rooted(hardCoded, "default")
	ref := object{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"} // G20
	got := field(w.get(nodePoolKind, "my-nodepool"), "spec", "template", "spec", "nodeClassRef")
	if show(got) != show(ref) {
		t.Errorf("the NodePool refers to %s, want %s", show(got), show(ref))
	}
	w.policySays("True", "")
	// The workflow of an update: one more type, no action of the user.
	if err := w.mgmt.Apply(w.ctx, strings.Replace(policy, "m5.4xlarge", "m5.4xlarge, m6i.xlarge", 1)); err != nil {
		t.Fatal(err)
	}
	w.merged("my-nodepool",
		append([]object{in(instanceType, "m5.large", "m5.xlarge", "m5.2xlarge", "m5.4xlarge", "m6i.xlarge")},
			rest...)...)
}

// The source shows with two NodePools how flexible requirements are; here they are wrappers under its policy.
func TestTheSourcesExamplesOfRequirementsUnderItsPolicy(t *testing.T) {
	w := begin(t)
	w.policy(parse(sourcePolicy))
	w.pool("family", wants(in(instanceType, "m5.large", "m5.xlarge", "m5.2xlarge", "m5.4xlarge")))
	w.pool("windows", wants(in(capacityType, "spot"), in("kubernetes.io/os", "windows"), in(zone, "us-east-1a")))
	w.poolSays("family", "RequirementsCompatible", "True", "")
	w.poolSays("windows", "RequirementsCompatible", "True", "")
	w.folds("family", instanceType, []string{"m5.large", "m5.4xlarge", "m6i.large"},
		[]string{"m5.large", "m5.4xlarge"})
	w.folds("windows", zone, []string{"us-east-1a", "us-east-1b"}, []string{"us-east-1a"})
	w.folds("windows", capacityType, []string{"spot", "on-demand"}, []string{"spot"})
}

// G3: the source's own admission policy would also refuse Karpenter's annotations and the garbage collector. If
// somebody applies it, the operator restores its own form.
func TestTheSourcesAdmissionPolicyIsReplacedByTheOneThatWorks(t *testing.T) {
	w := begin(t)
	w.pool("literal", wants(in(arch, "amd64")))
	w.merged("literal", in(arch, "amd64"))
	want := show(field(w.get(vapKind, poolGuard), "spec"))
	literal := `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: karpenter.nodepool.hypershift.io}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [karpenter.sh], apiVersions: [v1], resources: [nodepools], operations: [CREATE, UPDATE, DELETE]}]}
  matchConditions: [{name: exclude-hcco-user, expression: "'system:hosted-cluster-config' != request.userInfo.username"}]
  validations: [{expression: "false", message: "NodePool resources cannot be modified directly. Use OpenshiftNodePool instead."}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: karpenter-binding.nodepool.hypershift.io}
spec: {policyName: karpenter.nodepool.hypershift.io, validationActions: [Deny]}
`
	if err := w.guest.Apply(w.ctx, literal); err != nil {
		t.Fatal(err)
	}
	w.eventually("the operator's form to be back", func() (bool, string) {
		got := show(field(w.get(vapKind, poolGuard), "spec"))
		return got == want, got
	})
	w.eventually("Karpenter's annotation to pass", func() (bool, string) {
		err := w.patch(w.systemAdmin, w.get(nodePoolKind, "literal"),
			object{"metadata": object{"annotations": object{"karpenter.sh/nodepool-hash": "1"}}})
		return err == nil, show(err)
	})
	// People see both messages of the source.
	w.refused("a pool", w.cadmin.Create(w.ctx, handMade("by-hand"), client.DryRunAll),
		"NodePool resources cannot be modified directly. Use OpenshiftNodePool instead.")
	w.refused("a class", w.cadmin.Create(w.ctx, handMadeClass("by-hand"), client.DryRunAll),
		"EC2NodeClass resources cannot be modified directly. Use OpenshiftEC2NodeClass instead.")
}
