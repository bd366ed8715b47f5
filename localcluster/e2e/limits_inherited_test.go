package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// L-40: a pool is above its soft limit when Joiner starts, as Karpenter leaves it. Joiner says so, and removes one
// node at a time, as the pool's budget says. A limit that is lowered while Joiner runs waits for no budget.
func TestAnExcessThatIsInheritedGoesWithinBudgets(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const budget = "disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: Never, budgets: [{nodes: '1'}]}"
	r.apply(kwokPool("default", amd64Linux, budget))
	r.apply(deployment("web", 6, "{cpu: '1'}", oneEach("web")))
	r.count(6)
	if err := r.StopJoiner(); err != nil {
		t.Fatal(err)
	}
	r.limit("default", "4", "null")
	if err := r.StartJoiner(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.comesDown(6, 4)
	r.told("NodePool", "default", "NodeLimitExceeded",
		"6 nodes, limit 4 (soft limit): the pool was above the limit when Joiner first saw it, "+
			"so 2 nodes are removed as the disruption budgets allow, not at once")
	r.eventually(soon, "the mark and the condition to go", func(context.Context) (bool, string, error) {
		output := r.run("get", "nodepool", "default", "-o",
			`jsonpath={.metadata.annotations.joiner\.sh/above-limit}{.status.conditions[?(@.type=="NodesWithinLimits")].status}`)
		return output == "", output, nil
	})
	r.run("patch", "nodepool", "default", "--type=merge", "-p", `{"spec":{"disruption":{"budgets":[{"nodes":"0"}]}}}`)
	r.limit("default", "1", "null")
	r.count(1)
}

// comesDown waits until a pool has gone down to its limit. It demands that never more than one node goes at once, and
// none before the pool says why.
func (r *testRig) comesDown(from, to int) {
	r.t.Helper()
	read := func() string { return r.run("get", "nodepool", "default", "-o", "jsonpath={.metadata.annotations}") }
	r.eventually(later, fmt.Sprintf("%d nodes", to), func(ctx context.Context) (bool, string, error) {
		// read twice: on a busy machine it comes, or goes with the last node, between two looks
		mark := read()
		claims, err := r.claims(ctx)
		if err != nil {
			return false, "", err
		}
		going := 0
		for _, c := range claims {
			if c.DeletionTimestamp != nil {
				going++
			}
		}
		mark += read()
		if going > 1 || len(claims) < from && len(claims) > to && !strings.Contains(mark,
			karpenterv1.AboveLimitInherited) {
			r.t.Errorf("%d of %d nodes go at once; the pool says %s", going, len(claims), mark)
		}
		return len(claims) == to && going == 0, fmt.Sprintf("%d claims, %d going", len(claims), going), nil
	})
}

// P-11, D-12: gates set to false switch off what they name, and the objects say so.
func TestGatesThatAreOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *rig.Options) {
		o.Args = append(o.Args, "--feature-gates=NodeOverlay=false,StaticCapacity=false")
	})
	r.apply(kwokPool("static", amd64Linux, quick+"\nreplicas: 2"))
	r.apply(
		"apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: dear}\n" +
			"spec: {price: '99', requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]}")
	r.poolCondition("static", "ReplicasWithinLimits", "False", "StaticCapacity is off")
	r.overlayIs("dear", "False", "NodeOverlay is off")
	r.told("NodePool", "static", "FeatureGateDisabled", "The nodes of the pool are left as they are")
	if names := r.names(); len(names) != 0 {
		t.Errorf("NodeClaims %v, want none", names)
	}
}
