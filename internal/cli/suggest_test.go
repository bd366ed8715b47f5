package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/admission/suggest"
	"github.com/joiner-autoscaler/joiner/internal/cli"
)

const uses = "node_scheduling_policy_entry_uses_total"

const shopUID = "00000000-0000-0000-0000-000000000001"

// suggesting is a cluster with a pod of the platform and one of a tenant's on the protected node.
func suggesting(withScheduler bool) audited {
	daemons := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "dns", Controller: new(true)}
	dns := podOn("dns-1", "cp1", daemons)
	dns.Namespace = "openshift-dns"
	c := newAudited(nil, protected(), dns, podOn("web", "cp1"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: shopUID}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "batch", UID: shopUID}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-dns"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}})
	c.server.NoScheduler = !withScheduler
	return c
}

// A-41: --suggest writes for the source that the cluster has, and reads logs and metrics. It changes nothing. The exit
// code tells whether something should be added.
func TestA41_TheCommandSuggests(t *testing.T) {
	t.Parallel()
	c := suggesting(true)
	code, stdout, stderr := c.run(t, policy, "--policy-file", "-", "--suggest", "-o", "yaml")
	if code != cli.CodeFindings || stderr != "" || !strings.Contains(stdout, "\nkind: Scheduler\n") ||
		!strings.Contains(stdout, "\n    - \"namespace:openshift-dns\"  # platform: DaemonSet dns\n") ||
		!strings.Contains(stdout, "\n    # - \"namespace:shop@"+shopUID+"\"  # unknown: ") {
		t.Errorf("with Scheduler: exit %d, %s, %s", code, stdout, stderr)
	}
	for _, action := range slices.Concat(c.dynamic.Actions(), c.typed.Actions()) {
		if !slices.Contains([]string{"get", "list"}, action.GetVerb()) {
			t.Errorf("it does %s %s", action.GetVerb(), action.GetResource().Resource)
		}
	}
	const complete = `, "namespace:openshift-dns", "user:system:serviceaccount:kube-system:daemon-set-controller"]`
	listed := strings.Replace(policy, `"system:kube-scheduler"]`, `"system:kube-scheduler"`+complete, 1)
	dir := t.TempDir()
	log, metrics := filepath.Join(dir, "audit.log"), filepath.Join(dir, "metrics")
	for name, content := range map[string]string{
		log: `{"kind": "Event", "apiVersion": "audit.k8s.io/v1", "stage": "ResponseComplete",
			"user": {"username": "system:serviceaccount:batch:second"},
			"objectRef": {"resource": "bindings", "namespace": "openshift-dns"}, "annotations": {
			"nodeschedulingpolicy.scheduling.openshift.io/decision": "inform",
			"nodeschedulingpolicy.scheduling.openshift.io/group": "ControlPlane",
			"nodeschedulingpolicy.scheduling.openshift.io/reason": "Binding"}}`,
		metrics: uses + `{entry="system:kube-scheduler",group="ControlPlane",source="Config"} 2`,
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, stderr = suggesting(false).run(t, listed, "--policy-file", "-", "--suggest", "-o", "json",
		"--audit-log", log, "--metrics-file", metrics)
	var report suggest.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != cli.CodeFine || stderr != "" {
		t.Fatalf("without Scheduler: exit %d, %s, %s, %v", code, stdout, stderr, err)
	}
	var unknown []string
	for _, entry := range report.Groups[0].Entries {
		if entry.Class == suggest.Unknown {
			unknown = append(unknown, entry.Text)
		}
	}
	if want := []string{"namespace:shop@" + shopUID, "user:system:serviceaccount:batch:second@" +
		shopUID}; report.Groups[0].Target != suggest.File || !slices.Equal(unknown, want) {
		t.Errorf("report %+v", report)
	}
	if code, stdout, _ := suggesting(false).run(t, listed, "--policy-file", "-", "--suggest"); code != cli.CodeFine ||
		!strings.Contains(stdout, "Group ControlPlane, entries of File:\n") {
		t.Errorf("as text: exit %d, %s", code, stdout)
	}
}

// what is wrong with a call is said.
func TestA41_ASuggestionThatCannotBeMade(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"--audit-log and --metrics-file are for --suggest":      {"--audit-log", "x"},
		`--output is "xml": it must be table, wide, json, yaml`: {"--suggest", "-o", "xml"},
		"--audit-log: open nowhere":                             {"--suggest", "--audit-log", "nowhere"},
		"--audit-log " + empty + ": event 1: ":                  {"--suggest", "--audit-log", empty},
		"--metrics-file " + empty + ": it has no sample of":     {"--suggest", "--metrics-file", empty},
	} {
		code, stdout, stderr := suggesting(true).run(t, policy, append([]string{"--policy-file", "-"}, args...)...)
		if code != cli.CodeFailed || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit %d, %q, %q; want %q", args, code, stdout, stderr, want)
		}
	}
}
