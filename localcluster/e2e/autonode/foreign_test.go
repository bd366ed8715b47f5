package autonode

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// objects made in a gap of the admission policies do not stay in force.

// protectedFor waits until the policy has been protected for longer than clocks may differ.
func (w *world) protectedFor(least time.Duration) {
	w.t.Helper()
	w.eventuallyIn(3*within, "the policy to have been protected for a while", func() (bool, string) {
		said := condition(w.get(policyKind, "default"), "ProtectedOnce")
		since, err := time.Parse(time.RFC3339, fmt.Sprint(said["lastTransitionTime"]))
		return err == nil && said["status"] == "True" && time.Since(since) > least, show(said)
	})
}

// inTheGap makes a NodePool of a class of the customer's while the bindings are away, and waits until they are back.
func (w *world) inTheGap(name string) {
	w.t.Helper()
	pool := newObject(nodePoolKind, "", name, ofClass(name, in(instanceType, "t3.micro")))
	pool.Object["spec"].(object)["limits"] = object{"cpu": "1000"}
	for kind, o := range map[string]*unstructured.Unstructured{poolGuardBinding: pool,
		classGuardBinding: handMadeClass(name)} {
		w.eventuallyIn(6*within, "a gap for "+o.GetKind(), func() (bool, string) {
			w.remove(w.cadmin, w.existing(bindingKind, kind))
			err := w.cadmin.Create(w.ctx, o.DeepCopy())
			return err == nil, fmt.Sprint(err)
		})
		w.eventually("the binding to be back", func() (bool, string) {
			return w.get(bindingKind, kind) != nil,
				"not yet"
		})
	}
	w.t.Cleanup(func() {
		for _, kind := range []*unstructured.Unstructured{newObject(nodePoolKind, "", name, nil),
			newObject(nodeClassKind, "", name, nil)} {
			w.remove(w.exempt, kind)
		}
	})
}

func limitsOf(pool *unstructured.Unstructured) string {
	if pool == nil {
		return "no pool"
	}
	return show(field(pool, "spec", "limits"))
}

// legacy makes a NodePool from before the policy was protected.
func (w *world) legacy(name string) {
	w.t.Helper()
	pool := newObject(nodePoolKind, "", name, ofClass("default", in(instanceType, "t3.micro")))
	if err := w.exempt.Create(w.ctx, pool); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { w.remove(w.exempt, newObject(nodePoolKind, "", name, nil)) })
	w.restart() // without a policy, the guest counts as protected since the operator's start
}

func TestA07_WhatIsMadeInAGapIsQuarantined(t *testing.T) {
	w := begin(t)
	w.legacy("a07-legacy")
	before := w.get(nodePoolKind, "a07-legacy").GetGeneration()
	w.policy(restrict(in(instanceType, "a", "b")))
	w.protectedFor(11 * time.Second)
	once := condition(w.get(policyKind, "default"), "ProtectedOnce")
	began := time.Now()
	w.inTheGap("a07")
	t.Logf("the gap was found after %s", time.Since(began).Round(time.Millisecond))
	began = time.Now()
	w.eventually("the pool to be limited", func() (bool, string) {
		got := limitsOf(w.get(nodePoolKind, "a07"))
		return got == `{"cpu":"0"}`, got
	})
	t.Logf("limited within %s", time.Since(began).Round(time.Millisecond))
	w.told("NodePool", "a07", "Foreign")
	w.told("EC2NodeClass", "a07", "Foreign")
	w.eventually("both to be counted", func() (bool, string) {
		lines := w.metric("autonode_foreign_objects{")
		return slices.Contains(lines, `autonode_foreign_objects{kind="NodePool"} 1`) &&
			slices.Contains(lines, `autonode_foreign_objects{kind="EC2NodeClass"} 1`), strings.Join(lines, "\n")
	})
	w.pool("a07", ofClass("default", in(instanceType, "b")))
	w.merged("a07", in(instanceType, "a", "b"), in(instanceType, "b"))
	w.eventually("the limits to go", func() (bool, string) {
		now := w.get(nodePoolKind, "a07")
		return limitsOf(now) == "null" &&
				len(now.GetAnnotations()["karpenter.hypershift.openshift.io/limits-before-quarantine"]) == 0,
			show(now.Object["metadata"])
	})
	w.says(func() *unstructured.Unstructured { return w.get(policyKind, "default") }, "Protected", "True", "")
	if now := condition(w.get(policyKind, "default"), "ProtectedOnce"); show(now) != show(once) {
		t.Errorf("ProtectedOnce became %s from %s", show(now), show(once))
	}
	if now := w.get(nodePoolKind, "a07-legacy"); now == nil || now.GetGeneration() != before {
		t.Error("a pool of before was touched")
	}
}

func TestA07_WhatIsMadeInAGapIsDeletedOrReported(t *testing.T) {
	w := begin(t)
	w.legacy("a07-legacy")
	before := w.get(nodePoolKind, "a07-legacy").GetGeneration()
	w.policy(restrict(in(instanceType, "a", "b")))
	w.protectedFor(11 * time.Second)
	w.run("--foreign-objects=Report")
	w.inTheGap("a07-reported")
	w.told("NodePool", "a07-reported", "Foreign")
	w.stays("the limits", func() any { return limitsOf(w.get(nodePoolKind, "a07-reported")) })
	w.run("--foreign-objects=Delete")
	w.eventually("both to be deleted", func() (bool, string) {
		return w.get(nodePoolKind, "a07-reported") == nil && w.get(nodeClassKind, "a07-reported") == nil, "still there"
	})
	if now := w.get(nodePoolKind, "a07-legacy"); now == nil || now.GetGeneration() != before {
		t.Error("a pool of before was touched")
	}
}

// an admission policy that is weakened, then deleted and held by a finalizer, is still restored.
func TestA07_AHeldAdmissionPolicyIsRestored(t *testing.T) {
	w := begin(t)
	binding := w.existing(bindingKind, poolGuardBinding)
	t.Cleanup(func() { _ = w.patch(w.cadmin, binding, object{"metadata": object{"finalizers": nil}}) })
	w.mustPatch(w.cadmin, binding, object{"metadata": object{"finalizers": []any{"example.com/held"}}})
	w.remove(w.cadmin, binding)
	began := time.Now()
	w.mustPatch(w.cadmin, binding, object{"spec": object{"validationActions": []any{"Audit"}}})
	w.eventually("the binding to deny again", func() (bool, string) {
		now := w.get(bindingKind, poolGuardBinding)
		return now != nil && show(field(now, "spec", "validationActions")) == `["Deny"]`, show(now)
	})
	t.Logf("restored within %s", time.Since(began).Round(time.Millisecond))
	w.mustPatch(w.cadmin, binding, object{"metadata": object{"finalizers": nil}})
	w.eventually("the binding to be made again", func() (bool, string) {
		now := w.get(bindingKind, poolGuardBinding)
		return now != nil && now.GetDeletionTimestamp() == nil, show(now)
	})
}
