package nodescheduling

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/joiner-autoscaler/joiner/deploy"
	"github.com/joiner-autoscaler/joiner/internal/admission/audit"
	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/placing"
	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

const (
	// auditor is the user who audits, with the rights of deploy/audit.yaml only.
	auditor = "auditor"
	// bystanders is how many pods have nothing wrong: more than a page of a list.
	bystanders = 600
)

// mirror is a static pod as the kubelet of its node shows it.
const mirror = `apiVersion: v1
kind: Pod
metadata:
  name: etcd-cp1
  namespace: app
  annotations: {kubernetes.io/config.mirror: hash}
  ownerReferences: [{apiVersion: v1, kind: Node, name: cp1, uid: %s, controller: true}]
spec: {nodeName: cp1, containers: [{name: etcd, image: etcd}]}
`

// nightly makes pods, but has none yet.
const nightly = `apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: app}
spec:
  schedule: "0 3 * * *"
  jobTemplate: {spec: {template: {spec: {
    restartPolicy: Never, nodeSelector: {node-role.kubernetes.io/control-plane: ""}, containers: [{name: backup, image: backup}]}}}}
`

// H14: a user who may only read finds the pods that came to protected nodes while the mode was Disable, with what to
// do. Authorized and static pods, and those elsewhere, are not found. Once it is done, nothing is left.
func TestTheAuditFindsWhatIsLeft(t *testing.T) {
	g := begin(t)
	g.Set(t, configv1.Disable)
	g.Eventually(t, "allow", dry)
	for _, line := range []string{
		"alice create pod app/there node=cp1 owner=ReplicaSet/gone", "alice create pod app/tolerates tolerate=*",
		"alice create pod app/lost node=cp9",
		"alice create pod app/posing node=cp1 mirror", "alice create pod ops/authorized node=cp1",
		"system:admin create pod tmp/override override=must-gather",
	} {
		g.Expect(t, "allow", line)
	}
	node, err := g.Clients.CoreV1().Nodes().Get(t.Context(), "cp1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Apply(t.Context(), fmt.Sprintf(mirror, node.UID)); err != nil {
		t.Fatal(err)
	}
	if err := g.Apply(t.Context(), nightly); err != nil {
		t.Fatal(err)
	}
	g.crowd(t)
	if err := g.Apply(t.Context(), string(deploy.Audit()["audit.yaml"])+"---\n"+binding); err != nil {
		t.Fatal(err)
	}
	code, report := g.audit(t)
	found := map[string]string{}
	for _, f := range report.Findings {
		if f.Name == "" {
			f.Name = f.Owner.Kind + " " + f.Owner.Name
		}
		found[f.Namespace+"/"+f.Name] = string(f.Class)
	}
	want := map[string]string{
		"app/there": "OnProtectedNode", "app/tolerates": "AimsAtProtectedNode", "app/lost": "OnProtectedNode",
		"app/posing": "OnProtectedNode", "tmp/override": "OverrideWaiting",
		"app/CronJob nightly": "AimsAtProtectedNode",
	}
	if code != cli.CodeFindings || !maps.Equal(found, want) {
		t.Errorf("exit %d, found %v, want %v", code, found, want)
	}
	if group := report.Groups[0]; group.Mode != "Disable" || group.Nodes != 1 || group.Static != 1 ||
		group.Authorized["ops"] != 1 || report.Pods != bystanders+7 {
		t.Errorf("group %+v, %d pods", group, report.Pods)
	}
	if _, err := g.Kubectl(t.Context(), "", "delete", "cronjob", "nightly", "--namespace=app"); err != nil {
		t.Error(err)
	}
	delete(found, "app/CronJob nightly")
	for name := range found {
		namespace, pod, _ := strings.Cut(name, "/")
		if err := g.Clients.CoreV1().Pods(namespace).Delete(t.Context(), pod,
			metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			t.Error(err)
		}
	}
	g.Set(t, configv1.Enable)
	if code, report := g.audit(t); code != cli.CodeFine || report.Groups[0].Mode != "Enable" {
		t.Errorf("exit %d once nothing is left: %+v", code, report)
	}
}

// H7: the mode at a pod's creation does not change who may bring the override. So the override can be trusted when the
// pod is bound.
func TestTheOverrideIsWatchedInEveryMode(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		for _, mode := range []configv1.GroupMode{configv1.Inform, configv1.Disable} {
			g.Set(t, mode)
			let := map[configv1.GroupMode]string{configv1.Inform: "warn ControlPlane/NodeName",
				configv1.Disable: "allow"}[mode]
			g.Eventually(t, let, dry)
			g.Expect(t, "deny ControlPlane/OverrideMisused", "alice create pod tmp/- override=mine")
			g.Expect(t, "allow", "system:admin create pod tmp/"+strings.ToLower(string(mode))+" override=must-gather")
		}
		g.Expect(t, "allow", "alice create pod app/plain")
		g.Expect(t, "deny ControlPlane/OverrideMisused", "alice update pod app/plain -> override=mine")
		// Other subresources are not judged: the API server lets them change no annotation.
		annotation := []byte(`{"metadata":{"annotations":{"` + evaluator.OverrideAnnotation + `":"mine"}}}`)
		for _, subresource := range []string{"resize", "ephemeralcontainers"} {
			pod, err := g.Clients.CoreV1().Pods("app").Patch(t.Context(), "plain", types.StrategicMergePatchType,
				annotation, metav1.PatchOptions{}, subresource)
			if err != nil || pod.Annotations[evaluator.OverrideAnnotation] != "" {
				t.Errorf("%s: %v, annotations %v", subresource, err, pod.Annotations)
			}
		}
	})
}

// H19: the metrics say which entries let somebody pass, and show the others with 0.
func TestUsesOfEntriesAreCounted(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		g.Set(t, "", "backup/agent")
		g.Expect(t, "allow", "system:admin create pod ops/used node=cp1")
		seen := eventuallySees(t, "metrics", func() (string, error) { return g.Metrics(t.Context()) },
			`node_scheduling_policy_entry_uses_total{entry="backup/agent",group="ControlPlane",source="Scheduler"} 0`,
			`node_scheduling_policy_entry_uses_total{entry="ops/default",group="ControlPlane",source="Config"}`)
		if strings.Contains(seen, `entry="ops/default",group="ControlPlane",source="Config"} 0`) {
			t.Error("the entry of ops was used, and has no use")
		}
	})
}

// begin starts an API server of the test's own, where no controller removes lost pods.
func begin(t *testing.T) guarded {
	t.Helper()
	return beginWith(t, placingtest.Options{
		Door: placingtest.Plugin, Policy: placing.Policy, World: placing.Nodes, WithScheduler: true,
		Components: []cluster.Component{cluster.Etcd, cluster.APIServer},
	})
}

const binding = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: joiner-audit}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: joiner-audit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: auditor}]
`

// crowd creates pods that have nothing wrong.
func (g guarded) crowd(t *testing.T) {
	t.Helper()
	pods := g.Clients.CoreV1().Pods("web")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}}
	for range bystanders {
		if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// audit runs joinerctl as the auditor.
func (g guarded) audit(t *testing.T) (code int, report audit.Report) {
	t.Helper()
	config, err := g.Cluster.RESTConfig("admin")
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: auditor}
	// The file of the policy is the server's, with the entry of ops pinned: without its UID it is a finding.
	ops, err := g.Clients.CoreV1().Namespaces().Get(t.Context(), "ops", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pinned := strings.ReplaceAll(placing.Policy, "ops/default", "ops/default@"+string(ops.UID))
	var out, failures bytes.Buffer
	code = cli.Run(t.Context(), cli.Config{
		Client:    func(cli.Connection) (dynamic.Interface, error) { return dynamic.NewForConfig(config) },
		Clientset: func(cli.Connection) (kubernetes.Interface, error) { return kubernetes.NewForConfig(config) },
		In:        strings.NewReader(pinned), Out: &out, Err: &failures,
	}, []string{"audit", "control-plane", "--policy-file", "-", "-o", "json"})
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("exit %d, %s, %s: %v", code, out.String(), failures.String(), err)
	}
	return code, report
}
