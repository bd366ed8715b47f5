package nodescheduling

import (
	"testing"

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
