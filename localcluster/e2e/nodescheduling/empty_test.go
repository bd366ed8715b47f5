package nodescheduling

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
)

// node adds a node with labels, KEY=VALUE, until the test ends.
func (g guarded) node(t *testing.T, name string, labels ...string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		node.Labels[key] = value
	}
	if err := g.Client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Client.Delete(context.WithoutCancel(t.Context()), node); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

// expectAlone sends a line as its user without groups, with the rights that RBAC gives to that name.
func (g guarded) expectAlone(t *testing.T, want, line string) {
	t.Helper()
	if got, err := g.Ask(t.Context(), line); err != nil || got != want {
		t.Errorf("%s: %s (%v), want %s", line, got, err, want)
	}
}

// N12, N61: without nodes and without the kind Scheduler the server becomes ready, ordinary and static pods come up,
// and the list of the file holds.
func TestN61_AClusterWithoutNodesComesUp(t *testing.T) {
	onEmpty(t, func(t *testing.T, g guarded) {
		g.Expect(t, "allow", "alice create pod app/ordinary")
		g.Expect(t, "allow", "alice create pod app/tolerant tolerate=*")
		g.Expect(t, "allow", "alice create pod app/selects select=role=infra")
		g.Expect(t, "allow", "system:node:cp1 create pod ops/etcd node=cp1 mirror")
		g.Expect(t, "allow", "system:admin create pod ops/admin node=cp1")
		g.Expect(t, "deny Infra/UnknownNode", "alice create pod app/early node=cp1")
		g.node(t, "w1")
		g.Eventually(t, "allow", "system:kube-scheduler bind app/ordinary to=w1")
	})
}

// N3: an empty mode is Disable: the pod passes, and the audit log has nothing about it.
func TestN3_TheEmptyModeIsDisable(t *testing.T) {
	onEmpty(t, func(t *testing.T, g guarded) {
		g.node(t, "cp1", "node-role.kubernetes.io/control-plane=")
		g.Eventually(t, "allow", "alice create pod app/n3 node=cp1")
		log, err := os.ReadFile(g.Cluster.AuditLog())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(log), annotation("group", "ControlPlane")) {
			t.Error("a group without a mode is in the audit log")
		}
	})
}

// N58: In and NotIn choose several nodes of the group with mixed labels. Nodes in two groups belong to both.
func TestN58_ExpressionsChooseTheGroup(t *testing.T) {
	onEmpty(t, func(t *testing.T, g guarded) {
		g.node(t, "infra-1", "role=infra", "zone=a")
		g.node(t, "gpu-1", "role=gpu")
		g.node(t, "edge-1", "role=infra", "zone=edge")
		g.node(t, "other-1", "role=worker")
		g.Eventually(t, "deny Infra/NodeName", "alice create pod app/- node=infra-1 dry-run")
		g.Eventually(t, "deny Infra/Selector", "alice create pod app/- select=role=gpu dry-run")
		g.Eventually(t, "allow", "alice create pod app/- node=edge-1 dry-run")
		g.Eventually(t, "allow", "alice create pod app/- node=other-1 dry-run")
		g.Expect(t, "allow", "alice create pod app/- select=role=infra dry-run") // the edge node fits too
		g.Expect(t, "deny Infra/Selector", "alice create pod app/- select=role=infra need=zone!=edge dry-run")
	})
}

// grants give bob the verb assign, and carol the override, cluster-wide and for both groups: whoever brings the
// annotation is checked in every mode (H7). Namespace app may be on the nodes. Namespace web has its right in that
// namespace only, where it does not count.
const grants = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: pods}
rules: [{apiGroups: [""], resources: [pods, pods/binding], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: pods}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pods}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: carol}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: dave}
%[1]s`

// grant returns a ClusterRole for a verb on the groups, and its binding.
func grant(verb, binding, subject string) string {
	return fmt.Sprintf(`---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: placement-%[1]s}
rules: [{apiGroups: [scheduling.openshift.io], resources: [nodeschedulinggroups], resourceNames: [ControlPlane, Infra], verbs: [%[1]s]}]
---
apiVersion: rbac.authorization.k8s.io/v1
%[2]s
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: placement-%[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, %[3]s}]
`, verb, binding, subject)
}

// RBAC's verbs assign, occupy and override stand for entries of the lists, if the configuration says so. Granted
// within a namespace they do not count.
func TestRBACBesideTheLists(t *testing.T) {
	onEmpty(t, func(t *testing.T, g guarded) {
		g.node(t, "infra-1", "role=infra")
		all := fmt.Sprintf(grants, grant("assign", "kind: ClusterRoleBinding\nmetadata: {name: placement-assign}",
			"kind: User, name: bob")+
			grant("occupy", "kind: ClusterRoleBinding\nmetadata: {name: placement-occupy}",
				"kind: Group, name: 'system:serviceaccounts:app'")+
			grant("override", "kind: ClusterRoleBinding\nmetadata: {name: placement-override}",
				"kind: User, name: carol")+
			grant("occupy", "kind: RoleBinding\nmetadata: {name: placement-occupy, namespace: web}",
				"kind: Group, name: 'system:serviceaccounts:web'"))
		if err := g.Apply(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := g.Kubectl(context.WithoutCancel(t.Context()), all, "delete", "--ignore-not-found", "-f",
				"-"); err != nil {
				t.Error(err)
			}
		})
		eventuallySees(t, "rights",
			func() (string, error) { return g.Ask(t.Context(), "bob create pod app/- node=infra-1 dry-run") }, "allow")
		g.expectAlone(t, "deny Infra/NodeName", "bob create pod web/- node=infra-1 dry-run")
		g.expectAlone(t, "deny Infra/NodeName", "dave create pod app/- node=infra-1 dry-run")
		g.expectAlone(t, "deny Infra/NodeName", "dave create pod ops/- node=infra-1 dry-run")
		g.expectAlone(t, "warn Infra/NodeName", "carol create pod tmp/- node=infra-1 override=must-gather dry-run")
		g.expectAlone(t, "deny Infra/NodeName", "carol create pod tmp/- node=infra-1 dry-run")
		g.expectAlone(t, "deny ControlPlane/OverrideMisused",
			"bob create pod tmp/- node=infra-1 override=must-gather dry-run")
		g.expectAlone(t, "allow", "bob create pod app/waits")
		g.expectAlone(t, "allow", "bob bind app/waits to=infra-1 dry-run")
		g.expectAlone(t, "deny Infra/Binding", "dave bind app/waits to=infra-1 dry-run")
	})
}

// looseScheduler is a definition of the kind that checks nothing.
const looseScheduler = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: schedulers.config.openshift.io, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: config.openshift.io
  names: {kind: Scheduler, listKind: SchedulerList, plural: schedulers, singular: scheduler}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// removeScheduler removes the kind again.
func (g guarded) removeScheduler(t *testing.T) {
	t.Helper()
	if _, err := g.Kubectl(context.WithoutCancel(t.Context()), "", "delete", "crd", "schedulers.config.openshift.io",
		"--ignore-not-found", "--timeout=60s"); err != nil {
		t.Error(err)
	}
}

// N12: the kind Scheduler appears later, counts within five seconds, and goes again.
func TestN12_SchedulerMayComeAndGo(t *testing.T) {
	onEmpty(t, func(t *testing.T, g guarded) {
		g.node(t, "cp1", "node-role.kubernetes.io/control-plane=")
		t.Cleanup(func() { g.removeScheduler(t) })
		g.Eventually(t, "allow", dry)
		if err := g.InstallScheduler(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.Set(t, configv1.Enable)
		g.Eventually(t, "deny ControlPlane/NodeName", dry)
		g.Set(t, configv1.Enable, "alice", "app/default")
		g.Eventually(t, "allow", dry)
		g.Set(t, configv1.Enable)
		g.Eventually(t, "deny ControlPlane/NodeName", dry)
		g.removeScheduler(t)
		g.Eventually(t, "allow", dry)
	})
}

// N69, H11: with somebody else's definition, unknown fields, groups that the file does not have and invalid entries
// have no effect and are counted. Content of wrong types changes nothing while the door runs.
func TestN69_WhatNobodyUnderstandsHasNoEffect(t *testing.T) {
	onEmpty(t, func(t *testing.T, g guarded) {
		g.node(t, "cp1", "node-role.kubernetes.io/control-plane=")
		g.loose(t)
		g.says(t,
			`{"future": {"a": [1]}, "schedulingGroups": [{"name": "ControlPlane", "mode": "Enable", "future": `+
				`true, "authorizedUsers": ["group:"]}, {"name": "Gpu", "mode": "Enable"}]}`)
		g.Eventually(t, "deny ControlPlane/NodeName", dry)
		eventuallySees(t, "metrics", func() (string, error) { return g.Metrics(t.Context()) },
			"node_scheduling_policy_scheduler_ignored_fields 2")
		g.says(t, `{"schedulingGroups": "none"}`)
		g.throughout(t, "deny ControlPlane/NodeName", dry)
		g.Expect(t, "allow", "alice create pod app/ordinary")
		g.says(t, `{"schedulingGroups": [{"name": "ControlPlane", "mode": "Disable"}]}`)
		g.Eventually(t, "allow", dry)
	})
}

// loose installs the definition that checks nothing, until the test ends.
func (g guarded) loose(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { g.removeScheduler(t) })
	if err := g.Apply(t.Context(), looseScheduler); err != nil {
		t.Fatal(err)
	}
	g.must(t, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
}

// says writes Scheduler with any content.
func (g guarded) says(t *testing.T, spec string) {
	t.Helper()
	manifest :=
		`{"apiVersion": "config.openshift.io/v1", "kind": "Scheduler", "metadata": {"name": "cluster"}, "spec": ` +
			spec + `}`
	if _, err := g.Kubectl(t.Context(), manifest, "apply", "--server-side", "--force-conflicts", "--validate=ignore",
		"-f", "-"); err != nil {
		t.Fatal(err)
	}
}
