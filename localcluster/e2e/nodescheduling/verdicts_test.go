package nodescheduling

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	configv1 "github.com/joiner-autoscaler/joiner/api/openshiftconfig/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/placing"
)

// N13 to N31, N36, N56, N59: pods, as they are created.
func TestPodsThatAreCreated(t *testing.T) {
	g := begin(t, bare)
	for _, c := range placing.Created() {
		g.expect(t, c.Want, c.Line)
	}
	g.expect(t, "allow", "system:node:cp1 create pod app/n59-own node=cp1 mirror")
	g.expect(t, "deny ControlPlane/NodeName", "system:node:w1 create pod app/n59-other node=cp1 mirror")
}

// N45 to N53, H7, F1, F2, F8: both paths of a binding.
func TestBindings(t *testing.T) {
	g := begin(t, bare)
	for _, name := range []string{"ops/a", "ops/b", "ops/c", "app/a", "app/b"} {
		g.expect(t, "allow", "system:admin create pod "+name)
	}
	g.expect(t, "allow", "system:admin create pod tmp/debug override=must-gather")
	g.expect(t, "deny ControlPlane/OverrideMisused", "alice create pod tmp/mine override=mine")
	for _, c := range placing.Bound() {
		g.expect(t, c.Want, c.Line)
	}
}

// N37 to N39: updates of pods that wait.
func TestPodsThatAreChanged(t *testing.T) {
	g := begin(t, bare)
	g.expect(t, "allow", "alice create pod app/plain")
	g.expect(t, "allow", "alice create pod app/gated gated")
	g.expect(t, "allow", "alice create pod app/bound node=w1")
	for _, c := range placing.Changed() {
		g.expect(t, c.Want, c.Line)
	}
}

// N7, N9, N10, N40 to N43: Scheduler's list and mode are in force within five seconds, without a restart.
func TestSchedulerIsLive(t *testing.T) {
	g := begin(t, bare)
	const line = "alice create pod app/- node=cp1 dry-run"
	g.set(t, "", "alice", "app/default")
	g.eventually(t, "allow", line)
	g.set(t, "")
	g.eventually(t, "deny ControlPlane/NodeName", line)
	g.set(t, configv1.Inform)
	g.eventually(t, "warn ControlPlane/NodeName", line)
	g.set(t, configv1.Disable)
	g.eventually(t, "allow", line)
	g.set(t, configv1.Enable)
	g.eventually(t, "deny ControlPlane/NodeName", line)
}

// N54, N55: labels of nodes count as they are.
func TestLabelsOfNodesAreLive(t *testing.T) {
	g := begin(t, bare)
	const line = "alice create pod app/- node=w1 dry-run"
	g.expect(t, "allow", line)
	if _, err := g.kubectl(t.Context(), "", "label", "node", "w1", "node-role.kubernetes.io/control-plane="); err != nil {
		t.Fatal(err)
	}
	g.eventually(t, "deny ControlPlane/NodeName", line)
	if _, err := g.kubectl(t.Context(), "", "label", "node", "w1", "node-role.kubernetes.io/control-plane-"); err != nil {
		t.Fatal(err)
	}
	g.eventually(t, "allow", line)
}

// N65, N66, N67: what the audit log keeps, what the server's own metrics count, and the event of mode Inform.
func TestWhatAuditorsAndMetricsSee(t *testing.T) {
	g := begin(t, bare)
	g.expect(t, "deny ControlPlane/NodeName", "alice create pod app/audited node=cp1")
	g.set(t, configv1.Inform)
	g.eventually(t, "warn ControlPlane/NodeName", "alice create pod web/- node=cp1 dry-run")
	g.expect(t, "warn ControlPlane/NodeName", "alice create pod app/informed node=cp1")
	for what, look := range map[string]struct {
		read  func() (string, error)
		wants []string
	}{
		"audit log": {func() (string, error) {
			log, err := os.ReadFile(filepath.Join(g.Dir(), "audit.log"))
			return string(log), err
		}, []string{
			`"nodeschedulingpolicy.scheduling.openshift.io/decision":"deny"`, `"nodeschedulingpolicy.scheduling.openshift.io/decision":"inform"`,
			`"nodeschedulingpolicy.scheduling.openshift.io/actor-authorized":"false"`, `"nodeschedulingpolicy.scheduling.openshift.io/reason":"NodeName"`,
		}},
		"metrics": {func() (string, error) { return g.kubectl(t.Context(), "", "get", "--raw", "/metrics") }, []string{
			`node_scheduling_policy_decisions_total{decision="deny",dry_run="false",group="ControlPlane",mode="Enable",reason="NodeName",resource="pods"}`,
			`node_scheduling_policy_decisions_total{decision="inform",dry_run="true",group="ControlPlane",mode="Inform",reason="NodeName",resource="pods"}`,
			`node_scheduling_policy_group_mode{group="ControlPlane",mode="Inform"} 1`,
		}},
		"events": {func() (string, error) {
			return g.kubectl(t.Context(), "", "get", "events", "--all-namespaces", "-o", `jsonpath={range .items[*]}{.involvedObject.name} {.reason} {.message}{"\n"}{end}`)
		}, []string{`app NodeSchedulingPolicyInform NodeSchedulingPolicy [ControlPlane/NodeName]: pod "informed"`}},
	} {
		var seen string
		missing := look.wants
		for began := time.Now(); time.Since(began) < within && len(missing) > 0; time.Sleep(poll) {
			var err error
			if seen, err = look.read(); err != nil {
				t.Fatal(err)
			}
			for len(missing) > 0 && strings.Contains(seen, missing[0]) {
				missing = missing[1:]
			}
		}
		if len(missing) > 0 {
			t.Errorf("%s: no %s", what, missing[0])
		}
		if strings.Contains(seen, "web NodeSchedulingPolicyInform") {
			t.Errorf("%s: a dry run made an event", what)
		}
	}
}
