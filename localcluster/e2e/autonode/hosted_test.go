package autonode

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
)

const (
	fromHosted  = "--infra-from=HostedControlPlane"
	planeHolder = "example.com/held"
	// profileOf is the annotation with the instance profile of a cluster.
	profileOf = "hypershift.openshift.io/aws-karpenter-default-instance-profile"
)

var planeKind = schema.GroupVersionKind{Group: "hypershift.openshift.io", Version: "v1beta1",
	Kind: "HostedControlPlane"}

// planeCRD stands in for HyperShift's kind: it has only the fields that the operator reads.
const planeCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: hostedcontrolplanes.hypershift.openshift.io}
spec:
  group: hypershift.openshift.io
  scope: Namespaced
  names:
    plural: hostedcontrolplanes
    singular: hostedcontrolplane
    kind: HostedControlPlane
    listKind: HostedControlPlaneList
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// planes adds HostedControlPlanes to the management cluster, and lets the operator read those of its namespace.
func (w *world) planes() {
	w.t.Helper()
	if err := w.mgmt.Apply(w.ctx, planeCRD); err != nil {
		w.t.Fatal(err)
	}
	text, err := charts.HostedRules()
	if err != nil {
		w.t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: hcp, Name: "hosted-control-plane"}
	role := &rbacv1.Role{ObjectMeta: meta}
	if err := yaml.Unmarshal(text, &role.Rules); err != nil {
		w.t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: hcp, Name: account}},
	}
	if err := w.sre.Create(w.ctx, role); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = w.sre.Delete(w.ctx, role) })
	if err := w.sre.Create(w.ctx, binding); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = w.sre.Delete(w.ctx, binding) })
	w.t.Cleanup(func() { // before the rights go, and with the flags that every other test has
		for _, plane := range w.list(w.sre, planeKind) {
			_ = w.patch(w.sre, &plane, object{"metadata": object{"finalizers": nil}})
			_ = w.sre.Delete(w.ctx, &plane)
		}
		w.run()
	})
	w.eventually("the kind to be served", func() (bool, string) {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(planeKind)
		err := w.sre.List(w.ctx, &list)
		return err == nil, fmt.Sprint(err)
	})
}

// plane makes a HostedControlPlane of a cluster with Karpenter on AWS.
func (w *world) plane(name string) *unstructured.Unstructured {
	w.t.Helper()
	plane := newObject(planeKind, hcp, name, parse(`{infraID: infra-1,
		autoNode: {provisionerConfig: {name: Karpenter, karpenter: {platform: AWS}}},
		platform: {type: AWS, aws: {region: us-east-1,
			resourceTags: [{key: owner, value: sre}, {key: team, value: provider, overridePolicy: Allow}]}}}`))
	plane.SetAnnotations(map[string]string{profileOf: "profile-1"})
	plane.SetFinalizers([]string{planeHolder})
	if err := w.sre.Create(w.ctx, plane); err != nil {
		w.t.Fatal(err)
	}
	return plane
}

// classHas waits until the spec of an EC2NodeClass has all these texts.
func (w *world) classHas(name string, texts ...string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("EC2NodeClass %s with %q", name, texts), func() (bool, string) {
		class := w.get(nodeClassKind, name)
		if class == nil {
			return false, "there is none"
		}
		spec := show(field(class, "spec"))
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(spec, text) }), spec
	})
}

func (w *world) planeSays(status, reason string, parts ...string) {
	w.t.Helper()
	w.says(func() *unstructured.Unstructured { return w.get(policyKind, "default") }, "HostedControlPlane", status,
		reason, parts...)
}

// node classes are made from what the HostedControlPlane says, live. While its words do not count, those before
// stay in force.
func TestA32_TheHostedControlPlaneSaysTheInfrastructure(t *testing.T) {
	w := begin(t)
	w.planes()
	w.policy(restrict(in(instanceType, "a", "b")))
	w.class("a32", object{"tags": object{"team": "mine", "owner": "mine"}})
	plane := w.plane("one")
	w.run(fromHosted)
	w.planeSays("True", "Found")
	w.classHas("default", `"instanceProfile":"profile-1"`, `"owner":"sre"`, `"team":"provider"`, "infra-1")
	w.classHas("a32", `"owner":"sre"`, `"team":"mine"`)

	for _, change := range []struct {
		patch object
		text  string
	}{
		{object{"metadata": object{"annotations": object{profileOf: "profile-2"}}}, `"instanceProfile":"profile-2"`},
		{object{"spec": object{"infraID": "infra-2"}}, `infra-2`},
		{object{"spec": object{"platform": object{"aws": object{"resourceTags": list(object{"key": "owner",
			"value": "others"})}}}}, `"owner":"others"`},
	} {
		w.mustPatch(w.sre, plane, change.patch)
		w.classHas("default", change.text)
	}
	const override = "hypershift.openshift.io/karpenter-core-e2e-override"
	for _, leave := range []struct{ do, undo object }{
		{object{"metadata": object{"annotations": object{override: "true"}}},
			object{"metadata": object{"annotations": object{override: nil}}}},
		{object{"spec": object{"autoNode": nil}}, object{"spec": object{
			"autoNode": parse("{provisionerConfig: {name: Karpenter, karpenter: {platform: AWS}}}")}}},
	} {
		w.mustPatch(w.sre, plane, leave.do)
		w.planeSays("True", "LeavesClasses")
		w.mustPatch(w.sre, plane, object{"spec": object{"infraID": "infra-3"}})
		w.stays("the class", func() any { return field(w.get(nodeClassKind, "default"), "spec") })
		w.mustPatch(w.sre, plane, leave.undo)
		w.classHas("default", "infra-3")
		w.mustPatch(w.sre, plane, object{"spec": object{"infraID": "infra-2"}})
		w.classHas("default", "infra-2")
	}

	process := w.operator.PID()
	second := w.plane("two")
	w.planeSays("False", "Ambiguous", "one and two")
	w.stays("the class", func() any { return field(w.get(nodeClassKind, "default"), "spec") })
	w.mustPatch(w.sre, second, object{"metadata": object{"finalizers": nil}})
	w.remove(w.sre, second)
	w.planeSays("True", "Found")
	w.mustPatch(w.sre, plane, object{"metadata": object{"finalizers": nil}})
	w.remove(w.sre, plane)
	w.planeSays("False", "Missing")
	w.classHas("default", "infra-2", "profile-2")
	w.pool("a32", wants(in(instanceType, "a")))
	w.merged("a32", in(instanceType, "a", "b"), in(instanceType, "a")) // the rest goes on
	if w.operator.PID() != process {
		t.Error("the operator is another process")
	}
}

// the operator does not start if flags contradict the HostedControlPlane, or if there are two of them.
func TestA32_WhatKeepsTheOperatorFromStarting(t *testing.T) {
	w := begin(t)
	w.planes()
	w.plane("one")
	w.halt()
	for want, flag := range map[string]string{
		`--infra-id is "another", and the spec.infraID of HostedControlPlane one is "infra-1"`: "--infra-id=another",
		`--instance-profile is "another"`:                        "--instance-profile=another",
		`--resource-tags and --overridable-resource-tags are [{`: "--resource-tags=owner=me",
	} {
		if output, err := w.once(fromHosted, flag); err == nil || !strings.Contains(output, want) {
			t.Errorf("%s: error %v, output %q; want a line with %q", flag, err, output, want)
		}
	}
	w.plane("two")
	if output, err := w.once(fromHosted); err == nil || !strings.Contains(output, "HostedControlPlanes one and two") {
		t.Errorf("with two of them: error %v, output %q", err, output)
	}
}

// while the HostedControlPlane is paused, nothing is written in the hosted cluster. When it is being deleted,
// its pools go.
func TestA32_PausedAndDeleted(t *testing.T) {
	w := begin(t)
	w.planes()
	w.policy(restrict(in(instanceType, "a", "b")))
	plane := w.plane("one")
	w.run(fromHosted)
	w.pool("a32", wants(in(instanceType, "a")))
	w.merged("a32", in(instanceType, "a", "b"), in(instanceType, "a"))
	w.planeSays("True", "Found")
	for _, until := range []string{"true", time.Now().Add(time.Hour).UTC().Format(time.RFC3339)} {
		w.mustPatch(w.sre, plane, object{"spec": object{"pausedUntil": until}})
		w.planeSays("False", "Paused", until)
		since := time.Now()
		w.policy(restrict(in(instanceType, "b")))
		w.pool("a32-new", wants(in(instanceType, "b")))
		w.mustPatch(w.sre, plane, object{"spec": object{"infraID": "infra-9"}})
		w.remove(w.cadmin, newObject(bindingKind, "", "karpenter-binding.nodepool.hypershift.io", nil))
		w.stays("the pools", func() any { return len(w.list(w.guest.Client, nodePoolKind)) })
		for _, e := range w.events(w.guest, func(e cluster.Event) bool {
			// An Event reports earlier work; its series ends minutes later.
			return e.User == operatorUser && e.ReceivedAt.After(since) && e.Resource != "events"
		}) {
			if strings.HasPrefix(e.UserAgent, operatorAgent) && !slices.Contains([]string{"get", "list", "watch"},
				e.Verb) {
				t.Errorf("it wrote while paused until %s: %s %s", until, e.Verb, e.URI)
			}
		}
		w.mustPatch(w.sre, plane, object{"spec": object{"pausedUntil": nil}})
		w.merged("a32", in(instanceType, "b"), in(instanceType, "a"))
		w.merged("a32-new", in(instanceType, "b"), in(instanceType, "b"))
		w.classHas("default", "infra-9")
		w.eventually("the binding to be restored", func() (bool, string) {
			return w.get(bindingKind, "karpenter-binding.nodepool.hypershift.io") != nil, "it is gone"
		})
		w.policy(restrict(in(instanceType, "a", "b")))
		w.merged("a32", in(instanceType, "a", "b"), in(instanceType, "a"))
		w.remove(w.cadmin, w.get(poolWrapper, "a32-new"))
		w.gone("a32-new")
		w.mustPatch(w.sre, plane, object{"spec": object{"infraID": "infra-1"}})
		w.classHas("default", "infra-1")
	}

	w.remove(w.sre, plane) // its finalizer holds it
	w.gone("a32")
	w.planeSays("False", "Deleting")
	if w.get(nodeClassKind, "default") == nil {
		t.Error("the node class went before the cluster")
	}
	err := w.cadmin.Create(w.ctx, handMade("a32-by-hand"))
	w.refused("a NodePool of a cluster that goes", err, "OpenshiftNodePool")
}
