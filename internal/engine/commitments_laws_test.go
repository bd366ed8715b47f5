package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// withCommitments adds one to three commitments to a script, in any order: some for types, and one for all.
func withCommitments(t *rapid.T, script string, types ...string) string {
	for i, types := range rapid.Permutation(append(types, "")).Draw(t, "order") {
		amount := rapid.SampledFrom([]string{"", "instances=%d", "hourly=%.3f"}).Draw(t, "amount")
		switch {
		case amount == "" && types != "":
			continue
		case amount == "instances=%d":
			amount = fmt.Sprintf(amount, rapid.IntRange(1, 4).Draw(t, "instances"))
		default:
			amount = fmt.Sprintf("hourly=%.3f", rapid.Float64Range(0.05, 1).Draw(t, "dollars"))
		}
		need := ""
		if types != "" {
			need = "need=type=" + types + rapid.SampledFrom([]string{"", ",zone=a", ",zone=b|c"}).Draw(t, "zones")
		}
		script += fmt.Sprintf("\ncommitment c%d %s %s", i, amount, need)
	}
	return script
}

// paidFor is what nodes cost per hour in all, ours and others, without what commitments pay.
func paidFor(s *cluster.Snapshot) resources.Money {
	sum := -s.Ledger().Freed(s.Nodes...)
	for _, node := range s.Nodes {
		if node.Price != resources.Unpriced && !node.Deleting {
			sum += node.Price
		}
	}
	return sum
}

// checkUsed fails when more of a commitment is used than there is.
func checkUsed(t *rapid.T, s *cluster.Snapshot) {
	t.Helper()
	for i, used := range s.Ledger().Used(nil) {
		if c := s.Commitments[i]; used.PerHour > c.PerHour || used.Instances > c.Instances || used.PerHour < 0 ||
			used.Instances < 0 {
			t.Fatalf("commitment %s of %s/h and %d instances: %s/h and %d are used", c.Name, c.PerHour, c.Instances,
				used.PerHour, used.Instances)
		}
	}
}

// K-55. A plan with commitments breaks no rule, and what it counts on happens: once it is carried out, nodes cost no
// more than it says, whichever of its types and zones each claim becomes.
func TestK55_PlansCostWhatTheySay(t *testing.T) {
	t.Parallel()
	var covered atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		script := enginetest.Script(t)
		script = withCommitments(t, script, "small", "medium|large")
		s := parse(t, script)
		p := engine.Provision(s)
		checkUsed(t, s)
		if broken := enginetest.Check(s, p, 0); broken != nil {
			t.Fatalf("%s\n----\n%s\nbroken:\n%s", script, p, strings.Join(broken, "\n"))
		}
		for choice := range 3 {
			own := p
			own.Launches = slices.Clone(p.Launches)
			own.Launches = slices.DeleteFunc(own.Launches,
				func(l plan.Launch) bool { return l.Cheapest.Commitment.Name == "" })
			covered.Add(int64(len(own.Launches)))
			after := enginetest.Applied(s, own, choice)
			checkUsed(t, after)
			if more := paidFor(after) - paidFor(s); more > own.Price() {
				t.Fatalf("%s\n----\n%s\nsays that covered nodes cost %s/h more, and they do %s/h", script, own,
					own.Price(), more)
			}
		}
	})
	if covered.Load() == 0 {
		t.Error("no node was planned on a commitment: the law says nothing")
	}
}

// K-55. Consolidation with commitments leaves every pod a place, each round saves, and it ends.
func TestK55_ConsolidationWithCommitmentsSavesAndEnds(t *testing.T) {
	t.Parallel()
	var rounds atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		script := withCommitments(t, enginetest.PlainScript(t), "t0|t1|t3", "t2|t3", "t3|t0")
		s := shrunk(t, script)
		terms := engine.Terms{SpotToSpot: rapid.Bool().Draw(t, "spot"),
			MinSavingPercent: rapid.SampledFrom([]int{0, 5, 30}).Draw(t, "percent")}
		for round := 0; ; round++ {
			p := engine.Consolidate(s, terms)
			if p.Empty() {
				return
			}
			before := paidFor(s)
			if s = carriedOut(t, s, p, round, true); paidFor(s) >= before {
				t.Fatalf("%s\n----\n%s\n%s/h before, %s/h after round %d", script, p, before, paidFor(s), round)
			}
			checkUsed(t, s)
			if rounds.Add(1); round > 200 {
				t.Fatalf("no end in sight after %d rounds:\n%s", round, p)
			}
		}
	})
	if rounds.Load() == 0 {
		t.Error("nothing was consolidated: the law says nothing")
	}
}

// K-55. What nodes cost is what is saved without them: alone, in any group, and in any order.
func TestK55_ANodeCostsWhatIsSavedWithoutIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := shrunk(t, withCommitments(t, enginetest.PlainScript(t), "t0|t1"))
		var priced []*cluster.Node
		for _, node := range s.Nodes {
			if node.Price != resources.Unpriced && rapid.Bool().Draw(t, "in the group") {
				priced = append(priced, node)
			}
		}
		overhead := resources.Money(0)
		for _, node := range priced {
			overhead += s.Overhead(node.Pool)
		}
		if cost, saved := s.Cost(priced...)-overhead, paidFor(s)-paidFor(s.Without(priced...)); cost != saved {
			t.Fatalf("%d nodes cost %s, and without them %s is saved", len(priced), cost, saved)
		}
	})
}

// K-55. Of nodes of the same second the dearest is paid for first, or the cheapest if more is paid for that way. Here
// the large one would use up most of c1, and c2 would pay for a medium one.
func TestK55_TheOrderOfEqualsThatPaysMore(t *testing.T) {
	t.Parallel()
	for commitments, want := range map[string]string{
		"commitment c1 need=type=medium|large hourly=0.25\ncommitment c2 instances=1": "0.400",
		"commitment c1 need=type=medium|large hourly=0.21":                            "0.210",
	} {
		s, err := enginetest.Parse(`
type medium cpu=4 mem=8Gi  zones=a od=0.095
type large  cpu=8 mem=32Gi zones=a od=0.210
` + commitments + `
pool default
node n1     type=medium zone=a pool=default created=100
node n2     type=medium zone=a pool=default created=100
node n3     type=large  zone=a pool=default created=100
`)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Ledger().Saved().String(); got != want {
			t.Errorf("%s: %s/h is paid for, want %s/h", commitments, got, want)
		}
	}
}
