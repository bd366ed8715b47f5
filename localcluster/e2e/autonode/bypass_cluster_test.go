package autonode

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The attacks of this file change the guest cluster itself: its admission, its rights, its definitions. A
// cluster-admin may do so, and no admission policy in the same cluster can be stronger. The tests show that the
// operator survives, says so where the provider looks, and repairs everything once it can.

// An admission policy of the customer blocks the operator's writes.
func TestX11_ABlockedOperatorSaysSoOnThePolicy(t *testing.T) {
	w, _ := guarded(t)
	w.policySays("True", "")
	block := newObject(vapKind, "", "x11-block", parse(`
failurePolicy: Fail
matchConstraints: {resourceRules: [{apiGroups: [karpenter.sh], apiVersions: ["*"], resources: [nodepools], operations: [CREATE, UPDATE]}]}
matchConditions: [{name: operator, expression: "request.userInfo.username == '`+operatorUser+`'"}]
validations: [{expression: "false", message: blocked by the customer}]`))
	bind := newObject(bindingKind, "", "x11-block", parse(`{policyName: x11-block, validationActions: [Deny]}`))
	w.put(w.cadmin, block)
	w.put(w.cadmin, bind)
	t.Cleanup(func() { w.remove(w.cadmin, bind); w.remove(w.cadmin, block) })
	w.eventually("the block to hold", func() (bool, string) {
		err := w.as(operatorUser, "system:masters").Create(w.ctx, handMade("x11-probe"), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "blocked by the customer"), fmt.Sprint(err)
	})
	w.policy(restrict(in(instanceType, "a")))
	w.policySays("False", "", "x11")
	w.poolSays("x11", "PolicyApplied", "False", "")
	w.remove(w.cadmin, bind)
	w.eventuallyIn(2*within, "the pool to follow", func() (bool, string) {
		got := requirementsOf(w.get(nodePoolKind, "x11"))
		return show(got) == show(list(in(instanceType, "a"), in(instanceType, "b"))), show(got)
	})
	w.policySays("True", "")
}

// A mutating admission policy of the customer removes the policy's entry from what the operator writes.
func TestX11_AWriteThatIsChangedOnTheWayIsReported(t *testing.T) {
	w, _ := guarded(t)
	mutating := schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1",
		Kind: "MutatingAdmissionPolicy"}
	bindingOf := mutating
	bindingOf.Kind += "Binding"
	attack := newObject(mutating, "", "x11-strip", parse(`
failurePolicy: Fail
reinvocationPolicy: Never
matchConstraints: {resourceRules: [{apiGroups: [karpenter.sh], apiVersions: [v1], resources: [nodepools], operations: [CREATE, UPDATE]}]}
mutations:
- patchType: JSONPatch
  jsonPatch: {expression: '[JSONPatch{op: "remove", path: "/spec/template/spec/requirements/0"}]'}`))
	bind := newObject(bindingOf, "", "x11-strip", parse(`{policyName: x11-strip}`))
	w.put(w.cadmin, attack)
	w.put(w.cadmin, bind)
	t.Cleanup(func() { w.remove(w.cadmin, bind); w.remove(w.cadmin, attack) })
	w.eventually("the mutation to work", func() (bool, string) {
		probe := handMade("x11-probe")
		err := w.as(operatorUser, "system:masters").Create(w.ctx, probe, client.DryRunAll)
		return err == nil && len(requirementsOf(probe)) == 0, fmt.Sprint(err, show(requirementsOf(probe)))
	})
	w.policy(restrict(in(instanceType, "a"), in(arch, "amd64")))
	w.policySays("False", "", "x11")
	w.remove(w.cadmin, bind)
	w.eventuallyIn(2*within, "the pool to be mended", func() (bool, string) {
		got := requirementsOf(w.get(nodePoolKind, "x11"))
		return show(got) == show(list(in(instanceType, "a"), in(arch, "amd64"), in(instanceType, "b"))), show(got)
	})
	w.policySays("True", "")
}

// The operator's rights in the guest are objects of the guest.
func TestX11_WithoutItsRightsTheOperatorSaysSo(t *testing.T) {
	w, _ := guarded(t)
	w.policySays("True", "")
	var bindings rbacv1.ClusterRoleBindingList
	if err := w.cadmin.List(w.ctx, &bindings); err != nil {
		t.Fatal(err)
	}
	var taken []rbacv1.ClusterRoleBinding
	for _, b := range bindings.Items {
		for _, subject := range b.Subjects {
			if subject.Name == operatorUser {
				taken = append(taken, *b.DeepCopy())
				if err := w.cadmin.Delete(w.ctx, &b); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if len(taken) == 0 {
		t.Fatal("no ClusterRoleBinding names " + operatorUser)
	}
	given := false
	give := func() {
		for _, b := range taken {
			b.ResourceVersion, b.UID = "", ""
			if err := w.cadmin.Create(w.ctx, &b); err != nil {
				t.Error(err)
			}
		}
		given = true
	}
	t.Cleanup(func() {
		if !given {
			give()
		}
	})
	w.policy(restrict(in(instanceType, "a")))
	w.policySays("False", "ReconcileFailed", "x11") // although not even the wrapper's status can be written
	w.refused("an edit in the meantime", w.patch(w.cadmin, w.get(nodePoolKind, "x11"), object{"spec": wide()}),
		"OpenshiftNodePool")
	w.eventuallyIn(12*within, "the operator to say that it does not see the cluster any more", func() (bool, string) {
		protected := condition(w.get(policyKind, "default"), "Protected")
		return protected["status"] == "False" && strings.Contains(fmt.Sprint(protected["message"]), "may not read"),
			show(protected)
	})
	give()
	w.eventuallyIn(3*within, "the pool to follow", func() (bool, string) {
		got := requirementsOf(w.get(nodePoolKind, "x11"))
		return show(got) == show(list(in(instanceType, "a"), in(instanceType, "b"))), show(got)
	})
}

// reinstalled has a cluster-admin delete a definition and install it again.
func (w *world) reinstalled(name string) {
	w.t.Helper()
	if err := w.guest.ReinstallDefinition(w.ctx, w.cadmin, name, 3*within); err != nil {
		w.t.Fatal(err)
	}
}

// Deleting the definition of NodePools deletes them all: nothing is launched, and nodes go. They come back with it.
func TestX11_DeletingTheDefinitionOfNodePoolsEndsAllPools(t *testing.T) {
	w, pool := guarded(t)
	w.reinstalled("nodepools.karpenter.sh")
	w.eventuallyIn(6*within, "the NodePool to be written again", func() (bool, string) {
		now := w.get(nodePoolKind, "x11")
		return now != nil && now.GetUID() != pool.GetUID(), "not yet"
	})
	w.merged("x11", in(instanceType, "a", "b"), in(instanceType, "b"))
}

// Deleting the definition of the wrappers deletes the pools, too; it does not set them free.
func TestX11_DeletingTheDefinitionOfWrappersEndsTheirPools(t *testing.T) {
	w, _ := guarded(t)
	w.reinstalled("openshiftnodepools." + group)
	w.eventuallyIn(6*within, "the NodePool to go", func() (bool, string) {
		return w.get(nodePoolKind, "x11") == nil,
			"it is still there"
	})
	w.pool("x11-after", wants(in(instanceType, "b")))
	w.eventuallyIn(6*within, "new wrappers to be served",
		func() (bool, string) { return w.get(nodePoolKind, "x11-after") != nil, "not yet" })
	w.merged("x11-after", in(instanceType, "a", "b"), in(instanceType, "b"))
}
