package protection

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/joiner-autoscaler/joiner/api/openshiftconfig/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/placing"
)

// begin returns the guarded cluster without pods and without Scheduler.
func begin(t *testing.T) *fixture {
	t.Helper()
	f, err := sharedFixture()
	if err != nil {
		t.Fatal(err)
	}
	f.clear(t)
	f.eventually(t, "deny ControlPlane/NodeName", "alice create pod app/- node=cp1 dry-run")
	t.Cleanup(func() {
		f.clear(t)
		if t.Failed() {
			if log, err := os.ReadFile(f.webhook.Log()); err == nil {
				t.Logf("the webhook's log:\n%s", log[max(0, len(log)-4000):])
			}
		}
	})
	return f
}

func (f *fixture) clear(t *testing.T) {
	t.Helper()
	if _, err := f.Kubectl(context.WithoutCancel(t.Context()), "", "delete", "pods", "--all", "--all-namespaces", "--force", "--grace-period=0"); err != nil {
		t.Error(err)
	}
	if _, err := f.Kubectl(context.WithoutCancel(t.Context()), "", "delete", "schedulers.config.openshift.io", "--all"); err != nil {
		t.Error(err)
	}
}

// ask sends a request of the script language as the user that it names. What is no answer of the policy fails the test.
func (f *fixture) ask(t *testing.T, line string) string {
	t.Helper()
	admin, err := f.Cluster.RESTConfig("admin")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := placing.Ask(t.Context(), admin, line, placing.People)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// expect sends a line and compares the answer.
func (f *fixture) expect(t *testing.T, want, line string) {
	t.Helper()
	if got := f.ask(t, line); got != want {
		t.Errorf("%s: %s, want %s", line, got, want)
	}
}

// eventually sends a line until the answer is as wanted, within the time that the specification gives.
func (f *fixture) eventually(t *testing.T, want, line string) {
	t.Helper()
	var got string
	for began := time.Now(); time.Since(began) < within; time.Sleep(poll) {
		if got = f.ask(t, line); got == want {
			return
		}
	}
	t.Errorf("%s: still %s after %s, want %s", line, got, within, want)
}

// N13 to N31, N36, N56: pods, as they are created.
func TestPodsThatAreCreated(t *testing.T) {
	f := begin(t)
	for _, c := range placing.Created() {
		f.expect(t, c.Want, c.Line)
	}
	stored := &corev1.PodList{}
	if err := f.Client.List(t.Context(), stored, client.InNamespace("app")); err != nil {
		t.Fatal(err)
	}
	for _, pod := range stored.Items {
		if pod.Spec.NodeName == "cp1" || strings.Contains("n13 n18 n19 n20 n21 n25 n26 n27 n31 n56 n59", pod.Name) {
			t.Errorf("pod %s was denied and is stored", pod.Name)
		}
	}
}

// N45 to N53: both paths of a binding. H7, F8: a pod with the override is bound, and the annotation comes by no other way.
func TestBindings(t *testing.T) {
	f := begin(t)
	for _, name := range []string{"ops/a", "ops/b", "ops/c", "app/a", "app/b"} {
		f.expect(t, "allow", "system:admin create pod "+name)
	}
	f.expect(t, "allow", "system:admin create pod tmp/debug override=must-gather")
	f.expect(t, "deny ControlPlane/OverrideMisused", "alice create pod tmp/mine override=mine")
	for _, c := range placing.Bound() {
		f.expect(t, c.Want, c.Line)
	}
}

// N37 to N39: updates of pods that wait.
func TestPodsThatAreChanged(t *testing.T) {
	f := begin(t)
	f.expect(t, "allow", "alice create pod app/plain")
	f.expect(t, "allow", "alice create pod app/gated gated")
	f.expect(t, "allow", "alice create pod app/bound node=w1")
	for _, c := range placing.Changed() {
		f.expect(t, c.Want, c.Line)
	}
}

// N7, N9, N10, N40 to N43: Scheduler's list and mode are in force within five seconds, without a restart.
func TestSchedulerIsLive(t *testing.T) {
	f := begin(t)
	const line = "alice create pod app/- node=cp1 dry-run"
	set := func(mode configv1.GroupMode, users ...string) { t.Helper(); f.set(t, mode, users...) }
	set("", "alice", "app/default")
	f.eventually(t, "allow", line)
	set("")
	f.eventually(t, "deny ControlPlane/NodeName", line)
	set(configv1.Inform)
	f.eventually(t, "warn ControlPlane/NodeName", line)
	set(configv1.Disable)
	f.eventually(t, "allow", line)
	set(configv1.Enable)
	f.eventually(t, "deny ControlPlane/NodeName", line)
}

// set writes Scheduler.
func (f *fixture) set(t *testing.T, mode configv1.GroupMode, users ...string) {
	t.Helper()
	manifest := fmt.Sprintf("apiVersion: config.openshift.io/v1\nkind: Scheduler\nmetadata: {name: %s}\nspec: {schedulingGroups: [{name: %s, mode: %q, authorizedUsers: [%s]}]}\n",
		configv1.SchedulerName, configv1.ControlPlane, mode, strings.Join(users, ", "))
	if err := f.Apply(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
}

// N40, N66, N67: what Inform lets pass is counted, and is an event about the namespace; a dry run is counted apart, and is no
// event. The webhook has the rights of the user's page and no others.
func TestInformIsCountedAndSeen(t *testing.T) {
	f := begin(t)
	f.set(t, configv1.Inform)
	f.eventually(t, "warn ControlPlane/NodeName", "alice create pod web/- node=cp1 dry-run")
	f.expect(t, "warn ControlPlane/NodeName", "alice create pod app/informed node=cp1")
	const wanted = "app: NodeSchedulingPolicy [ControlPlane/NodeName]: pod \"informed\""
	seen := ""
	for began := time.Now(); time.Since(began) < within && !strings.Contains(seen, wanted); time.Sleep(poll) {
		var err error
		if seen, err = f.Kubectl(t.Context(), "", "get", "events", "--all-namespaces", "--field-selector=reason=NodeSchedulingPolicyInform",
			"-o", "jsonpath={range .items[*]}{.involvedObject.name}: {.message}{end}"); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(seen, wanted) || strings.Contains(seen, "web: ") {
		t.Errorf("events %q, want one with %q and none about namespace web", seen, wanted)
	}
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", f.webhook.MetricsPort))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`decisions_total{decision="inform",dry_run="false",group="ControlPlane",mode="Inform",reason="NodeName",resource="pods"} 1`,
		`decisions_total{decision="inform",dry_run="true",`, `group_mode{group="ControlPlane",mode="Inform"} 1`, `group_mode{group="ControlPlane",mode="Enable"} 0`,
	} {
		if !strings.Contains(string(metrics), "node_scheduling_policy_"+want) {
			t.Errorf("no metric %s", want)
		}
	}
}

// N54, N55, N57: labels of nodes count as they are; a node that is only just there is known.
func TestLabelsOfNodesAreLive(t *testing.T) {
	f := begin(t)
	for i := range 5 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("fresh%d", i), Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}}
		if err := f.Client.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		f.expect(t, "deny ControlPlane/NodeName", "alice create pod app/- node="+node.Name+" dry-run")
		if err := f.Client.Delete(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	const line = "alice create pod app/- node=w1 dry-run"
	f.eventually(t, "allow", line)
	if _, err := f.Kubectl(t.Context(), "", "label", "node", "w1", "node-role.kubernetes.io/control-plane="); err != nil {
		t.Fatal(err)
	}
	f.eventually(t, "deny ControlPlane/NodeName", line)
	if _, err := f.Kubectl(t.Context(), "", "label", "node", "w1", "node-role.kubernetes.io/control-plane-"); err != nil {
		t.Fatal(err)
	}
	f.eventually(t, "allow", line)
}

// N64, N65, H15: what kubectl prints, and what the audit log keeps. The user's page says it in the same words.
func TestWhatUsersAndAuditorsRead(t *testing.T) {
	f := begin(t)
	manifest := `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "said", "namespace": "app"}, "spec": {"nodeName": "cp1", "containers": [{"name": "c", "image": "i"}]}}`
	output, err := f.Kubectl(t.Context(), manifest, "--as=alice", "--as-group="+placing.People, "create", "-f", "-")
	for _, want := range []string{"Error from server (Forbidden)", `pod "said" in namespace "app" is not allowed on the nodes of group "ControlPlane": its nodeName is "cp1"`, `add "alice" and "app/default" to authorizedUsers`} {
		if err == nil || !strings.Contains(output, want) {
			t.Errorf("kubectl says %q, want %q (%v)", output, want, err)
		}
	}
	deployment := `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "app"}, "spec": {"selector": {"matchLabels": {"a": "b"}},
		"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"tolerations": [{"operator": "Exists"}], "containers": [{"name": "c", "image": "i"}]}}}}`
	if output, err := f.Kubectl(t.Context(), deployment, "create", "--dry-run=server", "-f", "-"); err != nil || !strings.Contains(output, `Warning: NodeSchedulingPolicy [ControlPlane/Toleration]: a pod of Deployment "web"`) {
		t.Errorf("kubectl says %q (%v), want a warning", output, err)
	}
	log, err := os.ReadFile(f.Cluster.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"nodeschedulingpolicy.scheduling.openshift.io/decision":"deny"`, `"nodeschedulingpolicy.scheduling.openshift.io/reason":"NodeName"`, `"nodeschedulingpolicy.scheduling.openshift.io/pod-authorized":"false"`} {
		if !strings.Contains(string(log), want) {
			t.Errorf("the audit log does not have %s", want)
		}
	}
}

// The matchConditions of the user's page: while the webhook does not answer, ordinary pods are created and changed, and what
// would have to be judged is refused by the API server itself.
func TestAnOutageStopsOnlyWhatMustBeJudged(t *testing.T) {
	f := begin(t)
	f.expect(t, "allow", "alice create pod app/bound node=w1")
	if err := f.webhook.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"alice create pod app/plain", "alice update pod app/plain -> label=a=b", "alice update pod app/bound -> tolerate=*", "alice create pod app/wish prefer=zone=a"} {
		f.expect(t, "allow", line)
	}
	for _, line := range []string{"alice create pod app/named node=w1", "alice bind app/plain to=w1", "alice bind-legacy app/plain to=w1", "alice create pod app/any tolerate=*",
		"alice create pod app/selects select=zone=a", "alice create pod app/needs need=zone=a", "alice update pod app/plain -> tolerate=dedicated"} {
		f.expect(t, "unanswered", line)
	}
	if err := f.serve(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.eventually(t, "allow", "alice bind app/plain to=w1")
}
