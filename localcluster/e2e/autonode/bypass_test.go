package autonode

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/attack"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The tests of X-11: every way in which a guest's cluster-admin might get an instance outside the policy. The table is
// in docs/autonode-bypass.md; each of its rows names a test of this package.

// guarded returns a world with a policy and the NodePool of one wrapper under it.
func guarded(t *testing.T) (w *world, pool *unstructured.Unstructured) {
	t.Helper()
	w = begin(t)
	w.policy(restrict(in(instanceType, "a", "b")))
	w.pool("x11", wants(in(instanceType, "b")))
	w.merged("x11", in(instanceType, "a", "b"), in(instanceType, "b"))
	return w, w.get(nodePoolKind, "x11")
}

// wide returns the requirements that the attacker wants.
func wide() object { return wants(in(instanceType, "t3.micro")) }

// as returns a client of the cluster-admin that impersonates somebody.
func (w *world) as(user string, groups ...string) client.Client {
	w.t.Helper()
	config, err := w.guest.Cluster.RESTConfig("cadmin")
	if err != nil {
		w.t.Fatal(err)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	c, err := client.New(config, client.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func TestX11_EveryVerbOnAKarpenterObjectIsRefused(t *testing.T) {
	w, pool := guarded(t)
	class := w.get(nodeClassKind, "default")
	jsonPatch := func(o *unstructured.Unstructured, patch string) error {
		return w.cadmin.Patch(w.ctx, o.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(patch)))
	}
	applied := func(o *unstructured.Unstructured, spec string) error {
		body := fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "metadata": {"name": %q}, "spec": %s}`, o.GetAPIVersion(),
			o.GetKind(), o.GetName(), spec)
		return w.cadmin.Patch(w.ctx, o.DeepCopy(), client.RawPatch(types.ApplyPatchType, []byte(body)),
			client.FieldOwner("attacker"), client.ForceOwnership)
	}
	withLabel := pool.DeepCopy()
	withLabel.SetLabels(map[string]string{"harmless": "label"})
	withLabel.Object["spec"].(object)["template"].(object)["spec"].(object)["requirements"] = list()
	generated := handMade("")
	generated.SetGenerateName("x11-")
	owned := handMade("x11-owned")
	owned.SetLabels(pool.GetLabels())
	owned.SetOwnerReferences(pool.GetOwnerReferences())
	for what, err := range map[string]error{
		"a JSON patch": jsonPatch(pool,
			`[{"op": "remove", "path": "/spec/template/spec/requirements/0"}]`),
		"a server-side apply":                    applied(pool, `{"template": {"spec": {"requirements": []}}}`),
		"an update hidden behind a label":        w.cadmin.Update(w.ctx, withLabel),
		"a create with a generated name":         w.cadmin.Create(w.ctx, generated),
		"a create with our labels and our owner": w.cadmin.Create(w.ctx, owned),
		"another user with all rights":           w.as("somebody", "system:masters").Delete(w.ctx, pool.DeepCopy()),
		"a Karpenter as system:admin":            w.patch(w.systemAdmin, pool, object{"spec": wide()}),
	} {
		w.refused(what, err, "OpenshiftNodePool")
	}
	for what, err := range map[string]error{
		"a JSON patch of a class": jsonPatch(class, `[{"op": "remove", "path": "/spec/blockDeviceMappings"}]`),
		"a server-side apply of a class": applied(class,
			`{"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "500Gi"}}]}`),
	} {
		w.refused(what, err, "OpenshiftEC2NodeClass")
	}
	if output, err := w.guest.Kubectl(w.ctx, "", "scale", "nodepool", "x11", "--replicas=9"); err == nil {
		t.Errorf("kubectl scale is accepted: %s", output)
	}
	if now := w.get(nodePoolKind, "x11"); now.GetGeneration() != pool.GetGeneration() ||
		now.GetUID() != pool.GetUID() {
		t.Error("the NodePool's spec was changed")
	}
}

func TestX11_AStatusWriteDoesNotCarryASpec(t *testing.T) {
	w, pool := guarded(t)
	changed := pool.DeepCopy()
	changed.Object["spec"] = handMade("x11").Object["spec"]
	changed.Object["status"] = object{"resources": object{"cpu": "1"}}
	if err := w.cadmin.Status().Update(w.ctx, changed); err != nil {
		t.Fatal(err)
	}
	w.merged("x11", in(instanceType, "a", "b"), in(instanceType, "b"))
	if now := w.get(nodePoolKind, "x11"); now.GetGeneration() != pool.GetGeneration() {
		t.Error("the write of the status wrote the spec")
	}
}

// A second version in the definition of NodePools is another door to the same objects.
func TestX11_AnotherVersionOfTheAPIIsGuardedToo(t *testing.T) {
	w, _ := guarded(t)
	crd := newObject(crdKind, "", "nodepools.karpenter.sh", nil)
	if err := w.cadmin.Get(w.ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
		t.Fatal(err)
	}
	before := crd.DeepCopy()
	versions := crd.Object["spec"].(object)["versions"].([]any)
	second := parse(show(versions[0]))
	second["name"], second["storage"] = "v1attack", false
	crd.Object["spec"].(object)["versions"] = append(versions, second)
	w.put(w.cadmin, newObject(crdKind, "", crd.GetName(), crd.Object["spec"].(object)))
	t.Cleanup(func() { w.put(w.cadmin, newObject(crdKind, "", before.GetName(), before.Object["spec"].(object))) })
	door := handMade("x11-door")
	door.SetAPIVersion("karpenter.sh/v1attack")
	w.eventually("the second version to be served and refused", func() (bool, string) {
		err := w.cadmin.Create(w.ctx, door.DeepCopy())
		if err == nil {
			t.Fatal("a NodePool was created by the second version")
		}
		if !strings.Contains(err.Error(), "OpenshiftNodePool") {
			return false, err.Error()
		}
		attack.SawRefusal(t, err)
		return true, ""
	})
}

// Whoever may impersonate passes admission. What they write is repaired and reported.
func TestX11_ImpersonationIsRepairedAndReported(t *testing.T) {
	w, pool := guarded(t)
	before := w.repairs()
	if err := w.patch(w.as(operatorUser, "system:masters"), pool, object{"spec": wide()}); err != nil {
		t.Fatalf("the attack itself fails: %v", err)
	}
	w.merged("x11", in(instanceType, "a", "b"), in(instanceType, "b"))
	class := w.get(nodeClassKind, "default")
	if err := w.patch(w.as(operatorUser, "system:masters"), class,
		object{"spec": object{
			"blockDeviceMappings": list(parse("{deviceName: /dev/xvda, ebs: {volumeSize: 500Gi}}")),
		}}); err != nil {
		t.Fatalf("the attack itself fails: %v", err)
	}
	w.rooted(hardCoded, "default")
	w.reported(before, "NodePool", "EC2NodeClass")
}

// repairs returns the operator's counts of what it restored, by kind.
func (w *world) repairs() map[string]string {
	w.t.Helper()
	counts := map[string]string{}
	for _, line := range w.metric("autonode_repairs_total{") {
		if name, count, found := strings.Cut(strings.TrimPrefix(line, `autonode_repairs_total{kind="`), `"} `); found {
			counts[name] = count
		}
	}
	return counts
}

// reported demands that the counts of these kinds have risen, and that each has an event.
func (w *world) reported(before map[string]string, kinds ...string) {
	w.t.Helper()
	for _, kind := range kinds {
		since := time.Now()
		w.eventually("the repair of a "+kind+" to be reported", func() (bool, string) {
			now := w.repairs()
			if now[kind] == before[kind] {
				return false, fmt.Sprintf("the metric still says %q", now[kind])
			}
			events, err := w.guest.Kubectl(w.ctx, "", "get", "events.events.k8s.io", "-A", "-o",
				"jsonpath={range .items[*]}{.regarding.kind} {.type} {.reason}: {.note}{\"\\n\"}{end}")
			if err != nil {
				w.t.Fatal(err)
			}
			for line := range strings.Lines(events) {
				if strings.Contains(line, " Warning Restored: "+kind+" ") {
					w.saw(attack.Told, "the operator", "the metric autonode_repairs_total, and an event: "+
						strings.TrimSpace(line), since)
					return true, ""
				}
			}
			return false, "no event in\n" + events
		})
	}
}

// an attempt must have got through; else the test has not seen a repair.
func TestX11_WithoutAdmissionTheStateIsRepairedAllTheSame(t *testing.T) {
	w, pool := guarded(t)
	before := w.repairs()
	// The test finds the window between the deletion and the repair by trying.
	began, succeeded := time.Now(), 0
	w.eventuallyIn(6*within, "a change of the NodePool to get through", func() (bool, string) {
		w.remove(w.cadmin, w.existing(bindingKind, poolGuardBinding))
		err := w.patch(w.cadmin, pool, object{"spec": wide()})
		if err == nil {
			succeeded++
		}
		return succeeded > 0, fmt.Sprint(err)
	})
	t.Logf("the window was found after %s", time.Since(began).Round(time.Millisecond))
	began = time.Now()
	w.merged("x11", in(instanceType, "a", "b"), in(instanceType, "b"))
	t.Logf("repaired %s after the change was accepted", time.Since(began).Round(time.Millisecond))
	if now := w.get(nodePoolKind, "x11"); now.GetGeneration() < pool.GetGeneration()+2 {
		t.Errorf("generation %d became %d: want a change and its repair", pool.GetGeneration(), now.GetGeneration())
	}
	w.eventually("the binding to be back", func() (bool, string) {
		return w.get(bindingKind, poolGuardBinding) != nil,
			"not yet"
	})
	w.reported(before, "ValidatingAdmissionPolicyBinding")
}

// existing names an object that may be gone by now.
func (w *world) existing(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	return newObject(kind, "", name, nil)
}

func TestX11_WhatHappensWhileTheOperatorIsDownIsRepairedAtItsStart(t *testing.T) {
	w, pool := guarded(t)
	w.halt()
	w.refused("an edit while the operator is down", w.patch(w.cadmin, pool, object{"spec": wide()}),
		"OpenshiftNodePool")
	w.remove(w.cadmin, w.get(bindingKind, poolGuardBinding))
	w.eventually("admission to be gone", func() (bool, string) {
		return w.patch(w.cadmin, pool, object{"spec": wide()}) == nil, "still refused"
	})
	w.run()
	w.merged("x11", in(instanceType, "a", "b"), in(instanceType, "b"))
	if w.get(bindingKind, poolGuardBinding) == nil {
		t.Error("the binding is not back although the pools are")
	}
}

// An apply of the present spec passes, since it changes nothing. It must not hold back a later policy.
func TestX11_SharedFieldOwnershipDoesNotHoldBackThePolicy(t *testing.T) {
	w, pool := guarded(t)
	body := show(object{"apiVersion": pool.GetAPIVersion(), "kind": pool.GetKind(), "metadata": object{"name": "x11"},
		"spec": pool.Object["spec"]})
	if err := w.cadmin.Patch(w.ctx, pool.DeepCopy(), client.RawPatch(types.ApplyPatchType, []byte(body)),
		client.FieldOwner("attacker"), client.ForceOwnership); err != nil {
		t.Fatalf("an apply without a change is refused: %v", err)
	}
	w.policy(restrict(in(instanceType, "a")))
	w.merged("x11", in(instanceType, "a"), in(instanceType, "b"))
}

// Everybody may write labels, owners and finalizers. A pool without ours must still count as ours.
func TestX11_AStrippedNodePoolIsStillOurs(t *testing.T) {
	w, pool := guarded(t)
	w.mustPatch(w.cadmin, pool,
		object{"metadata": object{"labels": nil, "ownerReferences": nil, "annotations": nil, "finalizers": nil}})
	w.policy(restrict(in(instanceType, "a")))
	w.merged("x11", in(instanceType, "a"), in(instanceType, "b"))
	w.eventually("label and owner to be back", func() (bool, string) {
		now := w.get(nodePoolKind, "x11")
		return len(now.GetOwnerReferences()) == 1 && len(now.GetLabels()) > 0, show(now.Object["metadata"])
	})
	// This race would leave a NodePool that no policy reaches: strip it and delete its wrapper at once.
	for range 10 {
		w.mustPatch(w.cadmin, w.get(nodePoolKind, "x11"),
			object{"metadata": object{"labels": nil, "ownerReferences": nil}})
		if wrapper := w.get(poolWrapper, "x11"); wrapper != nil {
			w.mustPatch(w.cadmin, wrapper, object{"metadata": object{"finalizers": nil}})
			w.remove(w.cadmin, wrapper)
		}
		w.gone("x11")
		w.pool("x11", wants(in(instanceType, "b")))
		w.merged("x11", in(instanceType, "a"), in(instanceType, "b"))
	}
}

func TestX11_AForgedStatusIsWrittenOver(t *testing.T) {
	w, _ := guarded(t)
	w.policy(restrict(in(instanceType, "a")))
	w.poolSays("x11", "RequirementsCompatible", "False", "NoCompatibleInstanceTypes")
	wrapper := w.get(poolWrapper, "x11")
	for _, c := range wrapper.Object["status"].(object)["conditions"].([]any) {
		c.(object)["status"], c.(object)["reason"] = "True", "Forged"
	}
	if err := w.status(w.cadmin, wrapper, wrapper.Object["status"].(object)); err != nil {
		t.Fatal(err)
	}
	w.poolSays("x11", "RequirementsCompatible", "False", "NoCompatibleInstanceTypes")
}

// A customer's own AutoNodePolicy in the guest has no effect.
func TestX11_APolicyInTheGuestHasNoEffect(t *testing.T) {
	w, _ := guarded(t)
	crd := newObject(crdKind, "", w.policyCRD().GetName(), w.policyCRD().Object["spec"].(object))
	w.put(w.cadmin, crd)
	t.Cleanup(func() { w.remove(w.cadmin, crd) })
	w.eventually("a policy in the guest", func() (bool, string) {
		err := w.try(w.cadmin, newObject(policyKind, "default", "default", restrict(in(instanceType, "t3.micro"))))
		return err == nil, fmt.Sprint(err)
	})
	w.stays("the NodePool", func() any { return requirementsOf(w.get(nodePoolKind, "x11")) })
}

// G18: a NodePool that somebody made under the operator's name, without a wrapper of that name, is not deleted. It is
// counted and reported.
func TestX11_AForeignNodePoolIsCounted(t *testing.T) {
	w, _ := guarded(t)
	foreign := handMade("x11-foreign")
	if err := w.as(operatorUser, "system:masters").Create(w.ctx, foreign); err != nil {
		t.Fatalf("the attack itself fails: %v", err)
	}
	t.Cleanup(func() { w.remove(w.exempt, foreign) })
	w.eventually("the metric to count it", func() (bool, string) {
		lines := strings.Join(w.metric(`autonode_unmanaged_objects{kind="NodePool"}`), "\n")
		return strings.HasSuffix(lines, " 1"), lines
	})
	w.told("NodePool", "x11-foreign", "Unmanaged")
	w.stays("the NodePool", func() any { return w.get(nodePoolKind, "x11-foreign") != nil })
}
