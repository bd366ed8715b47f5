package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// D-14: one ConfigMap stops voluntary disruption in the whole cluster; without it work goes on.
func TestOneSwitchPausesDisruption(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, quick))
	r.apply(deployment("web", 2, "{cpu: '1'}", oneEach("web")))
	r.allRunning(2, soon)
	r.status("allowed[?(@.reason=='Empty')].nodes", "2") // D-08
	r.run("-n", "kube-system", "create", "configmap", "joiner-disruption", "--from-literal=paused=true",
		"--from-literal=reason=release week")
	names := r.names()
	r.run("delete", "deployment", "web")
	r.told("NodePool", "default", "DisruptionPaused",
		"voluntary disruption is paused by ConfigMap kube-system/joiner-disruption: release week")
	r.status("paused", "voluntary disruption is paused by ConfigMap kube-system/joiner-disruption: release week")
	r.status("allowed[?(@.reason=='Empty')].nodes", "0")
	r.stay(names, atRest) // without the pause they go within two seconds
	r.run("-n", "kube-system", "delete", "configmap", "joiner-disruption")
	r.nothingLeft(later)
}

// status waits until a field of status.disruption of the NodePool says what it should.
func (r *testRig) status(field, want string) {
	r.t.Helper()
	r.eventually(soon, "status.disruption."+field+" to be "+want, func(context.Context) (bool, string, error) {
		got := r.run("get", "nodepool", "default", "-o", "jsonpath={.status.disruption."+field+"}")
		return got == want, got, nil
	})
}

// D-12, L-14, L-17: a static pool with as many replicas as its hard limit allows rolls all the same: a node goes, then
// its successor comes. There are never three, and never fewer than one.
func TestAStaticPoolAtItsHardLimitRolls(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("fixed", amd64Linux,
		"replicas: 2\nhardLimits: {nodes: 2}\ndisruption:\n  budgets: [{nodes: \"1\"}]"))
	r.eventually(soon, "two initialized nodes", func(ctx context.Context) (bool, string, error) {
		ready, total, _, err := r.initialized(ctx)
		return ready == 2 && total == 2, fmt.Sprintf("%d of %d", ready, total), err
	})
	r.run("patch", "nodepool", "fixed", "--type=merge", "-p",
		`{"spec":{"template":{"metadata":{"labels":{"generation":"two"}}}}}`)
	for deadline := time.Now().Add(later); ; time.Sleep(200 * time.Millisecond) {
		ready, total, rolled, err := r.initialized(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ready < 1 || total > 2 {
			t.Fatalf("%d initialized nodes of %d, want 1 of 2 at least", ready, total)
		}
		if rolled == 2 && ready == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d nodes are of the new template", rolled, total)
		}
	}
	r.told("NodeClaim", "", "DisruptionTerminating", "Drifted")
}

// initialized counts the NodeClaims: those that are initialized and stay, all, and those of the second template.
func (r *testRig) initialized(ctx context.Context) (ready, total, rolled int, err error) {
	claims, err := r.claims(ctx)
	for _, c := range claims {
		if status, _, _ := conditionOf(c.Status.Conditions, karpenterv1.ConditionTypeInitialized); status == "True" &&
			c.DeletionTimestamp == nil {
			ready++
			if c.Labels["generation"] == "two" {
				rolled++
			}
		}
	}
	return ready, len(claims), rolled, err
}

// D-07: if a pool asks for it, its expired nodes are replaced one at a time, and the new node is there before the old
// one goes.
func TestExpirationWithinTheBudgets(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux+"\nexpireAfter: 40s",
		"disruption:\n  consolidateAfter: 1h\n  budgets: [{nodes: \"1\", reasons: [Expired]}]"))
	r.run("annotate", "nodepool", "default", "karpenter.sh/graceful-expiration=true")
	r.apply(deployment("web", 2, "{cpu: '1'}", oneEach("web")))
	r.allRunning(2, soon)
	old := r.names()
	for deadline := time.Now().Add(later); ; time.Sleep(200 * time.Millisecond) {
		ready, total, _, err := r.initialized(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ready < 2 || total > 4 {
			t.Fatalf("%d initialized nodes that stay, of %d; want two at least", ready, total)
		}
		if !slices.ContainsFunc(r.names(), func(name string) bool { return slices.Contains(old, name) }) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nodes %v are still there of %v", r.names(), old)
		}
	}
	r.told("NodeClaim", old[0], "Expired",
		"replaced as soon as the disruption budgets allow: expireAfter 40s has passed")
}
