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

// an audit log may bring as many actors as a list has entries, and names that no list takes are left out with a note.
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
	if strings.Count(text, "# - \"user-") != most-1 || strings.Contains(text, "one too many") || len(report.Notes) != 2 ||
		report.Notes[1] != "more than 1000 actors of a group: the others are left out" {
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
	for scheduler, namespace := range map[string]string{"default-scheduler": "openshift-dns", "second": "openshift-etcd"} {
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
