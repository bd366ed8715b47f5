package e2e

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// quiet lets nodes go a few seconds after their last pod came or went.
const quiet = `disruption:
  consolidateAfter: 5s
  budgets: [{nodes: "100%"}]`

// D-04, D-15: half of the pods go, and the rest is packed onto fewer nodes. The price falls, all pods run, and then
// nothing changes any more.
func TestConsolidationMakesTheClusterCheaper(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, quiet))
	r.apply(deployment("web", 4, "{cpu: '1'}", oneEach("web")))
	r.allRunning(4, soon)
	r.apply(deployment("filler", 12, "{cpu: 800m}", ""))
	r.allRunning(16, soon)
	before := r.price()
	r.run("scale", "deployment", "web", "--replicas=1")
	r.run("scale", "deployment", "filler", "--replicas=3")
	r.eventually(later, "a lower price, all pods running", func(ctx context.Context) (bool, string, error) {
		pods, err := r.pods(ctx)
		running := 0
		for _, pod := range pods {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				running++
			}
		}
		claims, claimsErr := r.claims(ctx)
		if err != nil || claimsErr != nil {
			return false, "", fmt.Errorf("%w %w", err, claimsErr)
		}
		for _, c := range claims {
			if status, _,
				_ := conditionOf(c.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason); status == "True" ||
				c.DeletionTimestamp != nil {
				return false, c.Name + " is going", nil
			}
		}
		return running == 4 && len(pods) == 4 && r.price() < before/2,
			fmt.Sprintf("%d of %d pods run, %.3f/h of %.3f/h", running, len(pods), r.price(), before), nil
	})
	r.told("", "", "ConsolidationApproved", "/h before, ") // of one node, or of the pool when several go
	r.rests()                                              // it may still find something cheaper
	r.allRunning(4, soon)
	r.oneNodePerClaim()
}

// D-06, D-08, D-10: after a change of the template every node is replaced, one at a time, and each replacement comes
// before the removal. A Deployment never has fewer pods than its PodDisruptionBudget demands.
func TestDriftRollsThePool(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, "disruption:\n  consolidateAfter: 1h\n  budgets: [{nodes: \"1\"}]"))
	r.apply(deployment("web", 3, "{cpu: '1'}", oneEach("web")) + guard("web", "minAvailable: 2"))
	r.allRunning(3, soon)
	r.count(3)
	r.run("patch", "nodepool", "default", "--type=merge", "-p",
		`{"spec":{"template":{"metadata":{"labels":{"generation":"two"}}}}}`)
	deadline := time.Now().Add(2 * later)
	for {
		claims, err := r.claims(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		going, old, ready := 0, 0, 0
		for _, c := range claims {
			reason, _, _ := conditionOf(c.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
			status, _, _ := conditionOf(c.Status.Conditions, karpenterv1.ConditionTypeInitialized)
			if c.DeletionTimestamp != nil || reason == "True" {
				going++
			}
			if c.DeletionTimestamp == nil && status == "True" {
				ready++
			}
			if c.Labels["generation"] != "two" {
				old++
			}
		}
		if going > 1 || len(claims) > 4 || ready < 3 {
			t.Fatalf("%d nodes are going, the budget is 1; %d ready ones stay, want 3; %d claims, want 4 at most",
				going, ready, len(claims))
		}
		pods, err := r.pods(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		up := 0
		for _, pod := range pods {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				up++
			}
		}
		if up < 2 {
			t.Fatalf("%d pods run, the PodDisruptionBudget asks for 2", up)
		}
		if old == 0 && len(claims) == 3 && up == 3 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d nodes of %d are of the old template after %s", old, len(claims), 2*later)
		}
		time.Sleep(200 * time.Millisecond)
	}
	r.told("NodeClaim", "", "Drifted", "NodePoolDrifted")
	r.told("NodeClaim", "", "DisruptionTerminating", "Drifted")
	r.oneNodePerClaim()
}

// places returns the node of each pod of an app.
func (r *testRig) places(app string) map[string]string {
	r.t.Helper()
	pods, err := r.pods(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	nodes := map[string]string{}
	for _, pod := range pods {
		if pod.Labels["app"] == app {
			nodes[pod.Name] = pod.Spec.NodeName
		}
	}
	return nodes
}

// D-03: a pool with WhenEmpty gives up empty nodes and keeps those in use, however little that is.
func TestWhenEmptyKeepsNodesInUse(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, quick+"\n  consolidationPolicy: WhenEmpty"))
	r.apply(deployment("web", 3, "{cpu: '1'}", oneEach("web")))
	r.allRunning(3, soon)
	r.apply(deployment("filler", 9, "{cpu: 100m}", ""))
	r.allRunning(12, soon)
	before := r.places("web")
	r.run("scale", "deployment", "filler", "--replicas=1")
	r.allRunning(4, soon)
	r.rests()
	if after := r.places("web"); len(before) != 3 || !maps.Equal(before, after) {
		t.Errorf("the pods ran on %v and run on %v: nodes in use must stay", before, after)
	}
	r.run("delete", "deployment", "web")
	r.eventually(later, "fewer nodes", func(ctx context.Context) (bool, string, error) {
		claims, err := r.claims(ctx)
		return len(claims) == 1, fmt.Sprintf("%d claims", len(claims)), err
	})
}

// B-20: a NodePool with nodes gets an annotation with the overhead of each node. Fewer, larger nodes replace them,
// though their price is not lower. A value that is no number is reported, and the flag's value counts then, no longer
// the old one.
func TestAnOverheadOfNodesMakesThemFewer(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	// spot does not give way to spot
	const onDemand = "\n- {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}"
	r.apply(kwokPool("default", amd64Linux+onDemand, quiet))
	r.apply(deployment("apart", 4, "{cpu: '1'}", oneEach("apart")))
	r.allRunning(4, soon)
	r.apply(deployment("web", 4, "{cpu: '1'}", ""))
	r.allRunning(8, soon)
	r.run("delete", "deployment", "apart") // its pods kept four nodes
	r.eventually(later, "four pods", func(ctx context.Context) (bool, string, error) {
		pods, err := r.pods(ctx)
		return len(pods) == 4, fmt.Sprint(len(pods)), err
	})
	if before := r.names(); len(before) < 2 {
		t.Fatalf("nodes %v: the test wants several", before)
	}
	r.run("annotate", "nodepool", "default", "joiner.sh/node-overhead-price=100")
	r.eventually(later, "one node for all pods", func(ctx context.Context) (bool, string, error) {
		claims, err := r.claims(ctx)
		return len(claims) == 1 && claims[0].DeletionTimestamp == nil, fmt.Sprint(r.names()), err
	})
	r.allRunning(4, soon)
	r.run("annotate", "nodepool", "default", "--overwrite", "joiner.sh/node-overhead-price=much")
	r.told("NodePool", "default", "IgnoredField",
		`annotation joiner.sh/node-overhead-price is "much": want a decimal number of dollars`)
}
