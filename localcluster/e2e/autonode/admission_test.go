package autonode

import (
	"fmt"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/localcluster/attack"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The names that the enhancement and HyperShift give to the admission policies.
const (
	poolGuard, poolGuardBinding   = "karpenter.nodepool.hypershift.io", "karpenter-binding.nodepool.hypershift.io"
	classGuard, classGuardBinding = "karpenter.ec2nodeclass.hypershift.io",
		"karpenter-binding.ec2nodeclass.hypershift.io"
)

// handMade returns a valid NodePool as a customer would write it.
func handMade(name string) *unstructured.Unstructured {
	return newObject(nodePoolKind, "", name, parse(`{template: {spec: {
		nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default},
		requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [t3.micro]}]}}}`))
}

// handMadeClass returns a valid EC2NodeClass as a customer would write it.
func handMadeClass(name string) *unstructured.Unstructured {
	return newObject(nodeClassKind, "", name, parse(`{amiFamily: Custom, role: r, amiSelectorTerms: [{id: ami-0a}],
		subnetSelectorTerms: [{id: subnet-0a}], securityGroupSelectorTerms: [{id: sg-0a}]}`))
}

// refused demands a denial that names what to use instead.
func (w *world) refused(what string, err error, parts ...string) {
	w.t.Helper()
	status, isStatus := err.(apierrors.APIStatus)
	if !isStatus || status.Status().Code < 400 || status.Status().Code >= 500 || apierrors.IsConflict(err) ||
		apierrors.IsNotFound(err) {
		w.t.Errorf("%s is answered with %v, want a denial", what, err)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			w.t.Errorf("%s is denied with %v, which does not say %q", what, err, part)
		}
	}
	attack.SawRefusal(w.t, err)
}

func TestR34_NodePoolsCannotBeWrittenByOthers(t *testing.T) {
	w := begin(t)
	w.pool("r34", wants(in(instanceType, "a")))
	w.merged("r34", in(instanceType, "a"))
	w.everyVerbIsRefused(w.get(nodePoolKind, "r34"), handMade("r34-new"), object{"spec": object{"weight": int64(3)}},
		"OpenshiftNodePool")
}

func TestR35_NodeClassesCannotBeWrittenByOthers(t *testing.T) {
	w := begin(t)
	w.everyVerbIsRefused(w.get(nodeClassKind, "default"), handMadeClass("r35-new"),
		object{"spec": object{"tags": object{"x": "y"}}}, "OpenshiftEC2NodeClass")
}

// everyVerbIsRefused tries to create, change and delete as customers and as system:admin.
func (w *world) everyVerbIsRefused(existing, created *unstructured.Unstructured, change object, instead string) {
	w.t.Helper()
	for who, as := range map[string]client.Client{"cadmin": w.cadmin, "system:admin": w.systemAdmin} {
		w.refused(who+": create", as.Create(w.ctx, created.DeepCopy()), instead)
		w.refused(who+": patch", w.patch(as, existing, change), instead)
		changed := existing.DeepCopy()
		spec := changed.Object["spec"].(object)
		for key, value := range change["spec"].(object) {
			spec[key] = value
		}
		w.refused(who+": update", as.Update(w.ctx, changed), instead)
		w.refused(who+": delete", as.Delete(w.ctx, existing.DeepCopy()), instead)
		w.refused(who+": deletecollection", as.DeleteAllOf(w.ctx, existing.DeepCopy()), instead)
	}
}

func TestR36_TheOperatorMayWrite(t *testing.T) {
	w := begin(t)
	w.pool("r36", wants(in(instanceType, "a")))
	w.merged("r36", in(instanceType, "a"))
	w.class("r36", object{"monitoring": "Basic"})
	w.rooted(hardCoded, "r36")
	for _, resource := range []string{"nodepools", "ec2nodeclasses"} {
		done := 0
		for _, e := range w.writes(w.guest, resource) {
			if e.Name != "r36" || e.Code >= 300 {
				continue
			}
			if done++; e.User != operatorUser {
				t.Errorf("%s of %s by %s", e.Verb, e.URI, e.User)
			}
		}
		if done == 0 {
			t.Errorf("the audit log has no write of %s r36", resource)
		}
	}
}

func TestR37_ThePoliciesHaveTheNamesOfTheSource(t *testing.T) {
	w := begin(t)
	for guard, binding := range map[string]string{poolGuard: poolGuardBinding, classGuard: classGuardBinding} {
		if w.get(vapKind, guard) == nil {
			t.Errorf("there is no ValidatingAdmissionPolicy %s", guard)
		}
		b := w.get(bindingKind, binding)
		if b == nil {
			t.Errorf("there is no ValidatingAdmissionPolicyBinding %s", binding)
			continue
		}
		if got := show(field(b, "spec", "validationActions")); got != `["Deny"]` {
			t.Errorf("%s has the actions %s, want Deny", binding, got)
		}
		if got := field(b, "spec", "policyName"); got != guard {
			t.Errorf("%s binds %v, want %s", binding, got, guard)
		}
	}
}

func TestR38_AdmissionIsRestored(t *testing.T) {
	w := begin(t)
	for _, guard := range []struct {
		kind schema.GroupVersionKind
		name string
		edit object
	}{
		{vapKind, poolGuard, object{"spec": object{"validations": list(object{"expression": "true"})}}},
		{vapKind, classGuard,
			object{"spec": object{"matchConditions": list(object{"name": "never", "expression": "false"})}}},
		{bindingKind, poolGuardBinding, object{"spec": object{"validationActions": []any{"Audit"}}}},
		{bindingKind, classGuardBinding,
			object{"spec": object{
				"matchResources": object{"namespaceSelector": object{"matchLabels": object{"a": "b"}}},
			}}},
	} {
		want := w.get(guard.kind, guard.name)
		restored := func() (bool, string) {
			now := w.get(guard.kind, guard.name)
			if now == nil {
				return false, "there is none"
			}
			return show(field(now, "spec")) == show(field(want, "spec")), show(field(now, "spec"))
		}
		w.mustPatch(w.cadmin, want, guard.edit)
		w.eventually("the edited "+guard.name+" to be restored", restored)
		w.remove(w.cadmin, want)
		w.eventually("the deleted "+guard.name+" to be restored", restored)
	}
	w.eventually("a hand-made NodePool to be denied again", func() (bool, string) {
		err := w.cadmin.Create(w.ctx, handMade("r38"), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "OpenshiftNodePool"), fmt.Sprint(err)
	})
}

// G3: what Karpenter writes to a pool of its own is not the spec, and passes. A scale changes the spec, and does not.
func TestR39_KarpentersOwnWritesPass(t *testing.T) {
	w := begin(t)
	w.pool("r39",
		parse(
			`{replicas: 2, template: {spec: {requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]}}}`))
	w.merged("r39", in(arch, "amd64"))
	for who, as := range map[string]client.Client{"cadmin": w.cadmin, "system:admin": w.systemAdmin} {
		for _, change := range []object{
			{"annotations": object{"karpenter.sh/nodepool-hash": "1"}},
			{"finalizers": []any{"karpenter.sh/termination"}}, {"finalizers": []any{}},
		} {
			if err := w.patch(as, w.get(nodePoolKind, "r39"), object{"metadata": change}); err != nil {
				t.Errorf("%s: %s is answered with %v", who, show(change), err)
			}
		}
		pool := w.get(nodePoolKind, "r39")
		if err := w.status(as, pool, object{"resources": object{"cpu": "4"}}); err != nil {
			t.Errorf("%s: status is answered with %v", who, err)
		}
		w.refused(who+": spec", w.patch(as, pool, object{"spec": object{"replicas": int64(9)}}), "OpenshiftNodePool")
	}
	output, err := w.guest.Kubectl(w.ctx, "", "scale", "nodepool", "r39", "--replicas=9")
	if err == nil || !strings.Contains(output, "OpenshiftNodePool") {
		t.Errorf("kubectl scale is answered with %v %s", err, output)
	}
	if replicas := field(w.get(nodePoolKind, "r39"), "spec", "replicas"); replicas != int64(2) {
		t.Errorf("the NodePool has %v replicas, want 2", replicas)
	}
}
