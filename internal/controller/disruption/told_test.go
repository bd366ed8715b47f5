package disruption

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// D-01: each node of a begun command is reported, with the command's cost before and after and its launches. Unmarked
// nodes are not, and unknown prices count as nothing.
func TestWhatIsToldOfACommand(t *testing.T) {
	t.Parallel()
	remove := func(claim string, price resources.Money) plan.Remove {
		return plan.Remove{Claim: claim, Reason: plan.Drifted, Price: price}
	}
	launch := plan.Launch{Pool: "default", Replaces: []string{"a", "b"}}
	launch.Cheapest.Type, launch.Cheapest.Price = "m", 2_000_000
	p := plan.Plan{Launches: []plan.Launch{launch}, Removes: []plan.Remove{
		remove("unmarked", 9_000_000), remove("a", 4_000_000), remove("c", resources.Unpriced), remove("b", 1_000_000),
	}}
	tape := &controllertest.Tape{}
	registry := prometheus.NewRegistry()
	New(Config{Events: tape, Metrics: metrics.New(registry)}).reportCommands(round{
		snapshot: cluster.New(cluster.Snapshot{}),
	}, p,
		apply.Outcome{Marked: []string{"a", "b", "c"}})
	together :=
		" DisruptionLaunching: The node is to go: Drifted: 5.000/h before, 2.000/h after, once default/m is there"
	want := []string{"a" + together, "b" + together,
		"c DisruptionLaunching: The node is to go: Drifted: an unknown price before, 0.000/h after"}
	if said := tape.Said(); !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
	counted := map[string]float64{"replace drifted ": 1, "delete drifted ": 1}
	if got := decisions(t, registry); !maps.Equal(got, counted) {
		t.Errorf("decisions %v, want %v", got, counted)
	}
}

// U-15: what nodes cost is told with what is not known of it.
func TestABillSaysWhatIsUnknown(t *testing.T) {
	t.Parallel()
	for want, prices := range map[string][]resources.Money{
		"0.000/h": nil, "0.003/h": {1000, 2000}, "an unknown price": {resources.Unpriced, resources.MaxPrice},
		"0.001/h and an unknown price": {resources.Unpriced, 1000},
	} {
		var b bill
		for _, price := range prices {
			b.add(price)
		}
		if got := b.perHour(); got != want {
			t.Errorf("%v: %q, want %q", prices, got, want)
		}
	}
}

// decisions are the commands that were counted, by decision, reason and type.
func decisions(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			if family.GetName() != "karpenter_voluntary_disruption_decisions_total" {
				continue
			}
			has := map[string]string{}
			for _, label := range metric.Label {
				has[label.GetName()] = label.GetValue()
			}
			all[has["decision"]+" "+has["reason"]+" "+has["consolidation_type"]] = metric.Counter.GetValue()
		}
	}
	return all
}

// K-16: nodes that go because that is cheaper are candidates first, each with the price before and after and its
// replacement, and approved once marked. A single node is reported itself; for several together the pool is told.
// K-08: the command counts once.
func TestK16_AMoveIsToldWithItsPrices(t *testing.T) {
	t.Parallel()
	registry, tape := prometheus.NewRegistry(), &controllertest.Tape{}
	c := New(Config{Events: tape, Metrics: metrics.New(registry)})
	launch := plan.Launch{Pool: "default", Replaces: []string{"a", "b"}}
	launch.Cheapest.Type, launch.Cheapest.Price = "m", 2_000_000
	p := plan.Plan{Launches: []plan.Launch{launch}}
	for _, claim := range launch.Replaces {
		p.Removes = append(p.Removes, plan.Remove{Claim: claim, Node: "node-" + claim, Pool: "default",
			Reason: plan.Underutilized, Price: 4_000_000})
	}
	pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	pool.Spec.Disruption.ConsolidationPolicy = karpenterv1.ConsolidationPolicyWhenEmptyOrUnderutilized
	r := round{snapshot: cluster.New(cluster.Snapshot{}), pools: map[string]*karpenterv1.NodePool{"default": pool}}
	c.reportCandidates(p)
	c.reportCommands(r, p, apply.Outcome{Marked: launch.Replaces})
	const prices = "8.000/h before, 2.000/h after; replaced by default/m"
	for _, want := range []string{"a ConsolidationCandidate: It may go: " + prices,
		"node-a ConsolidationCandidate: It may go: " + prices,
		"default ConsolidationApproved: 2 nodes go together: " + prices + ": node-a, node-b"} {
		if !slices.Contains(tape.Said(), want) {
			t.Errorf("said %q, want %q", tape.Said(), want)
		}
	}
	if slices.ContainsFunc(tape.Said(),
		func(said string) bool { return strings.Contains(said, "ConsolidationApproved: It goes") }) {
		t.Errorf("said %q, want the approval of several nodes of their pool alone (B-12)", tape.Said())
	}
	if got, want := decisions(t, registry), map[string]float64{"replace underutilized multi": 1}; !maps.Equal(got,
		want) {
		t.Errorf("decisions %v, want %v", got, want)
	}
	if n := controllertest.Count(t, registry, "karpenter_consolidation_moves_total", "approved", "default",
		"WhenEmptyOrUnderutilized"); n != 1 {
		t.Errorf("%v moves are counted, want 1", n)
	}
	node, coming := someNode(), &cluster.Node{Claim: "new", Price: 1_000_000}
	node.Price = 4_000_000
	v := engine.Verdict{Act: engine.Undo, Intents: []engine.Intent{{Node: node, Reason: plan.Underutilized}},
		Replacements: []*cluster.Node{coming}}
	c.reportWaits(v)
	for why, ground := range map[string]engine.Ground{"the budgets allow none": engine.GroundBudget,
		"its pods have no place elsewhere any more": engine.GroundScheduling,
		"pod a is planned onto it":                  engine.GroundChurn} {
		v.Why, v.Ground = why, ground
		c.reportRejected(v, v.Intents)
		want := "n1 ConsolidationRejected: " + string(ground) + ": it stays: " + why +
			"; 4.000/h before, 1.000/h after; replaced by new"
		if !slices.Contains(tape.Said(), want) {
			t.Errorf("said %q, want %q", tape.Said(), want)
		}
	}
	const waiting = "new DisruptionWaitingReadiness: NodeClaim new has to be ready before n1 goes"
	if !slices.Contains(tape.Said(), waiting) {
		t.Errorf("said %q, want %q", tape.Said(), waiting)
	}
}

// K-14: a removal is told of the Node and of its NodeClaim; one without a node, of the claim alone.
func TestK14_ARemovalIsToldOfNodeAndClaim(t *testing.T) {
	t.Parallel()
	tape := &controllertest.Tape{}
	c := New(Config{Events: tape})
	c.tell(plan.Remove{Claim: "c", Node: "n"}, event.DisruptionTerminating, "text")
	c.tell(plan.Remove{Claim: "d"}, event.DisruptionTerminating, "text")
	want := []string{"c DisruptionTerminating: text", "n DisruptionTerminating: text", "d DisruptionTerminating: text"}
	if said := tape.Said(); !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

// D-04, D-05: what a replacement has to save is as it was configured.
func TestTheTermsAreAsConfigured(t *testing.T) {
	t.Parallel()
	terms := New(Config{MinSaving: 7, MinSavingPercent: 3, SpotToSpot: true}).terms(one(somePool(), someNode()))
	if terms.MinSaving != 7 || terms.MinSavingPercent != 3 || !terms.SpotToSpot || terms.Now != 1000 {
		t.Errorf("terms %+v", terms)
	}
}

// K-08: a node that goes for another reason than consolidation is counted without its pool's consolidation policy.
func TestK08_ThePolicyByWhichANodeGoes(t *testing.T) {
	t.Parallel()
	pool := &karpenterv1.NodePool{}
	pool.Spec.Disruption.ConsolidationPolicy = karpenterv1.ConsolidationPolicyBalanced
	r := round{pools: map[string]*karpenterv1.NodePool{"default": pool}}
	for reason, want := range map[plan.DisruptionReason]string{plan.Empty: "Balanced", plan.Underutilized: "Balanced",
		plan.Drifted: "", plan.NodeLimitExceeded: ""} {
		if got := policyOf(r, plan.Remove{Pool: "default", Reason: reason}); got != want {
			t.Errorf("%s: policy %q, want %q", reason, got, want)
		}
	}
	if got := policyOf(r, plan.Remove{Pool: "gone", Reason: plan.Empty}); got != "" {
		t.Errorf("a pool that is gone has the policy %q", got)
	}
}

// K-16, B-12: nodes without a replacement go together, so their pool gets one event about all; each is a command.
func TestNodesThatNothingReplacesAreApprovedTogether(t *testing.T) {
	t.Parallel()
	registry, tape := prometheus.NewRegistry(), &controllertest.Tape{}
	c := New(Config{Events: tape, Metrics: metrics.New(registry)})
	p, r := plan.Plan{}, round{snapshot: cluster.New(cluster.Snapshot{}), pools: map[string]*karpenterv1.NodePool{}}
	var marked []string
	for _, of := range []string{"pool-1/a", "pool-2/b", "pool-1/c"} {
		pool, claim, _ := strings.Cut(of, "/")
		r.pools[pool] = &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: pool}}
		marked = append(marked, claim)
		p.Removes = append(p.Removes, plan.Remove{Claim: claim, Node: "node-" + claim, Pool: pool,
			Reason: plan.Underutilized, Price: 4_000_000})
	}
	c.reportCommands(r, p, apply.Outcome{Marked: marked})
	want := []string{
		"pool-1 ConsolidationApproved: 2 nodes go together: 8.000/h before, 0.000/h after; nothing replaces them: node-a, node-c",
		"b ConsolidationApproved: It goes: 4.000/h before, 0.000/h after; nothing replaces it",
		"node-b ConsolidationApproved: It goes: 4.000/h before, 0.000/h after; nothing replaces it"}
	if said := tape.Said(); !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
	if got := decisions(t, registry); !maps.Equal(got, map[string]float64{"delete underutilized single": 3}) {
		t.Errorf("decisions %v, want three of one node", got)
	}
}
