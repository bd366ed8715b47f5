package nodescheduling

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/deploy"
	"github.com/joiner-autoscaler/joiner/internal/admission/audit"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/placing"
	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	openshiftapi "github.com/joiner-autoscaler/joiner/upstream/openshift-api"
)

// definedWithin is how long a change of Scheduler's definition may take to be seen: docs/control-plane-protection.md
// says 36 seconds, after the API server has published it.
const definedWithin = 60 * time.Second

// toEnable is the page's command for the mode Enable.
const toEnable = `kubectl patch nodeschedulinggroup controlplane --type=merge -p '{"spec":{"mode":"Enable"}}'`

// informing is the policy of the scripts in the mode Inform, so the mode shows whether the live source has one.
var informing = strings.Replace(placing.Policy, "mode: Enable", "mode: Inform", 1)

// on a cluster with OpenShift's present definition, the page's branch for Scheduler has no effect. The other one
// works: Inform, Enable and back, each within five seconds, with entries, and not while Scheduler opens the nodes
// (N70). When the definition gains the field, the source changes once, and the other's entries are no longer counted.
// When it loses the field, the source changes back. All that through both doors.
func TestA18_ALiveSourceThatExistsOnOpenShift(t *testing.T) {
	for _, door := range placingtest.Doors() {
		t.Run(string(door), func(t *testing.T) {
			t.Parallel()
			g := beginWith(t, placingtest.Options{Door: door, Policy: informing, World: placing.Nodes,
				Components: []cluster.Component{cluster.Etcd, cluster.APIServer}})
			g.Eventually(t, "warn ControlPlane/NodeName", dry)
			g.expectSource(t, "None")
			g.openShift(t)
			g.expectSource(t, "NodeSchedulingGroup")
			g.schedulerIsPruned(t)
			g.groupsAreLive(t)
			g.mastersAreOpen(t)
			g.theFieldComesAndGoes(t)
		})
	}
}

// pageBlock returns the block of the user's page that has a text.
func pageBlock(t *testing.T, holds string) string {
	t.Helper()
	content, err := os.ReadFile("../../../docs/control-plane-protection.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile("(?s)```(?:yaml|text)\n(.*?)```").FindAllStringSubmatch(string(content),
		-1) {
		if strings.Contains(found[1], holds) {
			return found[1]
		}
	}
	t.Fatalf("the page has no block with %q", holds)
	return ""
}

// runPage runs a command of a block of the page; text in apostrophes is one argument.
func (g guarded) runPage(t *testing.T, block, begins string) error {
	t.Helper()
	for line := range strings.Lines(block) {
		rest, found := strings.CutPrefix(strings.TrimSpace(line), "kubectl ")
		if !found || !strings.HasPrefix(rest, begins) {
			continue
		}
		var args []string
		for i, part := range strings.Split(rest, "'") {
			if i%2 == 1 {
				args = append(args, part)
				continue
			}
			args = append(args, strings.Fields(part)...)
		}
		_, err := g.Kubectl(t.Context(), "", args...)
		return err
	}
	t.Fatalf("no kubectl %s in\n%s", begins, block)
	return nil
}

// define applies a definition of Scheduler.
func (g guarded) define(t *testing.T, definition func() ([]byte, error)) {
	t.Helper()
	manifest, err := definition()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Apply(t.Context(), string(manifest)); err != nil {
		t.Fatal(err)
	}
	g.must(t, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
}

// openShift installs what OpenShift has today, and what the chart brings.
func (g guarded) openShift(t *testing.T) {
	t.Helper()
	if err := g.InstallGroups(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.define(t, openshiftapi.Disabled)
	eventuallySees(t, "Scheduler", func() (string, error) {
		out, err := g.Kubectl(t.Context(),
			`{"apiVersion": "config.openshift.io/v1", "kind": "Scheduler", "metadata": {"name": "cluster"}, `+
				`"spec": {"mastersSchedulable": false}}`,
			"apply", "--server-side", "-f", "-")
		if err != nil {
			return err.Error(), nil // the kind may not be served yet
		}
		return out, nil
	}, "serverside-applied")
}

// schedulerIsPruned: Scheduler drops unknown fields.
func (g guarded) schedulerIsPruned(t *testing.T) {
	t.Helper()
	const begins = "patch scheduler cluster --type=merge"
	if err := g.runPage(t, strings.ReplaceAll(pageBlock(t, "kubectl "+begins), "Inform", "Enable"),
		begins); err != nil {
		t.Fatal(err)
	}
	if stored := g.must(t, "get", "scheduler", "cluster", "-o", "yaml"); strings.Contains(stored,
		"schedulingGroups") ||
		!strings.Contains(stored, "mastersSchedulable") {
		t.Errorf("stored:\n%s", stored)
	}
	g.throughout(t, "warn ControlPlane/NodeName", dry) // the file holds
}

// groupsAreLive: the page's branch for Joiner's own kind. A restart opens no gap.
func (g guarded) groupsAreLive(t *testing.T) {
	t.Helper()
	manifest, switching := pageBlock(t, "\nkind: NodeSchedulingGroup\n"), pageBlock(t, toEnable)
	g.apply(t, strings.Replace(manifest, "mode: Enable", "mode: Disable", 1))
	g.Eventually(t, "allow", dry)
	g.switches(t, switching, configv1.Inform)
	g.Eventually(t, "warn ControlPlane/NodeName", dry)
	if err := g.runPage(t, switching, "patch nodeschedulinggroup"); err != nil { // as it stands there
		t.Fatal(err)
	}
	g.Eventually(t, "deny ControlPlane/NodeName", dry)
	g.switches(t, switching, configv1.Inform)
	g.Eventually(t, "warn ControlPlane/NodeName", dry)
	g.switches(t, switching, configv1.Disable)
	g.Eventually(t, "allow", dry)
	g.apply(t,
		`{apiVersion: scheduling.joiner.sh/v1alpha1, kind: NodeSchedulingGroup, metadata: {name: controlplane}, `+
			`spec: {name: ControlPlane, mode: Enable, authorizedUsers: [app/default]}}`)
	g.Eventually(t, "deny ControlPlane/NodeName", dry)
	g.Eventually(t, "allow", "system:admin create pod app/- node=cp1 dry-run")
	g.neverPasses(t, g.restartAPIServer(t)) // N60: the schema is not published at once
	if g.Door == placingtest.Webhook {
		g.neverPasses(t, g.judgeAnew(t))
	}
	for object, refusal := range map[string]string{
		`{metadata: {name: other}, spec: {name: ControlPlane}}`: "metadata.name is other: " +
			"there is one object for each group",
		`{metadata: {name: gpu}, spec: {name: Gpu}}`:                               "spec.name is Gpu: it must be ControlPlane",
		`{metadata: {name: controlplane}, spec: {name: ControlPlane, mode: "On"}}`: "spec.mode is On: it must be Disable, Enable or Inform",
	} {
		_, err := g.Kubectl(t.Context(),
			"{apiVersion: scheduling.joiner.sh/v1alpha1, kind: NodeSchedulingGroup, "+object[1:], "apply",
			"--server-side", "--force-conflicts", "-f", "-")
		if err == nil || !strings.Contains(err.Error(), refusal) {
			t.Errorf("%s: %v, want %q", object, err, refusal)
		}
	}
}

func (g guarded) apply(t *testing.T, manifest string) {
	t.Helper()
	if _, err := g.Kubectl(t.Context(), manifest, "apply", "--server-side", "--force-conflicts", "-f",
		"-"); err != nil {
		t.Fatal(err)
	}
}

// switches runs the page's command with another mode.
func (g guarded) switches(t *testing.T, block string, mode configv1.GroupMode) {
	t.Helper()
	if err := g.runPage(t, strings.ReplaceAll(block, "Enable", string(mode)),
		"patch nodeschedulinggroup"); err != nil {
		t.Fatal(err)
	}
}

// mastersAreOpen: the mode cannot become Enable while mastersSchedulable is true. A group with that mode keeps it.
func (g guarded) mastersAreOpen(t *testing.T) {
	t.Helper()
	open := func(value bool) {
		t.Helper()
		g.must(t, "patch", "scheduler", "cluster", "--type=merge",
			fmt.Sprintf(`--patch={"spec": {"mastersSchedulable": %t}}`, value))
	}
	block := pageBlock(t, toEnable)
	open(true)
	g.throughout(t, "deny ControlPlane/NodeName", dry)
	g.must(t, "patch", "nodeschedulinggroup", "controlplane", "--type=merge",
		`--patch={"spec": {"authorizedUsers": ["app/default", "alice"]}}`)
	g.Eventually(t, "allow", dry)
	g.switches(t, block, configv1.Inform)
	err := g.runPage(t, block, "patch nodeschedulinggroup")
	if err == nil || !strings.Contains(err.Error(), "[ControlPlane/MastersSchedulable]") ||
		!strings.Contains(err.Error(), "Set it to false first") {
		t.Errorf("Enable beside mastersSchedulable: %v", err)
	}
	open(false)
	if err := g.runPage(t, block, "patch nodeschedulinggroup"); err != nil {
		t.Errorf("once it is false: %v", err)
	}
	g.Eventually(t, "allow", dry) // alice is listed
	g.Eventually(t, "deny ControlPlane/NodeName", "alice create pod tmp/- node=cp1 dry-run")
}

// theFieldComesAndGoes: the definition gains the field while the door runs, and loses it again.
func (g guarded) theFieldComesAndGoes(t *testing.T) {
	t.Helper()
	const other = "alice create pod tmp/- node=cp1 dry-run"
	before := g.changes(t)
	g.define(t, openshiftapi.Enabled)
	g.EventuallyWithin(t, definedWithin, "warn ControlPlane/NodeName", other) // the file holds: Scheduler says nothing
	g.expectSource(t, "Scheduler")
	if seen := eventuallySees(t, "metrics", func() (string, error) { return g.Metrics(t.Context()) },
		`entry="ops/default"`); strings.Contains(seen, `source="NodeSchedulingGroup"} 1`) ||
		strings.Contains(seen, `group="ControlPlane",source="NodeSchedulingGroup"`) {
		t.Error("entries of the other source are still counted")
	}
	if err := g.Apply(t.Context(), string(deploy.Audit()["audit.yaml"])+"---\n"+binding); err != nil {
		t.Fatal(err)
	}
	if _, report := g.audit(t); report.Live == nil || report.Live.Source != "Scheduler" ||
		len(report.Live.NotCounted) != 1 ||
		report.Live.NotCounted[0] != `NodeSchedulingGroup controlplane: mode "Enable", 2 entries` {
		t.Errorf("the audit says %+v", live(report))
	}
	g.Set(t, configv1.Enable)
	g.Eventually(t, "deny ControlPlane/NodeName", dry) // alice is listed by the other source only
	g.Set(t, configv1.Enable, "alice", "app/default")
	g.Eventually(t, "allow", dry)
	if after := g.changes(t); after != before+1 {
		t.Errorf("the source changed %d times, want once", after-before)
	}
	g.define(t, openshiftapi.Disabled)
	g.EventuallyWithin(t, definedWithin, "deny ControlPlane/NodeName", "alice create pod web/- node=cp1 dry-run")
	g.expectSource(t, "NodeSchedulingGroup")
	if _, report := g.audit(t); report.Live == nil || report.Live.Source != "NodeSchedulingGroup" ||
		len(report.Live.NotCounted) != 0 {
		t.Errorf("the audit says %+v", live(report))
	}
	if after := g.changes(t); after != before+2 {
		t.Errorf("the source changed %d times, want twice", after-before)
	}
}

func live(report audit.Report) audit.Live {
	if report.Live == nil {
		return audit.Live{}
	}
	return *report.Live
}

// changes counts how often the door has reported a change of the source.
func (g guarded) changes(t *testing.T) int {
	t.Helper()
	log, err := os.ReadFile(g.Log())
	if err != nil {
		t.Fatal(err)
	}
	return len(regexp.MustCompile(`live source"?[ ,].*before`).FindAll(log, -1))
}

// expectSource waits until the metric shows a source, and no other.
func (g guarded) expectSource(t *testing.T, want string) {
	t.Helper()
	var wants []string
	for _, source := range []string{"NodeSchedulingGroup", "None", "Scheduler"} { // in the order of the text
		value := 0
		if source == want {
			value = 1
		}
		wants = append(wants, fmt.Sprintf("node_scheduling_policy_live_source{source=%q} %d", source, value))
	}
	eventuallySees(t, "metrics", func() (string, error) { return g.Metrics(t.Context()) }, strings.Join(wants, "\n"))
}
