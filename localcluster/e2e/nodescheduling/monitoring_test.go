package nodescheduling

import (
	"regexp"
	"slices"
	"testing"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
)

// both doors that run show every metric that the alerts of the webhook's chart ask for; those about its certificate and its
// callers the webhook alone.
func TestA43_TheDoorsShowWhatTheAlertsAskFor(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		alerts, err := charts.Alerts(charts.Webhook, "joiner-webhook")
		if err != nil {
			t.Fatal(err)
		}
		g.Expect(t, "deny ControlPlane/NodeName", "alice create pod app/a node=cp1") // requests are counted from the first on
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
