package nodescheduling

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
	"github.com/joiner-autoscaler/joiner/localcluster/runbook"
)

// both running doors show every metric that the alerts of the webhook's chart ask for. Only the webhook shows
// those about its certificate and its callers.
func TestA43_TheDoorsShowWhatTheAlertsAskFor(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		alerts, err := charts.Alerts(charts.Webhook, "joiner-webhook")
		if err != nil {
			t.Fatal(err)
		}
		// requests are counted from the first on
		g.Expect(t, "deny ControlPlane/NodeName", "alice create pod app/a node=cp1")
		pattern := `node_scheduling_policy_[a-z_]+\{`
		if g.Door == placingtest.Webhook {
			pattern = `(node_scheduling_policy|joiner_webhook)_[a-z_]+\{`
		}
		names := regexp.MustCompile(pattern).FindAllString(string(alerts), -1)
		slices.Sort(names)
		if names = slices.Compact(names); len(names) < 5 {
			t.Fatalf("the alerts ask for %q only", names)
		}
		for _, name := range names {
			g.sees(t, "# TYPE "+name[:len(name)-1]+" ")
		}
	})
}

// kubectl and the API server understand every command of the pages about control plane nodes.
// TestTheAuditFindsWhatIsLeft tests what is piped into joinerctl.
func TestA44_TheCommandsOfThePagesRun(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		commands, err := runbook.Commands("../../../docs/runbooks/NodeScheduling*.md",
			map[string]string{"NAME": "app", "NODE": "nowhere"})
		if err != nil {
			t.Fatal(err)
		}
		if len(commands) < 20 {
			t.Errorf("only %d commands are on the pages", len(commands))
		}
		for _, command := range commands {
			output, err := g.Kubectl(t.Context(), "", command.Arguments...)
			asks := command.Arguments[0] == "run" // whether the policy has a verdict
			if asks && !strings.Contains(output, "[ControlPlane/UnknownNode]") || !asks && !runbook.Fine(output, err) {
				t.Errorf("%s: %v: %v", command.Page, command.Arguments, err)
			}
		}
	})
}
