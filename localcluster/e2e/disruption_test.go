package e2e

import (
	"testing"
	"time"
)

// quickly removes nodes as soon as nothing runs on them.
const quickly = `disruption:
  consolidateAfter: 0s
  budgets: [{nodes: "100%"}]`

// D-14: one ConfigMap stops voluntary disruption in the whole cluster; without it work goes on.
func TestOneSwitchPausesDisruption(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, quickly))
	r.apply(deployment("web", 2, "{cpu: '1'}", oneEach("web")))
	r.allRunning(2, soon)
	r.run("-n", "kube-system", "create", "configmap", "joiner-disruption", "--from-literal=paused=true", "--from-literal=reason=release week")
	r.run("delete", "deployment", "web")
	r.told("NodePool", "default", "DisruptionPaused", "voluntary disruption is paused by ConfigMap kube-system/joiner-disruption: release week")
	time.Sleep(20 * time.Second)
	if claims, err := r.claims(t.Context()); err != nil || len(claims) != 2 {
		t.Fatalf("%d NodeClaims are left while disruption is paused, want 2 (%v)", len(claims), err)
	}
	r.run("-n", "kube-system", "delete", "configmap", "joiner-disruption")
	r.nothingLeft(later)
}
