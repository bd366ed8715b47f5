package conformance_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// values are what entries are drawn from, by label.
func values() map[string][]string {
	return map[string][]string{
		instanceType: {"a", "b", "c", "d"}, zone: {"z1", "z2", "z9"}, team: {"red", "blue", "green"},
		gpus: {"1", "2", "4"},
	}
}

func drawEntry() *rapid.Generator[entry] {
	return rapid.Custom(func(t *rapid.T) entry {
		key := rapid.SampledFrom([]string{instanceType, zone, team, gpus}).Draw(t, "key")
		operators := []corev1.NodeSelectorOperator{"In", "In", "In", "NotIn", "Exists", "Gt", "DoesNotExist"}
		e := entry{Key: key, Operator: rapid.SampledFrom(operators).Draw(t, "operator")}
		all := values()[key]
		switch {
		case e.Operator == "Gt" && key != gpus, e.Operator == "In":
			e.Operator = "In"
			e.Values = rapid.Permutation(all).Draw(t, "values")[:rapid.IntRange(1, len(all)).Draw(t, "n")]
		case e.Operator == "NotIn":
			e.Values = rapid.Permutation(all).Draw(t, "values")[:rapid.IntRange(1, len(all)-1).Draw(t, "n")]
		case e.Operator == "Gt":
			e.Values = []string{rapid.SampledFrom(all).Draw(t, "bound")}
		}
		return e
	})
}

type (
	provided = hypershiftv1beta1.AutoNodePolicy
	asked    = hypershiftv1beta1.OpenshiftNodePool
	// merging makes a NodePool of a policy and a wrapper.
	merging func(*provided, *asked) *karpenterv1.NodePool
)

func rightly(policy *provided, wrapper *asked) *karpenterv1.NodePool {
	return merge.NodePool(policy, wrapper, merge.NodePoolSettings{}).NodePool
}

// draw makes a cluster whose pools come of a merge, with a claim and a node for each pool that launches any.
func draw(t *rapid.T, merged merging) conformance.Input {
	input := conforming()
	input.Objects.Pools, input.Objects.Claims, input.Objects.Nodes = nil, nil, nil
	policy := input.Policy
	policy.Spec.NodePoolDefaults.Requirements = rapid.SliceOfN(drawEntry(), 1, 4).Filter(func(list []entry) bool {
		return len(merge.Check(&hypershiftv1beta1.AutoNodePolicy{Spec: hypershiftv1beta1.AutoNodePolicySpec{
			NodePoolDefaults: hypershiftv1beta1.NodePoolDefaults{Requirements: list}}})) == 0
	}).Draw(t, "policy")
	for i := range rapid.IntRange(1, 3).Draw(t, "pools") {
		wrapper := &hypershiftv1beta1.OpenshiftNodePool{ObjectMeta: meta(fmt.Sprintf("p%d", i), made)}
		wrapper.Spec.Template.Spec.Requirements = rapid.SliceOfN(drawEntry(), 0, 3).Draw(t, "entries")
		wrapper.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{
			Group: awsv1.Group, Kind: awsv1.EC2NodeClassKind, Name: "c",
		}
		if rapid.IntRange(0, 3).Draw(t, "labelled") == 0 {
			wrapper.Spec.Template.ObjectMeta.Labels = map[string]string{
				team: rapid.SampledFrom(values()[team]).Draw(t, "team"),
			}
		}
		pool := merged(policy, wrapper)
		if pool == nil {
			continue
		}
		pool.UID, pool.CreationTimestamp = wrapper.UID, wrapper.CreationTimestamp
		input.Memory.Written[conformance.Product{Kind: "NodePool", Name: pool.Name}] = conformance.Written{
			UID: pool.UID, Policy: 3,
		}
		input.Objects.Pools = append(input.Objects.Pools, *pool)
		addMachine(&input, pool)
	}
	return input
}

// addMachine adds a claim of the pool and its node, as an autoscaler makes them; a pool that launches nothing has
// none.
func addMachine(input *conformance.Input, pool *karpenterv1.NodePool) {
	set, _, err := translate.PoolRequirements(pool)
	if err != nil || len(set.EmptyKeys()) > 0 ||
		slices.ContainsFunc([]string{instanceType, zone, arch}, func(key string) bool {
			return !set.Get(requirement.Key(key)).AllowsPresent()
		}) {
		return
	}
	labels := map[string]string{karpenterv1.NodePoolLabelKey: pool.Name}
	for r := range set.All() {
		if value, some := r.Example(); some {
			labels[string(r.Key())] = value
		}
	}
	claim := karpenterv1.NodeClaim{ObjectMeta: meta("claim-of-"+pool.Name, made)}
	claim.OwnerReferences = []metav1.OwnerReference{{Kind: "NodePool", Name: pool.Name, UID: pool.UID}}
	claim.Labels = labels
	claim.Spec.NodeClassRef = pool.Spec.Template.Spec.NodeClassRef
	claim.Spec.Requirements = slices.Clone(pool.Spec.Template.Spec.Requirements)
	for label, value := range pool.Spec.Template.ObjectMeta.Labels {
		claim.Spec.Requirements = append(claim.Spec.Requirements, in(label, value))
	}
	claim.Status.ProviderID = "aws:///z1/" + claim.Name
	node := corev1.Node{ObjectMeta: meta("node-of-"+pool.Name, made),
		Spec: corev1.NodeSpec{ProviderID: claim.Status.ProviderID}}
	node.Labels = map[string]string{karpenterv1.NodeRegisteredLabelKey: "true"}
	for label, value := range labels {
		node.Labels[label] = value
	}
	input.Objects.Claims = append(input.Objects.Claims, claim)
	input.Objects.Nodes = append(input.Objects.Nodes, node)
}

// clusters that conform have no findings. rapid draws a hundred at a time.
func TestA19_ConformingClustersHaveNoFindings(t *testing.T) {
	t.Parallel()
	machines := 0
	for range 3 {
		rapid.Check(t, func(t *rapid.T) {
			input := draw(t, rightly)
			machines += len(input.Objects.Nodes)
			if report := conformance.Look(input); len(report.Findings) > 0 {
				t.Fatalf("policy %+v, pools %+v: %+v", input.Policy.Spec, input.Objects.Pools, report.Findings)
			}
		})
	}
	if machines < 100 {
		t.Errorf("only %d nodes in all clusters: most pools launch nothing, and the law says little", machines)
	}
}

// whatever a wrong merge does, it shows, in some cluster.
func TestA20_WrongMergesAreFound(t *testing.T) {
	t.Parallel()
	pools := func(change func(*provided, *asked, *karpenterv1.NodePool)) merging {
		return func(policy *provided, wrapper *asked) *karpenterv1.NodePool {
			pool := rightly(policy, wrapper)
			if pool != nil {
				change(policy, wrapper, pool)
			}
			return pool
		}
	}
	for name, wrongly := range map[string]merging{
		"the first entry is dropped": pools(func(_ *provided, _ *asked, pool *karpenterv1.NodePool) {
			pool.Spec.Template.Spec.Requirements = pool.Spec.Template.Spec.Requirements[1:]
		}),
		"the last entry of the policy is dropped": pools(func(policy *provided, _ *asked, pool *karpenterv1.NodePool) {
			n := len(policy.Spec.NodePoolDefaults.Requirements)
			pool.Spec.Template.Spec.Requirements = slices.Delete(slices.Clone(pool.Spec.Template.Spec.Requirements),
				n-1, n)
		}),
		"the user's entries only": pools(func(_ *provided, wrapper *asked, pool *karpenterv1.NodePool) {
			pool.Spec.Template.Spec.Requirements = wrapper.Spec.Template.Spec.Requirements
		}),
		"the user's entry wins for its label": pools(func(policy *provided, wrapper *asked,
			pool *karpenterv1.NodePool) {
			own := wrapper.Spec.Template.Spec.Requirements
			left := slices.DeleteFunc(slices.Clone(policy.Spec.NodePoolDefaults.Requirements), func(e entry) bool {
				return slices.ContainsFunc(own, func(o entry) bool { return o.Key == e.Key })
			})
			pool.Spec.Template.Spec.Requirements = append(left, own...)
		}),
		"the closing entry is forgotten": pools(func(_ *provided, _ *asked, pool *karpenterv1.NodePool) {
			pool.Spec.Template.Spec.Requirements =
				slices.DeleteFunc(slices.Clone(pool.Spec.Template.Spec.Requirements), func(e entry) bool {
					return e.Key == instanceType && e.Operator == "DoesNotExist"
				})
		}),
		"the class is forgotten": pools(func(_ *provided, _ *asked, pool *karpenterv1.NodePool) {
			pool.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{
				Group: awsv1.Group, Kind: awsv1.EC2NodeClassKind, Name: "other",
			}
		}),
		"the policy is forgotten": pools(func(_ *provided, wrapper *asked, pool *karpenterv1.NodePool) {
			*pool = *rightly(nil, wrapper)
		}),
	} {
		found := 0
		rapid.Check(t, func(t *rapid.T) {
			input := draw(t, wrongly)
			if slices.ContainsFunc(conformance.Look(input).Findings, func(f conformance.Finding) bool {
				return f.State == wrong
			}) {
				found++
			}
		})
		if found == 0 {
			t.Errorf("%s: never found", name)
		}
		t.Logf("%s: found in %d of 100 clusters", name, found)
	}
}

// a pool that the operator skipped, since its merge came from an older policy, is found by what it allows.
func TestA20_ASkippedPoolIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.wrote("NodePool", "p", func(r *conformance.Written) { r.Policy = 2 })
	w.Policy.Spec.NodePoolDefaults.Requirements[0].Values = []string{"a", "b"}
	w.claim.CreationTimestamp, w.node.CreationTimestamp = metav1.Time{Time: at(changed - 1)},
		metav1.Time{Time: at(changed - 1)}
	report := conformance.Look(*w.Input)
	if len(report.Findings) != 1 || report.Findings[0].Cause != conformance.OperatorError ||
		report.Findings[0].Kind != conformance.NodePool {
		t.Errorf("found %+v", report.Findings)
	}
}

// 1,000 claims and nodes take less than 200 ms.
func BenchmarkLook(b *testing.B) {
	input := conforming()
	for i := range 1000 {
		claim, node := input.Objects.Claims[0].DeepCopy(), input.Objects.Nodes[0].DeepCopy()
		claim.Name, node.Name = fmt.Sprintf("k%d", i), fmt.Sprintf("n%d", i)
		claim.Status.ProviderID = fmt.Sprintf("aws:///z1/i-%d", i)
		node.Spec.ProviderID = claim.Status.ProviderID
		many := make([]string, 100)
		for v := range many {
			many[v] = fmt.Sprintf("t%d", v)
		}
		claim.Spec.Requirements[0] = in(instanceType, many...)
		claim.Labels[instanceType], node.Labels[instanceType] = "t1", "t1"
		input.Objects.Claims, input.Objects.Nodes = append(input.Objects.Claims, *claim),
			append(input.Objects.Nodes, *node)
	}
	types := make([]string, 1000)
	for i := range types {
		types[i] = fmt.Sprintf("t%d", i)
	}
	input.Policy.Spec.NodePoolDefaults.Requirements[0].Values = append(types, "a", "b", "c")
	b.ReportAllocs()
	for b.Loop() {
		conformance.Look(input)
	}
}

// byHand makes so many claims that no pool owns.
func byHand(claims int) func(world) {
	return func(w world) {
		w.claim.OwnerReferences = nil
		for i := range claims - 1 {
			claim := w.claim.DeepCopy()
			claim.Name, claim.Status.ProviderID = fmt.Sprintf("k%02d", i), ""
			w.Objects.Claims = append(w.Objects.Claims, *claim)
		}
	}
}

// the condition says the gravest state, counts by cause and whose business it is, and names ten objects.
func TestA22_TheCondition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do                      func(world)
		status, reason, message string
	}{
		"all is well":      {func(world) {}, "True", "Conforms", ""},
		"nothing is there": {func(w world) { w.Objects = conformance.Objects{} }, "True", "NoObjects", ""},
		"a claim made by hand": {func(w world) { w.claim.OwnerReferences = nil }, "False", "NotConforming",
			"1 HandMade (Tenant): NodeClaim k"},
		"nodes are being replaced": {func(w world) {
			w.claim.CreationTimestamp = metav1.Time{Time: at(changed - 1)}
			w.claim.Spec.Requirements[0] = in(instanceType, "d")
		}, "Unknown", "Replacing", "1 PolicyChanged (Provider): NodeClaim k"},
		"not known yet": {func(w world) {
			w.Memory = conformance.Memory{Began: w.Now.Add(-time.Second), Protected: at(protected)}
			w.forgets("", "")
		},
			"Unknown", "NotChecked", "2 Unknown: NodeClaim k, NodePool p"},
		"ten claims by hand": {byHand(10), "False", "NotConforming",
			"10 HandMade (Tenant): NodeClaim k, NodeClaim k00, NodeClaim k01, NodeClaim k02, NodeClaim k03, " +
				"NodeClaim k04, NodeClaim k05, NodeClaim k06, NodeClaim k07, NodeClaim k08"},
		"twelve claims by hand": {byHand(12), "False", "NotConforming",
			"12 HandMade (Tenant): NodeClaim k, NodeClaim k00, NodeClaim k01, NodeClaim k02, NodeClaim k03, " +
				"NodeClaim k04, NodeClaim k05, NodeClaim k06, NodeClaim k07, NodeClaim k08 and 2 more"},
	} {
		w := newWorld()
		c.do(w)
		said := conformance.Look(*w.Input).Condition()
		if string(said.Status) != c.status || said.Reason != c.reason || said.Message != c.message {
			t.Errorf("%s: %+v", name, said)
		}
	}
}

// causes and parties are closed sets, and each cause but the unknown one has a party.
func TestA21_EachCauseHasAParty(t *testing.T) {
	t.Parallel()
	for _, way := range slices.Concat(poolWays(), classWays(), machineWays(), policyWays(), furtherWays()) {
		for _, f := range way.look().Findings {
			if !slices.Contains(conformance.Causes(), f.Cause) {
				t.Errorf("%s: the set of causes lacks %q", way.name, f.Cause)
			}
		}
	}
	for _, cause := range conformance.Causes() {
		if party := cause.Party(); (party == conformance.Nobody) != (cause == conformance.Unclear) {
			t.Errorf("%s is the business of %q", cause, party)
		}
	}
}
