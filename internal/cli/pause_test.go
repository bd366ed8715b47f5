package cli_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// switchIn returns the data of the switch in a namespace, nil where there is none.
func switchIn(t *testing.T, client dynamic.Interface, namespace string) map[string]string {
	t.Helper()
	object, err := client.Resource(configMaps).Namespace(namespace).Get(t.Context(), "joiner-disruption",
		metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	data, _, err := unstructured.NestedStringMap(object.Object, "data")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// unpaused is the cluster of examples/status without its pause.
func unpaused(t *testing.T, replaced ...string) *fake.FakeDynamicClient {
	t.Helper()
	return standing(t, nil, append([]string{"name: joiner-disruption", "name: something-else"}, replaced...)...)
}

func writes(client *fake.FakeDynamicClient) (verbs []string) {
	for _, action := range client.Actions() {
		if !slices.Contains([]string{"get", "list"}, action.GetVerb()) {
			verbs = append(verbs, action.GetVerb()+" "+action.GetResource().Resource)
		}
	}
	return verbs
}

// TestU27_PauseAndResume: pause writes the switch where Joiner reads it, with reason and end. Another pause changes
// it, and resume deletes it. Nothing else is written.
func TestU27_PauseAndResume(t *testing.T) {
	t.Parallel()
	client := unpaused(t)
	before := time.Now()
	code, out, failures := run(t, client, "", "pause", "--reason", "release week", "--for", "2h")
	data := switchIn(t, client, "joiner")
	until, err := time.Parse(time.RFC3339, data["until"])
	if err != nil || until.Before(before.Add(2*time.Hour-time.Second)) || until.After(time.Now().Add(2*time.Hour)) {
		t.Errorf("until %q, %v", data["until"], err)
	}
	want := "paused for 2h, until " + data["until"] + ": \"release week\" (ConfigMap joiner/joiner-disruption)\n" +
		"taken back: nodes that were chosen and not deleted: 0\n" +
		"goes on: nodes that drain: 1; launches, expiration by force, trimming\n"
	if code != cli.CodeFine || failures != "" || out != want || data["paused"] != "true" ||
		data["reason"] != "release week" {
		t.Errorf("exit %d, %q, %v\n%s", code, failures, data, out)
	}
	if code, out, _ := run(t, client, "", "pause"); code != cli.CodeFine || !strings.HasPrefix(out,
		"paused (ConfigMap joiner/") ||
		len(switchIn(t, client, "joiner")) != 1 {
		t.Errorf("again: exit %d, %s, %v", code, out, switchIn(t, client, "joiner"))
	}
	if _, out, _ := run(t, client, "", "status"); !strings.Contains(out, "   disruption paused   ") {
		t.Errorf("status says\n%s", out)
	}
	code, out, _ = run(t, client, "", "resume")
	if code != cli.CodeFine ||
		out != "resumed: disruption goes on within a minute (ConfigMap joiner/joiner-disruption)\n" ||
		switchIn(t, client, "joiner") != nil {
		t.Errorf("resume: exit %d, %s", code, out)
	}
	if code, out, _ := run(t, client, "", "resume"); code != cli.CodeFine ||
		out != "disruption is not paused: there is no ConfigMap joiner/joiner-disruption\n" {
		t.Errorf("resume again: exit %d, %s", code, out)
	}
	if got := writes(client); !slices.Equal(got, []string{"create configmaps", "update configmaps",
		"delete configmaps"}) {
		t.Errorf("it does %v", got)
	}
}

// TestU27_DryRunWritesNothing: and says what would be.
func TestU27_DryRunWritesNothing(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		client *fake.FakeDynamicClient
		args   []string
	}{
		"would be paused (ConfigMap joiner/joiner-disruption)\ntaken back": {
			unpaused(t), []string{"pause", "--dry-run"},
		},
		"would be paused: \"x\" (ConfigMap": {standing(t, nil), []string{"pause",
			"--dry-run", "--reason", "x"}},
		"would be resumed: disruption goes on within a minute (ConfigMap joiner/joiner-disruption)\nthe pause was for: " +
			"\"release week\"\n": {standing(t, nil), []string{"resume", "--dry-run"}},
	} {
		code, out, failures := run(t, c.client, "", c.args...)
		if code != cli.CodeFine || failures != "" || !strings.HasPrefix(out, want) || len(writes(c.client)) > 0 {
			t.Errorf("%v: exit %d, %q, %v\n%s", c.args, code, failures, writes(c.client), out)
		}
	}
}

// TestU27_WhereThePauseIsWritten: in the namespace of Joiner's lease, or of the flag. It is not written if Karpenter
// leads, or if it is not clear who reads it. If nobody reads it now, the output says so.
func TestU27_WhereThePauseIsWritten(t *testing.T) {
	t.Parallel()
	const renewed = `renewTime: "2999-01-01T00:00:00.000000Z"`
	stopped := []string{renewed, `renewTime: "2026-01-01T00:00:00.000000Z"`}
	second := []string{"---\napiVersion: v1\nkind: ConfigMap",
		"---\napiVersion: coordination.k8s.io/v1\nkind: Lease\n" +
			"metadata: {name: karpenter-leader-election, namespace: kube-system}\nspec: {holderIdentity: another_1, " +
			"leaseDurationSeconds: 15, " + renewed + "}\n---\napiVersion: v1\nkind: ConfigMap"}
	for name, c := range map[string]struct {
		client            *fake.FakeDynamicClient
		args              []string
		namespace, out    string
		failures, notHere string
	}{
		"the flag": {client: unpaused(t), args: []string{"--system-namespace", "other"}, namespace: "other"},
		"nobody leads": {client: unpaused(t, stopped...), namespace: "joiner",
			out: "note: nobody leads: nobody reads it now\n"},
		"no lease": {client: unpaused(t, "name: karpenter-leader-election", "name: another"), namespace: "kube-system",
			out: "note: there is no lease karpenter-leader-election: nobody reads it now, unless"},
		"Karpenter": {client: unpaused(t, "app.kubernetes.io/name: joiner", "app.kubernetes.io/name: karpenter"),
			notHere: "joiner",
			failures: "here leads Karpenter (joiner-a, lease joiner/karpenter-leader-election), which does not read " +
				"ConfigMap joiner/"},
		"two lead": {client: unpaused(t, second...), notHere: "kube-system",
			failures: "more than one controller leads (leases joiner/karpenter-leader-election and kube-system/"},
		"two lead, and a flag": {client: unpaused(t, second...), args: []string{"--system-namespace", "joiner"},
			namespace: "joiner"},
		"no time": {client: unpaused(t), args: []string{"--for", "-1h"},
			failures: "--for is -1h0m0s: it must be a second or more",
			notHere:  "joiner"},
	} {
		code, out, failures := run(t, c.client, "", append([]string{"pause"}, c.args...)...)
		if (code == cli.CodeFine) != (c.failures == "") || !strings.Contains(out, c.out) || !strings.Contains(failures,
			c.failures) ||
			c.namespace != "" && switchIn(t, c.client, c.namespace) == nil || c.notHere != "" && switchIn(t, c.client,
			c.notHere) != nil {
			t.Errorf("%s: exit %d, %q, wrote %v\n%s", name, code, failures, writes(c.client), out)
		}
	}
}

// TestU27_PauseNeedsOneConfigMap: the pause is written without any other right, and notes say what could not be read.
// Without the right to write there is one line.
func TestU27_PauseNeedsOneConfigMap(t *testing.T) {
	t.Parallel()
	client := standing(t, []string{"leases", "pods", "nodeclaims", "nodes", "nodepools"}, "name: joiner-disruption",
		"name: other")
	code, out, failures := run(t, client, "", "pause", "-o", "json")
	var answer struct {
		Kind, ConfigMap string
		Paused          bool
		Notes           []string
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || code != cli.CodeFine || failures != "" ||
		answer.Kind != "Pause" ||
		!answer.Paused || answer.ConfigMap != "kube-system/joiner-disruption" || len(answer.Notes) != 2 ||
		switchIn(t, client, "kube-system") == nil {
		t.Errorf("exit %d, %q, %+v, %v", code, failures, answer, err)
	}
	for _, command := range []string{"pause", "resume"} {
		code, out, failures := run(t, standing(t, []string{"configmaps"}), "", command)
		if code != cli.CodeFailed || out != "" || !strings.Contains(failures,
			"ConfigMap joiner/joiner-disruption: configmaps") ||
			strings.Count(failures, "\n") != 1 {
			t.Errorf("%s: exit %d, %q, %q", command, code, out, failures)
		}
	}
}

// TestK27_StatusShowsTheGrace: status shows the grace of the first start as a pause with its end. A pause that is on
// takes precedence, and a grace that is over is not shown.
func TestK27_StatusShowsTheGrace(t *testing.T) {
	t.Parallel()
	takeover :=
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: joiner-takeover, namespace: joiner}\ndata: {until: \"2999-01-01T00:00:00Z\"}\n"
	for manifests, want := range map[string]string{
		takeover: "disruption paused until 2999-01-01T00:00:00Z (after the first start)",
		takeover +
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: joiner-disruption, namespace: joiner}\n" +
			"data: {paused: \"true\", reason: mine}\n": "disruption paused (mine)",
		strings.Replace(takeover, "2999", "2001", 1):                   "",
		strings.Replace(takeover, "until:", "go: \"true\", until:", 1): "",
	} {
		_, out, failures := ran(t, manifests, "status", "-f", "-")
		if failures != "" || want == "" && strings.Contains(out, "disruption paused") || !strings.Contains(out, want) {
			t.Errorf("%s%s: want %q in\n%s", manifests, failures, want, out)
		}
	}
}

// TestU27_SomebodyElseWritesToo: a conflict is tried again.
func TestU27_SomebodyElseWritesToo(t *testing.T) {
	t.Parallel()
	client, conflicts := standing(t, nil), 2
	client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts--; conflicts >= 0 {
			return true, nil, apierrors.NewConflict(configMaps.GroupResource(), "joiner-disruption", nil)
		}
		return false, nil, nil
	})
	code, out, failures := run(t, client, "", "pause", "--reason", "mine")
	if code != cli.CodeFine || switchIn(t, client, "joiner")["reason"] != "mine" {
		t.Errorf("exit %d, %s, %q", code, out, failures)
	}
}

// TestU18_WhatWritesSaysSo: the help of commands that write begins with that, and no other help does.
func TestU18_WhatWritesSaysSo(t *testing.T) {
	t.Parallel()
	for _, command := range [][]string{{"pause"}, {"resume"}, {"migrate", "storage"},
		{"takeover", "adopt-crds"}, {"takeover", "check"}, {"status"}, {"simulate"},
		{"explain", "pod"},
		{"explain", "node"}, {"migrate", "check"}, {"audit", "control-plane"}} {
		writing := slices.Contains([]string{"pause", "resume", "storage", "adopt-crds"}, command[len(command)-1])
		begins := "Writes to the cluster. "
		if command[0] == "takeover" && command[1] == "check" {
			writing, begins = true, "Writes to the cluster with --fix, and never without. "
		}
		_, out, _ := ran(t, "", append(command, "--help")...)
		if strings.HasPrefix(out, begins) != writing || strings.Contains(out, "--dry-run") != writing {
			t.Errorf("%v: %s", command, out)
		}
	}
}

// TestU07_MigrateStorageAsks: it asks on a terminal, and needs --yes without one. Nothing is written before the
// answer.
func TestU07_MigrateStorageAsks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		terminal bool
		in       string
		args     []string
		code     int
		failures string
	}{
		"nobody there": {code: cli.CodeFailed, in: "yes\n",
			failures: "joinerctl: it is to rewrite the objects of this cluster that may be " +
				"stored in v1beta1, and nobody is there to ask: give --yes, or --dry-run"},
		"nobody there, --yes": {args: []string{"--yes"}},
		"a dry run":           {args: []string{"--dry-run"}},
		"yes": {terminal: true, in: "yes\n",
			failures: "Rewrite the objects of this cluster that may be stored in v1beta1? Type yes"},
		"YES": {terminal: true, in: " YES\r\n", failures: "Type yes to go on: "},
		"no": {terminal: true, in: "no\n", code: cli.CodeFailed,
			failures: "to go on: joinerctl: nothing was written\n"},
		"nothing": {terminal: true, in: "\n", code: cli.CodeFailed, failures: "nothing was written"},
		"the end": {terminal: true, code: cli.CodeFailed,
			failures: "to go on: \njoinerctl: nothing was written\n"},
	} {
		client := cluster(t, definition, pool)
		var out, failures bytes.Buffer
		code := cli.Run(t.Context(), cli.Config{Client: func(cli.Connection) (dynamic.Interface, error) {
			return client,
				nil
		},
			In: strings.NewReader(c.in), Out: &out, Err: &failures, InTerminal: c.terminal}, append([]string{"migrate",
			"storage"}, c.args...))
		wrote := len(writes(client)) > 0
		if code != c.code || !strings.Contains(failures.String(), c.failures) || wrote != (c.code == cli.CodeFine &&
			name != "a dry run") {
			t.Errorf("%s: exit %d, wrote %t, %q\n%s", name, code, wrote, failures.String(), out.String())
		}
	}
}

// TestU13_MigrateStorageAsData: JSON and YAML are one document, without the lines that people get as it goes.
func TestU13_MigrateStorageAsData(t *testing.T) {
	t.Parallel()
	for form, unmarshal := range map[string]func([]byte, any) error{"json": json.Unmarshal,
		"yaml": func(data []byte, into any) error { return yaml.Unmarshal(data, into) }} {
		code, out, failures := run(t, cluster(t, definition, pool, held), "", "migrate", "storage", "--yes", "-o",
			form)
		var answer struct {
			APIVersion, Kind string
			Resources        []struct {
				Name      string
				Served    bool
				Rewritten int
				Left      []struct{ Name, Problem string }
			}
		}
		if err := unmarshal([]byte(out), &answer); err != nil || code != cli.CodeFindings || failures != "" ||
			answer.APIVersion != "cli.joiner.sh/v1" || answer.Kind != "StorageMigration" ||
			len(answer.Resources) != 4 {
			t.Fatalf("%s: exit %d, %q, %v\n%s", form, code, failures, err, out)
		}
		pools, classes := answer.Resources[0], answer.Resources[2]
		if pools.Name != "nodepools.karpenter.sh" || pools.Rewritten != 1 || len(pools.Left) != 1 ||
			pools.Left[0].Name != "broken" || pools.Left[0].Problem != "spec.weight is wrong" || !pools.Served ||
			classes.Served {
			t.Errorf("%+v", answer.Resources)
		}
	}
	code, out, failures := run(t, cluster(t, definition, pool), "", "migrate", "storage", "--yes", "-o", "wide")
	if code != cli.CodeFailed || out != "" || !strings.Contains(failures,
		`--output is "wide": it must be text, json or yaml`) {
		t.Errorf("wide: exit %d, %q, %q", code, out, failures)
	}
}
