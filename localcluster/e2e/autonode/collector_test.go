package autonode

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
)

// operand is a Karpenter with a user name of its own.
const operand = "karpenter-operand"

// collecting runs the garbage collector of a real kube-controller-manager in the guest until the test ends.
func (w *world) collecting() {
	w.t.Helper()
	if err := w.guest.Cluster.StartComponent(w.ctx, cluster.ControllerManager); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := w.guest.Cluster.StopComponent(cluster.ControllerManager); err != nil {
			w.t.Error(err)
		}
	})
}

// collected makes a NodePool, an EC2NodeClass and a NodeClaim, all of them protected.
func (w *world) collected() []*unstructured.Unstructured {
	w.t.Helper()
	w.pool("gc", wants(in(instanceType, "a")))
	w.class("gc", object{"monitoring": "Basic"})
	w.merged("gc", in(instanceType, "a"))
	w.rooted(hardCoded, "gc")
	claim := newObject(nodeClaimKind, "", "gc",
		parse(`{nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default},
		requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [a]}]}`))
	if err := w.as(operand, "system:masters").Create(w.ctx, claim); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { w.remove(w.cadmin, claim) })
	return []*unstructured.Unstructured{w.get(nodePoolKind, "gc"), w.get(nodeClassKind, "gc"), claim}
}

// also adds an owner to those that an object has.
func (w *world) also(o *unstructured.Unstructured, owner *rbacv1.ClusterRole) {
	w.t.Helper()
	owners := append(w.get(o.GroupVersionKind(), o.GetName()).GetOwnerReferences(),
		metav1.OwnerReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: owner.Name,
			UID: owner.UID})
	var all []any
	for _, reference := range owners {
		all = append(all, reference)
	}
	w.mustPatch(w.as(operand, "system:masters"), o, object{"metadata": object{"ownerReferences": all}})
}

// R39, A-10: the garbage collector of a real kube-controller-manager does its work on protected objects, also with the
// strict form. It removes an owner that left its dependents behind, and the finalizer of a deletion in the foreground.
func TestR39_TheGarbageCollectorDoesItsWork(t *testing.T) {
	w := begin(t)
	w.collecting()
	for _, flags := range [][]string{{"--operand-user-name=" + operand},
		{"--operand-user-name=" + operand, "--strict-admission"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			w := &world{fixture: w.fixture, t: t, ctx: w.ctx}
			w.run(flags...)
			w.eventually("NodeClaims to be protected", func() (bool, string) {
				probe := newObject(nodeClaimKind, "", "gc-probe",
					parse(
						`{requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}`))
				err := w.cadmin.Create(w.ctx, probe, client.DryRunAll)
				return err != nil && strings.Contains(err.Error(), "OpenshiftNodePool"), fmt.Sprint(err)
			})
			all := w.collected()
			w.leavesDependentsBehind(all)
			for _, o := range all {
				w.goesInTheForeground(o)
			}
			for _, wrapper := range []*unstructured.Unstructured{w.get(poolWrapper, "gc"), w.get(classWrapper, "gc")} {
				w.remove(w.cadmin, wrapper)
			}
			w.eventually("pool and class to go", func() (bool, string) {
				return w.get(nodePoolKind, "gc") == nil && w.get(nodeClassKind, "gc") == nil, "still there"
			})
		})
	}
}

// leavesDependentsBehind deletes an owner of all and demands that they lose the reference to it, and nothing else.
func (w *world) leavesDependentsBehind(all []*unstructured.Unstructured) {
	w.t.Helper()
	owner := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "gc-owner"}}
	if err := w.cadmin.Create(w.ctx, owner); err != nil {
		w.t.Fatal(err)
	}
	for _, o := range all {
		w.also(o, owner)
	}
	owned := func(o *unstructured.Unstructured) bool {
		now := w.get(o.GroupVersionKind(), o.GetName())
		return now != nil && slices.ContainsFunc(now.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
			return r.UID == owner.UID
		})
	}
	for _, o := range all {
		if !owned(o) {
			w.t.Fatalf("%s has not got its second owner", o.GetKind())
		}
	}
	if err := w.cadmin.Delete(w.ctx, owner, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		w.t.Fatal(err)
	}
	for _, o := range all {
		w.eventuallyIn(3*within, o.GetKind()+" to lose the owner", func() (bool, string) {
			now := w.get(o.GroupVersionKind(), o.GetName())
			return now != nil && now.GetUID() == o.GetUID() && !owned(o), show(now.Object["metadata"])
		})
	}
}

// goesInTheForeground deletes an object in the foreground; the garbage collector ends this once the dependents are
// gone.
func (w *world) goesInTheForeground(o *unstructured.Unstructured) {
	w.t.Helper()
	dependent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "gc-of-" + strings.ToLower(o.GetKind()),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(),
			UID: o.GetUID(), BlockOwnerDeletion: new(true)}},
	}}
	if err := w.cadmin.Create(w.ctx, dependent); err != nil {
		w.t.Fatal(err)
	}
	if err := w.exempt.Delete(w.ctx, o.DeepCopy(),
		client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		w.t.Fatal(err)
	}
	w.eventuallyIn(3*within, o.GetKind()+" to go in the foreground", func() (bool, string) {
		now := w.get(o.GroupVersionKind(), o.GetName()) // what has a wrapper is made again
		if now != nil && now.GetUID() == o.GetUID() {
			return false, show(now.Object["metadata"])
		}
		err := w.cadmin.Get(w.ctx, client.ObjectKeyFromObject(dependent), &corev1.ConfigMap{})
		return err != nil && client.IgnoreNotFound(err) == nil, "its dependent is there: " + fmt.Sprint(err)
	})
}
