package nodescheduling

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/localcluster/attack"
	"github.com/joiner-autoscaler/joiner/localcluster/placing"
)

// as makes kubectl act as alice, to whom RBAC allows everything: only the policy refuses something. Each row of
// docs/control-plane-bypass.md names a test of this file or of workloads_test.go.
func as(args ...string) []string {
	return append([]string{"--as=alice", "--as-group=" + placing.People}, args...)
}

// attempt is a way to a protected node: kubectl's arguments, and its input.
type attempt struct {
	args  []string
	input string
	want  string // the code, without group
}

func podManifest(name, spec string) string {
	return fmt.Sprintf(
		`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "namespace": "app"}, "spec": {"containers": `+
			`[{"name": "main", "image": "image"}]%s}}`,
		name, spec)
}

func bindingManifest(target string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "waiting"}, "target": %s}`,
		target)
}

// refuse tries every attempt and demands its refusal. Afterwards no pod of the namespace may be on a node of the
// group.
func (g guarded) refuse(t *testing.T, attempts map[string]attempt) {
	t.Helper()
	for name, a := range attempts {
		_, err := g.Kubectl(t.Context(), a.input, as(a.args...)...)
		if err == nil || !strings.Contains(err.Error(), "NodeSchedulingPolicy [ControlPlane/"+a.want+"]") {
			t.Errorf("%s: %v, want a refusal with the code %s", name, err, a.want)
			continue
		}
		attack.Saw(t, attack.Seen{How: attack.Refused, By: "the " + string(g.Door), Text: err.Error()})
	}
	g.nobodyIsThere(t)
}

// nobodyIsThere checks what counts in the end: the nodes of the pods.
func (g guarded) nobodyIsThere(t *testing.T) {
	t.Helper()
	pods, err := g.Clients.CoreV1().Pods("app").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Spec.NodeName != "" && pod.Spec.NodeName != "w1" {
			t.Errorf("pod %s is on %s", pod.Name, pod.Spec.NodeName)
		}
	}
}

// every verb that creates a pod, and kubectl's own tools.
func TestX11_EveryWayToCreateAPodIsJudged(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		const node, tolerate = `, "nodeName": "cp1"`, `, "tolerations": [{"operator": "Exists"}]`
		g.refuse(t, map[string]attempt{
			"create":            {[]string{"create", "-f", "-"}, podManifest("a", node), "NodeName"},
			"client-side apply": {[]string{"apply", "-f", "-"}, podManifest("b", node), "NodeName"},
			"server-side apply": {[]string{"apply", "--server-side", "-f", "-"}, podManifest("c", tolerate),
				"Toleration"},
			"replace --force": {[]string{"replace", "--force", "-f", "-"}, podManifest("d", node), "NodeName"},
			"run with overrides": {
				[]string{"run", "e", "--namespace=app", "--image=i", `--overrides={"spec": {"nodeName": "cp1"}}`}, "",
				"NodeName",
			},
			"debug node": {[]string{"debug", "node/cp1", "--namespace=app", "--image=i"}, "", "NodeName"},
			"a node to come": {[]string{"create", "-f", "-"}, podManifest("f", `, "nodeName": "cp2"`),
				"UnknownNode"},
			"a List": {[]string{"create", "-f", "-"}, `{"apiVersion": "v1", "kind": "List", "items": [` +
				podManifest("g", node) + `]}`, "NodeName"},
			"nodeName and gate": {[]string{"create", "-f", "-"},
				podManifest("h",
					`, "schedulingGates": [{"name": "wait"}], "nodeSelector": {"node-role.kubernetes.io/control-plane": ""}`),
				"Selector"},
		})
	})
}

// every kind of patch of a waiting pod, and both paths of a binding in every form that binds.
func TestX11_EveryWayToMoveAWaitingPodIsJudged(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		g.Expect(t, "allow", "alice create pod app/waiting")
		const toleration = `{"key": "node-role.kubernetes.io/master", "operator": "Exists", "effect": "NoSchedule"}`
		patch := func(kind, text string) attempt {
			return attempt{[]string{"patch", "pod", "waiting", "--namespace=app", "--type=" + kind, "--patch=" + text},
				"", "Toleration"}
		}
		bind := func(path, target, want string) attempt {
			return attempt{[]string{"create", "--raw", "/api/v1/namespaces/app/" + path, "-f", "-"},
				bindingManifest(target), want}
		}
		g.refuse(t, map[string]attempt{
			"strategic patch": patch("strategic", `{"spec": {"tolerations": [`+toleration+`]}}`),
			"JSON patch": patch("json", `[{"op": "add", "path": "/spec/tolerations/-", "value": `+
				toleration+`}]`),
			"apply with force": {[]string{"apply", "--server-side", "--force-conflicts", "-f", "-"},
				podManifest("waiting", `, "tolerations": [`+toleration+`]`), "Toleration"},
			"binding":                 bind("pods/waiting/binding", `{"kind": "Node", "name": "cp1"}`, "Binding"),
			"binding without kind":    bind("pods/waiting/binding", `{"name": "cp1"}`, "Binding"),
			"old binding":             bind("bindings", `{"kind": "Node", "name": "cp1"}`, "Binding"),
			"old binding, no kind":    bind("bindings", `{"name": "cp1"}`, "Binding"),
			"binding, a node to come": bind("pods/waiting/binding", `{"name": "cp2"}`, "UnknownNode"),
			"binding, other fields": bind("pods/waiting/binding",
				`{"apiVersion": "v1", "kind": "Node", "name": "cp1", "namespace": "ops", "uid": "x", "fieldPath": "y"}`,
				"Binding"),
		})
	})
}

// what the API server itself refuses, or what places nothing.
func TestX11_WhatPlacesNothingPutsNobodyThere(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		g.Expect(t, "allow", "alice create pod app/waiting")
		// The API server itself refuses all but the writes of the status, which take only what a status may have.
		// What counts is the pod afterwards.
		for name, args := range map[string][]string{
			"nodeName by patch": {"patch", "pod", "waiting", "--namespace=app", "--type=merge",
				`--patch={"spec": {"nodeName": "cp1"}}`},
			"nodeSelector, not gated": {"patch", "pod", "waiting", "--namespace=app", "--type=merge",
				`--patch={"spec": {"nodeSelector": {"kubernetes.io/hostname": "cp1"}}}`},
			"nodeName by the status": {"patch", "pod", "waiting", "--namespace=app", "--subresource=status",
				"--type=merge", `--patch={"spec": {"nodeName": "cp1"}}`},
			"nominatedNodeName": {"patch", "pod", "waiting", "--namespace=app", "--subresource=status",
				"--type=merge", `--patch={"status": {"nominatedNodeName": "cp1"}}`},
			"another scheduler": {"patch", "pod", "waiting", "--namespace=app", "--type=merge",
				`--patch={"spec": {"schedulerName": "mine"}}`},
		} {
			_, err := g.Kubectl(t.Context(), "", as(args...)...)
			if status := strings.Contains(strings.Join(args, " "), "--subresource=status"); (err == nil) != status {
				t.Errorf("%s: %v", name, err)
			}
		}
		pod, err := g.Clients.CoreV1().Pods("app").Get(t.Context(), "waiting", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if pod.Spec.NodeName != "" || len(pod.Spec.NodeSelector) > 0 || pod.Spec.SchedulerName != placing.Nobody {
			t.Errorf("the pod was placed: %+v", pod.Spec)
		}
		g.refuse(t, map[string]attempt{
			"the nominated node": {[]string{"create", "--raw", "/api/v1/namespaces/app/pods/waiting/binding", "-f",
				"-"}, bindingManifest(`{"name": "cp1"}`), "Binding"},
		})
	})
}

// X-11, H18: a mutation of the API server adds the toleration; the pod is judged as it is afterwards.
func TestX11_MutationsComeBeforeTheVerdict(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		const manifests = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: tolerant}
spec:
  failurePolicy: Fail
  reinvocationPolicy: IfNeeded
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: '[JSONPatch{op: "add", path: "/spec/tolerations/-", value: Object.spec.tolerations{key: "node-role.kubernetes.io/master", operator: "Exists"}}]'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: tolerant}
spec: {policyName: tolerant}
`
		if err := g.Apply(t.Context(), manifests); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := g.Kubectl(context.WithoutCancel(t.Context()), manifests, "delete", "-f", "-"); err != nil {
				t.Error(err)
			}
		})
		g.Eventually(t, "deny ControlPlane/Toleration", "alice create pod app/mutated dry-run")
		g.nobodyIsThere(t)
	})
}

// N44, X-11: editors of a namespace may not change the policy.
func TestN44_EditorsCannotChangeTheScheduler(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		g.Set(t, "")
		if _, err := g.Kubectl(t.Context(), "", "create", "rolebinding", "bob", "--clusterrole=admin", "--user=bob",
			"--namespace=app"); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"patch", "schedulers.config.openshift.io", "cluster", "--type=merge",
				`--patch={"spec": {"schedulingGroups": [{"name": "ControlPlane", "mode": "Disable"}]}}`},
			{"delete", "schedulers.config.openshift.io", "cluster"},
			//
			{"patch", "nodeschedulinggroups.scheduling.joiner.sh", "controlplane", "--type=merge",
				`--patch={"spec": {"mode": "Disable"}}`},
			{"delete", "nodeschedulinggroups.scheduling.joiner.sh", "controlplane"},
			{"label", "node", "cp1", "node-role.kubernetes.io/control-plane-"},
			{"taint", "node", "cp1", "node-role.kubernetes.io/master-"},
		} {
			if _, err := g.Kubectl(t.Context(), "", append([]string{"--as=bob"}, args...)...); err == nil ||
				!strings.Contains(err.Error(), "Forbidden") {
				t.Errorf("%v: %v, want a refusal", args, err)
			}
		}
	})
}
