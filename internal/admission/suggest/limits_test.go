package suggest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/admission/suggest"
)

// an audit log may bring as many actors as a list has entries, and names that no list takes are left out with a
// note.
func TestA41_AnAuditLogIsBounded(t *testing.T) {
	t.Parallel()
	const most = 1000
	collector := collect(t, inform(t, "system:kube-scheduler"), suggest.File)
	long := strings.Repeat("x", 1025)
	read := func(user string) {
		t.Helper()
		if err := collector.ReadAuditLog(strings.NewReader(passed(user, "", "pods", "", "shop", "inform",
			"NodeName"))); err != nil {
			t.Fatal(err)
		}
	}
	read(long)
	for i := range most - 1 {
		read(fmt.Sprintf("user-%d", i))
	}
	if _, report := yamlOf(t, collector); len(report.Notes) != 1 || !strings.Contains(report.Notes[0],
		long+" is left out: ") ||
		!strings.HasSuffix(report.Notes[0], "it must have at most 1024 bytes") {
		t.Errorf("notes %.3000q", report.Notes)
	}
	read("one too many")
	text, report := yamlOf(t, collector)
	if strings.Count(text, "# - \"user-") != most-1 || strings.Contains(text, "one too many") ||
		len(report.Notes) != 2 || report.Notes[1] != "more than 1000 actors of a group: the others are left out" {
		t.Errorf("notes %.3000q", report.Notes)
	}
}

// broken takes nothing.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

// what could not be written, or not be made, is an error.
func TestA41_FailuresAreErrors(t *testing.T) {
	t.Parallel()
	world := inform(t, "system:kube-scheduler")
	_, report := yamlOf(t, collect(t, world, suggest.File))
	for name, err := range map[string]error{"text": report.WriteText(broken{}), "YAML": report.WriteYAML(broken{}),
		"JSON": report.WriteJSON(broken{})} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	collector := collect(t, world, suggest.File)
	const sample = `node_scheduling_policy_entry_uses_total{entry="a",group="b",source="Config"} 1` + "\n"
	if err := collector.ReadMetrics(strings.NewReader(sample + "# " + strings.Repeat("x", 1<<19) + "\n")); err != nil {
		t.Error(err)
	}
	if err := collector.ReadMetrics(strings.NewReader(sample + "# " + strings.Repeat("x", 1<<21) + "\n")); err == nil {
		t.Error("a line without an end: no error")
	}
	cluster := world.Cluster()
	cluster.Namespace = func(name string) (string, bool, error) {
		if name == "batch" {
			return "", false, errors.New("connection refused")
		}
		return world.Namespace(name)
	}
	collector, err := suggest.New(suggest.Config{Sources: world.Sources, Cluster: cluster, Platform: list(t),
		Target: func(string) suggest.Target { return suggest.File }})
	if err != nil {
		t.Fatal(err)
	}
	event := passed("system:serviceaccount:batch:second", "", "pods", "", "shop", "inform", "NodeName")
	if err := collector.ReadAuditLog(strings.NewReader(event)); err != nil {
		t.Fatal(err)
	}
	if _, err := collector.Report(); err == nil || !strings.Contains(err.Error(),
		"reading namespace batch: connection refused") {
		t.Errorf("a namespace that cannot be read: %v", err)
	}
	for _, part := range []string{`"responseStatus": {"code": 201},`,
		`"objectRef": {"resource": "pods", "subresource": "", "namespace": "shop"},`} {
		less := strings.Replace(event, part, "", 1)
		if err := collector.ReadAuditLog(strings.NewReader(less)); err != nil || less == event {
			t.Errorf("without %s: %v", part, err)
		}
	}
	cluster.Namespace = nil
	blind, err := suggest.New(suggest.Config{Sources: world.Sources, Cluster: cluster, Platform: list(t),
		Target: func(string) suggest.Target { return suggest.File }})
	if err != nil {
		t.Fatal(err)
	}
	answered := strings.Replace(event, `"responseStatus": {"code": 201},`, "", 1)
	if err := blind.ReadAuditLog(strings.NewReader(answered)); err != nil {
		t.Fatal(err)
	}
	if text, _ := yamlOf(t, blind); !strings.Contains(text, "# - \"namespace:shop\"  # unknown") {
		t.Errorf("without the port to namespaces:\n%s", text)
	}
	none := inform(t, "")
	none.Sources.Config.Groups = none.Sources.Config.Groups[:0]
	_, report = yamlOf(t, collect(t, none, suggest.File))
	var text strings.Builder
	if err := report.WriteJSON(&text); err != nil || !strings.Contains(text.String(), `"groups": []`) {
		t.Errorf("without groups: %v, %s", err, text.String())
	}
	world.Sources.Config.Groups[0].LabelSelector = metav1.LabelSelector{}
	if _, err := suggest.New(suggest.Config{Sources: world.Sources, Cluster: world.Cluster()}); err == nil {
		t.Error("a group of all nodes: no error")
	}
	world = inform(t, "no/one@wrong")
	if _, err := suggest.New(suggest.Config{Sources: world.Sources, Cluster: world.Cluster()}); err == nil {
		t.Error("an entry that cannot be read: no error")
	}
}

// the API server writes the name of its own scheduler into every pod. Pods of another one are not bound by it.
func TestA41_WhoBindsIsTheScheduler(t *testing.T) {
	t.Parallel()
	collector := collect(t, inform(t, ""), suggest.File)
	for scheduler, namespace := range map[string]string{"default-scheduler": "openshift-dns",
		"second": "openshift-etcd"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod"}}
		pod.Spec.NodeName, pod.Spec.SchedulerName = "cp1", scheduler
		if err := collector.Look(pod); err != nil {
			t.Fatal(err)
		}
	}
	text, report := yamlOf(t, collector)
	notes := strings.Join(report.Notes, "\n")
	if !strings.Contains(text, "# platform: binds pods in openshift-dns\n") ||
		strings.Contains(notes, "scheduler default-scheduler") ||
		!strings.Contains(notes, "scheduler second, which pods of namespace openshift-etcd ask for") {
		t.Errorf("%s", text)
	}
}
