package autonode

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/localcluster/runbook"
)

// shows waits until the operator's metrics have a line.
func (w *world) shows(line string) {
	w.t.Helper()
	name, _, _ := strings.Cut(line, "{")
	w.eventually("the metrics to show "+line, func() (bool, string) {
		lines := w.metric(name)
		return slices.Contains(lines, line), strings.Join(lines, "\n")
	})
}

// the running operator shows every metric that the alerts of its chart ask for. It also shows who must act
// when the policy is not Ready: whoever wrote what cannot be merged, or whoever wrote an invalid policy.
func TestA43_TheOperatorShowsWhatTheAlertsAskFor(t *testing.T) {
	w := begin(t)
	w.policy(restrict(numbered(60, "p")...))
	alerts, err := charts.Alerts(charts.Operator, w.namespace)
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`autonode_[a-z_]+\{`).FindAllString(string(alerts), -1)
	slices.Sort(names)
	if names = slices.Compact(names); len(names) < 7 {
		t.Fatalf("the alerts ask for %q only", names)
	}
	for _, name := range names {
		name = strings.TrimSuffix(name, "{")
		w.eventually("the metric "+name, func() (bool, string) { return len(w.metric(name)) > 0, "" })
	}
	w.shows(`autonode_protected{reason="InForce"} 1`)
	w.shows(`autonode_policy_not_ready{party="Tenant"} 0`)
	w.pool("a45", wants(numbered(60, "u")...))
	w.shows(`autonode_policy_not_ready{party="Tenant"} 1`)
	w.shows(`autonode_policy_not_ready{party="Service"} 0`)
	w.shows(`autonode_wrappers{applied="False",kind="OpenshiftNodePool",party="Tenant"} 1`)
	w.policy(restrict(in(instanceType, "x"), in(instanceType, "y"))) // not valid
	w.shows(`autonode_policy_not_ready{party="Provider"} 1`)
	w.shows(`autonode_policy_not_ready{party="Tenant"} 0`)
	w.policy(restrict(in(instanceType, "x")))
	w.shows(`autonode_policy_not_ready{party="Provider"} 0`)
	w.shows(`autonode_wrappers{applied="True",kind="OpenshiftNodePool",party=""} 1`)
}

// kubectl and the API servers understand every command of the pages about AutoNode.
func TestA44_TheCommandsOfThePagesRun(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(instanceType, "a")))
	w.pool("a44", wants(in(arch, "amd64")))
	w.merged("a44", in(instanceType, "a"), in(arch, "amd64"))
	names := map[string]string{"NAMESPACE": w.namespace, "POOL": "a44", "NAME": "a44"}
	run := 0
	for _, pages := range []string{"runbooks/AutoNode*.md", "upgrade/autonode.md"} {
		commands, err := runbook.Commands("../../../docs/"+pages, names)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range commands {
			run++
			on := w.mgmt
			if command.Guest {
				on = w.guest
			}
			if output, err := on.Kubectl(w.ctx, "", command.Arguments...); !runbook.Fine(output, err) {
				t.Errorf("%s: %v", command.Page, err)
			}
		}
	}
	if run < 25 {
		t.Errorf("only %d commands were run", run)
	}
}
