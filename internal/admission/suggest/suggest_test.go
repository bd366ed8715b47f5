package suggest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/admission/platform"
	"github.com/joiner-autoscaler/joiner/internal/admission/suggest"
	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

const role = "node-role.kubernetes.io/"

// inform is a cluster with a protected node and another one, and with these entries in the file.
func inform(t *testing.T, users string) *schedulingtest.World {
	t.Helper()
	world := schedulingtest.NewWorld()
	run(t, world, "group ControlPlane mode=Inform select="+role+"control-plane= users="+users+
		"\nnode cp1 labels="+role+"control-plane= taints="+role+"master:NoSchedule\nnode w1")
	return world
}

func run(t *testing.T, world *schedulingtest.World, lines string) {
	t.Helper()
	if _, err := world.Run("cluster", false, lines, nil); err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T) platform.List {
	t.Helper()
	all, err := platform.Load()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// collect looks at pods, each a line of the language of scripts.
func collect(t *testing.T, world *schedulingtest.World, target suggest.Target, pods ...string) *suggest.Collector {
	t.Helper()
	collector, err := suggest.New(suggest.Config{Sources: world.Sources, Cluster: world.Cluster(), Platform: list(t),
		Target: func(string) suggest.Target { return target }})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range pods {
		pod, err := schedulingtest.ParsePod(line)
		if err != nil {
			t.Fatal(err)
		}
		if err := collector.Look(pod); err != nil {
			t.Fatal(err)
		}
	}
	return collector
}

// yamlOf is the report as it is applied, and the report.
func yamlOf(t *testing.T, collector *suggest.Collector) (string, suggest.Report) {
	t.Helper()
	report, err := collector.Report()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := report.WriteYAML(&text); err != nil {
		t.Fatal(err)
	}
	return text.String(), report
}

// running are the pods of the whole platform, as they are once they have their node.
func running(t *testing.T) []string {
	t.Helper()
	var pods []string
	for _, row := range list(t).Components {
		for i, way := range row.Pods {
			line := fmt.Sprintf("%s/%s-%d node=cp1", row.Namespace, strings.ToLower(string(way.How)), i)
			switch way.How {
			case platform.Deployment:
				line += " owner=ReplicaSet/own"
			case platform.DaemonSet, platform.Job:
				line += " owner=" + string(way.How) + "/own"
			case platform.Static:
				line += " mirror owner=Node/cp1"
			}
			pods = append(pods, line)
		}
	}
	return pods
}

// tenants are three, of which one is listed, one has nothing to do with the nodes, and one aims at them; and a
// rogue is there.
func tenants() []string {
	return []string{"backup/agent-1 node=cp1 owner=DaemonSet/agent", "shop/web node=w1 owner=ReplicaSet/web",
		"team/greedy tolerate=* owner=StatefulSet/greedy",
		"rogue/miner node=cp1"}
}

// what is suggested for a cluster with the whole platform admits a restart of it and of what was listed, and
// nobody else. Once it is applied, nothing is to be added and the text is the same.
func TestA41_TheSuggestionAdmitsThePlatformAndNoRogue(t *testing.T) {
	t.Parallel()
	world := inform(t, "namespace:backup@"+schedulingtest.NamespaceUID)
	pods := slices.Concat(running(t), tenants())
	text, report := yamlOf(t, collect(t, world, suggest.Scheduler, pods...))
	if report.Complete() {
		t.Fatalf("nothing to add:\n%s", text)
	}
	var scheduler configv1.Scheduler
	if err := yaml.UnmarshalStrict([]byte(text), &scheduler); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	for _, line := range []string{"# - \"namespace:rogue@" + schedulingtest.NamespaceUID +
		"\"  # unknown: pods without a controller",
		"# - \"namespace:team@" + schedulingtest.NamespaceUID + "\"  # unknown: StatefulSet greedy",
		"# group ControlPlane: who creates pods without a controller of namespace rogue is not known: give --audit-log",
		"- \"namespace:openshift-dns\"  # platform: DaemonSet own",
		"- \"system:kube-scheduler\"  # platform: binds pods in "} {
		if !strings.Contains(text, line) {
			t.Errorf("the text lacks %s:\n%s", line, text)
		}
	}
	for _, word := range []string{"shop", "\"alice", "namespace:backup"} { // elsewhere, nobody, in the file
		if strings.Contains(text, word) {
			t.Errorf("the text has %s:\n%s", word, text)
		}
	}
	scheduler.Spec.SchedulingGroups[0].Mode = configv1.Enable
	world.Sources.Scheduler = &scheduler
	for _, row := range list(t).Components {
		for _, step := range row.Replay("again", "cp1") {
			expect(t, world, true, step.Line(step.User))
		}
	}
	expect(t, world, true, "sa:kube-system/daemon-set-controller create pod backup/agent tolerate=* need=name=cp1")
	for _, line := range []string{"rogue create pod rogue/miner node=cp1",
		"sa:kube-system/statefulset-controller create pod team/greedy tolerate=*",
		"rogue create pod openshift-dns/miner node=cp1", "system:kube-scheduler bind rogue/miner to=cp1"} {
		expect(t, world, false, line)
	}
	again, report := yamlOf(t, collect(t, world, suggest.Scheduler, pods...))
	if again != text || !report.Complete() {
		t.Errorf("complete %v, and the second text is\n%s\nnot\n%s", report.Complete(), again, text)
	}
}

func expect(t *testing.T, world *schedulingtest.World, allowed bool, line string) {
	t.Helper()
	asked, err := schedulingtest.ParseRequest(line)
	if err != nil {
		t.Fatal(err)
	}
	if verdict, err := world.Evaluate(asked); err != nil || verdict.Allowed != allowed {
		t.Errorf("%s: allowed %v, %v: %s", line, verdict.Allowed, err, verdict.Message)
	}
}

// passed is an event of an audit log.
func passed(user, groups, resource, subresource, namespace, decision, reason string) string {
	const door = "nodeschedulingpolicy.scheduling.openshift.io/"
	return fmt.Sprintf(
		`{"kind": "Event", "apiVersion": "audit.k8s.io/v1", "stage": "ResponseComplete", "verb": "create",
		"user": {"username": %q, "groups": [%s]}, "responseStatus": {"code": 201},
		"objectRef": {"resource": %q, "subresource": %q, "namespace": %q},
		"annotations": {%q: %q, %q: "ControlPlane", %q: %q}}`+"\n", user, groups, resource, subresource, namespace,
		door+"decision", decision, door+"group", door+"reason", reason)
}

// the audit log says who it was: a scheduler of one's own, people, and nobody whom the API server or the door
// refused. Whoever is not listed is for somebody to decide about, whatever name they log in by.
func TestA41_TheAuditLogTellsWhoItWas(t *testing.T) {
	t.Parallel()
	world := inform(t, "group:admins,bob")
	collector := collect(t, world, suggest.File, "openshift-dns/dns node=cp1 owner=DaemonSet/dns")
	log := passed("system:serviceaccount:batch:second", `"system:serviceaccounts"`, "pods", "binding", "openshift-dns",
		"inform", "Binding") +
		passed("carol", `"admins"`, "pods", "", "openshift-dns", "authorized", "NodeName") +
		passed("dev/dave\n- group:system:authenticated", "", "bindings", "", "tmp", "inform", "Binding") +
		passed("eve", "", "pods", "", "tmp", "deny", "NodeName") + passed("frank", "", "pods", "", "tmp", "override",
		"NodeName") +
		passed("grace", "", "pods", "", "tmp", "inform", "OverrideTampered") +
		strings.Replace(passed("heidi", "", "pods", "", "tmp", "inform", "NodeName"), "201", "400", 1) +
		strings.Replace(passed("ivan", "", "pods", "", "tmp", "inform", "NodeName"), `"verb"`,
			`"requestURI": "/x?dryRun=All", "verb"`, 1) +
		strings.Replace(passed("judy", "", "pods", "", "tmp", "inform", "NodeName"), "ResponseComplete",
			"RequestReceived", 1) +
		strings.Replace(passed("system:admin", "", "pods", "", "openshift-dns", "inform", "NodeName"),
			`"verb": "create"`, `"verb": "patch", "impersonatedUser": {"username": "mallory"}`, 1)
	if err := collector.ReadAuditLog(strings.NewReader(log)); err != nil {
		t.Fatal(err)
	}
	text, report := yamlOf(t, collector)
	for _, line := range []string{
		`# - "user:system:serviceaccount:batch:second@` + schedulingtest.NamespaceUID +
			`"  # unknown: audit log: binds pods in openshift-dns`,
		`- "group:admins"  # known: audit log: creates pods in openshift-dns`,
		`# - "mallory"  # unknown: audit log: changes pods in openshift-dns`,
		"# - \"user:dev/dave\uFFFD- group:system:authenticated\"  # unknown: audit log: binds pods in tmp",
		`- "bob"  # known: listed; pods do not show who needs it`,
	} {
		if !strings.Contains(text, "  "+line+"\n") {
			t.Errorf("the text lacks %s:\n%s", line, text)
		}
	}
	for _, name := range []string{"eve", "frank", "grace", "heidi", "ivan", "judy", "system:admin"} {
		if strings.Contains(text, name) {
			t.Errorf("the text names %s:\n%s", name, text)
		}
	}
	var read struct {
		Groups []struct{ AuthorizedUsers []string }
	}
	if err := yaml.Unmarshal([]byte(text), &read); err != nil || slices.ContainsFunc(read.Groups[0].AuthorizedUsers,
		func(s string) bool { return strings.Contains(s, "dave") }) {
		t.Errorf("%v, %v", read, err)
	}
	if len(report.Groups) != 1 || len(report.Groups[0].Unused) > 0 {
		t.Errorf("unused %+v", report.Groups)
	}
	other := strings.Replace(log, "audit.k8s.io/v1", "events.k8s.io/v1", 1)
	if err := collector.ReadAuditLog(strings.NewReader(other)); err == nil ||
		!strings.Contains(err.Error(), `it is "Event" of "events.k8s.io/v1"`) {
		t.Errorf("events: %v", err)
	}
	list := strings.Replace(log, `"Event"`, `"EventList"`, 1)
	if err := collector.ReadAuditLog(strings.NewReader(list)); err == nil ||
		!strings.Contains(err.Error(), `event 1: it is "EventList" of "audit.k8s.io/v1": it must be an Event`) {
		t.Errorf("a list: %v", err)
	}
	if err := collector.ReadAuditLog(strings.NewReader(log + "nonsense")); err == nil ||
		!strings.Contains(err.Error(), "event 11: ") ||
		!strings.Contains(err.Error(), ", in JSON") {
		t.Errorf("nonsense: %v", err)
	}
}

// entries that nothing needs are named; those of people only where the metrics say that nobody used them.
func TestA41_UnusedEntriesAreNamed(t *testing.T) {
	t.Parallel()
	const entries = "system:kube-scheduler,kube-system/replicaset-controller,kube-system/job-controller," +
		"namespace:gone,old/agent,alice,group:admins,bob"
	world := inform(t, entries)
	run(t, world, "no-namespace gone")
	pods := []string{"openshift-dns/dns node=cp1 owner=ReplicaSet/dns"}
	_, report := yamlOf(t, collect(t, world, suggest.File, pods...))
	if got := report.Groups[0].Unused; !slices.Equal(got, []string{"kube-system/job-controller", "namespace:gone",
		"old/agent"}) {
		t.Errorf("unused: %q", got)
	}
	collector := collect(t, world, suggest.File, pods...)
	const metrics = `# HELP node_scheduling_policy_entry_uses_total x
node_scheduling_policy_entry_uses_total{entry="alice",group="ControlPlane",source="Config"} 0
node_scheduling_policy_entry_uses_total{entry="bob",group="ControlPlane",source="Config"} 3
node_scheduling_policy_entry_uses_total{entry="old/agent",group="ControlPlane",source="Config"} 1e+06
node_scheduling_policy_entry_uses_total{entry="kube-system/job-controller",group="Other",source="Config"} 1
`
	if err := collector.ReadMetrics(strings.NewReader(metrics)); err != nil {
		t.Fatal(err)
	}
	text, report := yamlOf(t, collector)
	if got := report.Groups[0].Unused; !slices.Equal(got, []string{"alice", "kube-system/job-controller",
		"namespace:gone"}) {
		t.Errorf("unused: %q", got)
	}
	for _, line := range []string{`- "alice"  # known: nothing was found that needs it`,
		`- "bob"  # known: used, as the metrics say`} {
		if !strings.Contains(text, line) {
			t.Errorf("the text lacks %s:\n%s", line, text)
		}
	}
	for _, wrong := range []string{"", "up 1\n", `node_scheduling_policy_entry_uses_total{entry="a"} x`,
		`node_scheduling_policy_entry_uses_total{entry="\q"} 1`} {
		if err := collector.ReadMetrics(strings.NewReader(wrong)); err == nil {
			t.Errorf("metrics %q: no error", wrong)
		}
	}
}

// pods of a workload that has none, of a scheduler of one's own and of the emergency override; a controller
// that only unknown namespaces need is for somebody to decide about too.
func TestA41_WhatPodsShowAndWhatNot(t *testing.T) {
	t.Parallel()
	world := inform(t, "system:kube-scheduler")
	run(t, world, "override Enable")
	collector := collect(t, world, suggest.File, "kube-system/proxy node=cp1 owner=DaemonSet/proxy",
		"tmp/debug node=cp1 override=must-gather",
		"ended/pod node=cp1 phase=Succeeded", "lost/set node=cp1 owner=ReplicationController/set")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "pod",
		OwnerReferences: []metav1.OwnerReference{{Kind: "Rollout", Name: "r", Controller: new(true)}}},
		Spec: corev1.PodSpec{NodeName: "cp1", SchedulerName: "second"}}
	if err := collector.Look(pod); err != nil {
		t.Fatal(err)
	}
	asked, err := schedulingtest.ParseRequest("anybody create cronjob openshift-etcd/backup tolerate=* select=" +
		role + "control-plane=")
	if err != nil {
		t.Fatal(err)
	}
	if err := collector.LookAtWorkload(asked.Object, "CronJob"); err != nil {
		t.Fatal(err)
	}
	text, report := yamlOf(t, collector)
	for _, line := range []string{
		`- "namespace:openshift-etcd"  # platform: CronJob backup`,
		`  - "namespace:kube-system"  # known: DaemonSet proxy`,
		`- "user:system:serviceaccount:kube-system:job-controller"  # platform: creates pods of a Job in openshift-etcd`,
		`kube-system:replication-controller"  # unknown: creates pods of a ReplicationController in lost`,
		"the user of the scheduler second, which pods of namespace own ask for, is not known: give --audit-log",
		"# group ControlPlane: who creates Rollout r of namespace own is not known: give --audit-log",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the text lacks %s:\n%s", line, text)
		}
	}
	if strings.Contains(text, "tmp") || strings.Contains(text, "ended") || strings.Contains(text, "etcd-operator") {
		t.Errorf("the text has more than it should:\n%s", text)
	}
	run(t, world, "group ControlPlane select="+role+"control-plane= mode=Inform users=system:kube-scheduler\n"+
		"no-namespace kube-system")
	world.Sources.Config.Groups[0].AuthorizedUsers = append(world.Sources.Config.Groups[0].AuthorizedUsers,
		"user:system:serviceaccount:kube-system:replicaset-controller")
	dangling, _ := yamlOf(t, collect(t, world, suggest.File, "openshift-dns/dns node=cp1 owner=ReplicaSet/dns"))
	if !strings.Contains(dangling, "kube-system:replicaset-controller is listed and authorizes nobody now") ||
		strings.Count(dangling, "- \"user:") != 1 {
		t.Errorf("an entry of a namespace that is gone:\n%s", dangling)
	}
	var plain strings.Builder
	if err := report.WriteText(&plain); err != nil || !strings.Contains(plain.String(),
		"  to decide  unknown   namespace:lost@") ||
		!strings.Contains(plain.String(), "  to add     platform  namespace:openshift-etcd  (CronJob backup)\n") ||
		!strings.Contains(plain.String(), "\nentries are missing: ") {
		t.Errorf("%v:\n%s", err, plain.String())
	}
}
