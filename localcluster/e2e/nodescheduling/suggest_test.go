package nodescheduling

import (
	"bytes"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/joiner-autoscaler/joiner/deploy"
	"github.com/joiner-autoscaler/joiner/internal/admission/platform"
	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/placing"
	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
)

// unlisted is a policy that lists nobody.
const unlisted = `apiVersion: scheduling.openshift.io/v1alpha1
kind: NodeSchedulingPolicyConfig
groups:
- name: ControlPlane
  labelSelector: {matchLabels: {node-role.kubernetes.io/control-plane: ""}}
  authorizedUsers: []
`

// in the mode Inform everything runs: the whole platform, three tenants of which one is listed, a rogue, and
// somebody's own scheduler. A user who may only read gets a suggestion, and it is enough for the mode Enable: the
// platform and the listed tenant come back, the others do not. Once it is applied, the same call suggests the same.
// The scheduler is found in the audit log, and binds once somebody accepts its entry.
func TestA41_WhatIsSuggestedIsEnoughForEnable(t *testing.T) {
	list, err := platform.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, door := range placingtest.Doors() {
		t.Run(string(door), func(t *testing.T) {
			t.Parallel()
			g := beginWith(t, placingtest.Options{Door: door, Policy: unlisted, World: placing.Nodes +
				namespaces(list), WithScheduler: true,
				Components: []cluster.Component{cluster.Etcd, cluster.APIServer}})
			g.informed(t, list)
			code, first := g.suggest(t)
			for _, entry := range []string{"namespace:app@", "namespace:tmp@", "alice",
				"user:system:serviceaccount:batch:second@"} {
				if !strings.Contains(first, "\n    # - \""+entry) || strings.Contains(first, "\n    - \""+entry) {
					t.Errorf("%s is not a comment:\n%s", entry, first)
				}
			}
			if code != cli.CodeFindings || strings.Contains(first, "namespace:web") {
				t.Errorf("exit %d:\n%s", code, first)
			}
			g.take(t, first)
			g.must(t, "patch", "scheduler", configv1.SchedulerName, "--type=json",
				`--patch=[{"op": "add", "path": "/spec/schedulingGroups/0/mode", "value": "Enable"}]`)
			g.Eventually(t, "deny ControlPlane/NodeName", dry)
			g.platform(t, list, "again")
			g.Expect(t, "allow",
				"sa:kube-system/daemon-set-controller create pod ops/again tolerate=* need=name=cp1 owner=DaemonSet/agent")
			g.Expect(t, "allow", "system:kube-scheduler bind ops/again to=cp1")
			g.Expect(t, "deny ControlPlane/NodeName", "alice create pod tmp/again node=cp1")
			g.Expect(t, "deny ControlPlane/Toleration",
				"sa:kube-system/statefulset-controller create pod app/again tolerate=* owner=StatefulSet/greedy")
			g.Expect(t, "deny ControlPlane/Binding", "sa:batch/second bind openshift-dns/second to=cp1")
			code, second := g.suggest(t)
			if code != cli.CodeFine || second != first {
				t.Errorf("exit %d the second time:\n%s\nand not\n%s", code, second, first)
			}
			g.take(t, strings.Replace(second, "\n    # - \"user:system:serviceaccount:batch:second",
				"\n    - \"user:system:serviceaccount:batch:second", 1))
			g.Eventually(t, "allow", "sa:batch/second bind openshift-dns/second to=cp1")
		})
	}
}

// informed fills a cluster in the mode Inform with everybody.
func (g guarded) informed(t *testing.T, list platform.List) {
	t.Helper()
	if err := g.Apply(t.Context(), accounts(list)+string(deploy.Audit()["audit.yaml"])+"---\n"+binding); err != nil {
		t.Fatal(err)
	}
	ops, err := g.Clients.CoreV1().Namespaces().Get(t.Context(), "ops", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g.Set(t, configv1.Inform, "namespace:ops@"+string(ops.UID))
	g.Eventually(t, "warn ControlPlane/NodeName", dry)
	for _, row := range list.Components {
		for _, step := range row.Replay("first", "cp1") {
			line := step.Line(step.User)
			want := "warn"
			if strings.HasSuffix(line, " mirror") {
				want = "allow"
			}
			if answer, err := g.Ask(t.Context(), line, placing.People); err != nil ||
				!strings.HasPrefix(answer, want) {
				t.Errorf("%s: %s, %v, want %s", line, answer, err, want)
			}
		}
	}
	for _, line := range []string{
		"sa:kube-system/daemon-set-controller create pod ops/agent tolerate=* need=name=cp1 owner=DaemonSet/agent",
		"system:kube-scheduler bind ops/agent to=cp1",
		"sa:kube-system/statefulset-controller create pod app/greedy tolerate=* owner=StatefulSet/greedy",
		"alice create pod web/web node=w1",
		"alice create pod tmp/miner node=cp1", "system:admin create pod openshift-dns/first-second",
		"system:admin create pod openshift-dns/second",
		"sa:batch/second bind openshift-dns/first-second to=cp1",
	} {
		if answer, err := g.Ask(t.Context(), line, placing.People); err != nil || strings.HasPrefix(answer, "deny") {
			t.Errorf("%s: %s, %v", line, answer, err)
		}
	}
}

// take applies a suggestion.
func (g guarded) take(t *testing.T, text string) {
	t.Helper()
	if _, err := g.Kubectl(t.Context(), text, "apply", "--server-side", "--field-manager=joinerctl", "-f",
		"-"); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
}

// suggest runs joinerctl as the auditor, with the audit log of the API server.
func (g guarded) suggest(t *testing.T) (code int, text string) {
	t.Helper()
	config, err := g.Cluster.RESTConfig("admin")
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: auditor}
	var out, failures bytes.Buffer
	code = cli.Run(t.Context(), cli.Config{
		Client:    func(cli.Connection) (dynamic.Interface, error) { return dynamic.NewForConfig(config) },
		Clientset: func(cli.Connection) (kubernetes.Interface, error) { return kubernetes.NewForConfig(config) },
		In:        strings.NewReader(unlisted), Out: &out, Err: &failures,
	}, []string{"audit", "control-plane", "--policy-file", "-", "--suggest", "-o", "yaml", "--audit-log",
		g.Cluster.AuditLog()})
	if failures.Len() > 0 {
		t.Fatalf("exit %d: %s", code, failures.String())
	}
	return code, out.String()
}
