package nodescheduling

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/localcluster/placing"
	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
)

// sampleScheduler is the design's example of the object.
const sampleScheduler = `apiVersion: config.openshift.io/v1
kind: Scheduler
metadata:
   name: cluster
spec:
   mastersSchedulable: false
   schedulingGroups:
   - name: ControlPlane
     mode: Inform
     authorizedUsers:
     - "system:vendor:xxx-serviceaccount"
     - "system:vendor:yyy-serviceaccount"
`

// N7: the design's own Scheduler, as written. It says Inform.
func TestN7_TheSampleSchedulerIsTaken(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		if err := g.Apply(t.Context(), sampleScheduler); err != nil {
			t.Fatal(err)
		}
		g.Eventually(t, "warn ControlPlane/NodeName", dry)
	})
}

// N7, N9, N10, N40 to N43: Scheduler's list and mode are in force within five seconds, without a restart. An empty
// list takes nothing away. A pod that came while the mode was Disable stays.
func TestSchedulerIsLive(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		g.Expect(t, "allow", "system:admin create pod ops/n9")
		g.Set(t, "", "alice", "app/default")
		g.Eventually(t, "allow", dry)
		g.Set(t, "")
		g.Eventually(t, "deny ControlPlane/NodeName", dry)
		g.Expect(t, "allow", "system:kube-scheduler bind ops/n9 to=cp1")
		g.Set(t, configv1.Inform)
		g.Eventually(t, "warn ControlPlane/NodeName", dry)
		g.Set(t, configv1.Disable)
		g.Eventually(t, "allow", dry)
		g.Expect(t, "allow", "alice create pod app/n43 node=cp1")
		g.Set(t, configv1.Enable)
		g.Eventually(t, "deny ControlPlane/NodeName", dry)
		if err := g.Client.Get(t.Context(), client.ObjectKey{Namespace: "app", Name: "n43"},
			&corev1.Pod{}); err != nil {
			t.Error(err)
		}
	})
}

// N7, H4, H8: every form of an entry, and texts that only look like one.
func TestEntriesOfTheList(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		g.Set(t, "", "app/default", `"group:admins"`, `"user:dev/carol"`, `"system:serviceaccount:web:front"`)
		g.Eventually(t, "allow", placing.Entries()[0].Line)
		g.ExpectAll(t, placing.Entries())
	})
}

// N8, N11, N69 to N71: what may be written into Scheduler. Another name and another group are refused. An old object
// without groups, and one with unknown fields, are valid and change nothing. mastersSchedulable and mode Enable
// exclude each other, and one update may change both.
func TestWhatSchedulerMaySay(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		apply := func(name, spec string) error {
			_, err := g.Kubectl(t.Context(),
				`{"apiVersion": "config.openshift.io/v1", "kind": "Scheduler", "metadata": {"name": "`+name+
					`"}, "spec": `+spec+`}`, "apply", "--validate=ignore", "-f", "-")
			return err
		}
		const enabled, disabled = `[{"name": "ControlPlane", "mode": "Enable"}]`,
			`[{"name": "ControlPlane", "mode": "Disable"}]`
		for _, c := range []struct{ name, spec, refusal string }{
			{"other", `{"schedulingGroups": ` + disabled + `}`, "cluster"},                             // N8
			{"cluster", `{"schedulingGroups": [{"name": "Gpu"}]}`, "ControlPlane"},                     // N11
			{"cluster", `{"mastersSchedulable": true, "schedulingGroups": ` + enabled + `}`, "Enable"}, // N70
			{"cluster", `{"mastersSchedulable": true}`, ""},
			{"cluster", `{"mastersSchedulable": false, "schedulingGroups": ` + enabled + `}`, ""},
			// N71: the advice
			{"cluster", `{"mastersSchedulable": true, "schedulingGroups": ` + enabled + `}`, "mastersSchedulable"},
			{"cluster", `{"mastersSchedulable": true, "schedulingGroups": ` + disabled + `}`, ""},
			{"cluster", `{"mastersSchedulable": false, "somethingNew": {"a": 1}}`, ""}, // N69
		} {
			err := apply(c.name, c.spec)
			if c.refusal == "" && err != nil ||
				c.refusal != "" && (err == nil || !strings.Contains(err.Error(), c.refusal)) {
				t.Errorf("%s %s: %v, want a refusal with %q", c.name, c.spec, err, c.refusal)
			}
		}
		g.Eventually(t, "deny ControlPlane/NodeName", dry) // the last one has no groups: the file holds
	})
}
