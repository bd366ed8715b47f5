package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// P-32, D-10: kill -9 in the middle of a scale-up and of a scale-down. After the restart the end is the same: every
// pod runs, every claim has exactly one instance, and nothing is left when the work is gone.
func TestKilledInTheMiddle(t *testing.T) {
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, quick))
	const pods = 60
	r.apply(deployment("apart", pods, "{cpu: 500m}",
		"affinity:\n  podAntiAffinity:\n    requiredDuringSchedulingIgnoredDuringExecution:\n"+
			"    - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: apart}}}"))
	// Kill when the first claims appear, and again some moments into it: before launches, between them, after them.
	for i, pause := range []time.Duration{0, 150 * time.Millisecond, 400 * time.Millisecond} {
		r.eventually(soon, "claims that are not all initialized", func(ctx context.Context) (bool, string, error) {
			claims, err := r.claims(ctx)
			return len(claims) > 0, fmt.Sprintf("%d claims", len(claims)), err
		})
		time.Sleep(pause)
		r.kill(fmt.Sprintf("scale-up, kill %d", i+1))
	}
	r.allRunning(pods, later)
	r.settled(pods)
	r.oneNodePerClaim()

	r.run("scale", "deployment", "apart", "--replicas=0")
	for i, pause := range []time.Duration{0, 200 * time.Millisecond, 600 * time.Millisecond} {
		r.eventually(soon, "claims on their way out", func(ctx context.Context) (bool, string, error) {
			claims, err := r.claims(ctx)
			going := 0
			for _, claim := range claims {
				if status, _, _ := conditionOf(claim.Status.Conditions,
					karpenterv1.ConditionTypeDisruptionReason); status == "True" || claim.DeletionTimestamp != nil {
					going++
				}
			}
			return going > 0 || len(claims) == 0, fmt.Sprintf("%d of %d go", going, len(claims)), err
		})
		time.Sleep(pause)
		r.kill(fmt.Sprintf("scale-down, kill %d", i+1))
	}
	r.nothingLeft(later)
}

// kill ends joiner as a crash would, and starts it again.
func (r *testRig) kill(when string) {
	r.t.Helper()
	if err := r.KillJoiner(); err != nil {
		r.t.Fatal(err)
	}
	claims, err := r.claims(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	launched, initialized := 0, 0
	for _, claim := range claims {
		if status, _, _ := conditionOf(claim.Status.Conditions, karpenterv1.ConditionTypeLaunched); status == "True" {
			launched++
		}
		if status, _,
			_ := conditionOf(claim.Status.Conditions, karpenterv1.ConditionTypeInitialized); status == "True" {
			initialized++
		}
	}
	r.t.Logf("%s: killed with %d claims, %d launched, %d initialized", when, len(claims), launched, initialized)
	if err := r.StartJoiner(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// settled waits until there are exactly n claims, all Ready: claims that a crash left over are removed.
func (r *testRig) settled(n int) {
	r.t.Helper()
	r.eventually(later, fmt.Sprintf("%d Ready claims", n), func(ctx context.Context) (bool, string, error) {
		claims, err := r.claims(ctx)
		ready := 0
		for _, claim := range claims {
			if status, _, _ := conditionOf(claim.Status.Conditions, karpenterv1.ConditionTypeReady); status == "True" {
				ready++
			}
		}
		return ready == n && len(claims) == n, fmt.Sprintf("%d of %d claims are Ready", ready, len(claims)), err
	})
}
