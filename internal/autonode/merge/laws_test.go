package merge_test

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

const (
	instanceType = corev1.LabelInstanceTypeStable
	gpus         = "karpenter.k8s.aws/instance-gpu-count"
	team         = "example.com/team"
)

// universe is every value that the small laws look at for each label.
func universe() map[string][]string {
	return map[string][]string{instanceType: {"A", "B", "C"}, gpus: {"1", "2", "3"}, team: {"a", "b"}}
}

// entry draws one entry over the universe, with any operator, its values in any order.
func entry() *rapid.Generator[merge.Requirement] {
	return rapid.Custom(func(t *rapid.T) merge.Requirement {
		key := rapid.SampledFrom([]string{instanceType, corev1.LabelInstanceType, gpus, team}).Draw(t, "key")
		operators := []corev1.NodeSelectorOperator{"In", "In", "In", "NotIn", "Exists", "DoesNotExist"}
		if key == gpus {
			operators = append(operators, "Gt", "Lt", "Gte", "Lte")
		}
		r := merge.Requirement{Key: key, Operator: rapid.SampledFrom(operators).Draw(t, "operator")}
		values := universe()[string(translate.Key(key))]
		switch r.Operator {
		case "In", "NotIn":
			r.Values = rapid.Permutation(values).Draw(t, "values")[:rapid.IntRange(1, len(values)).Draw(t, "n")]
		case "Gt", "Lt", "Gte", "Lte":
			r.Values = []string{rapid.SampledFrom(values).Draw(t, "bound")}
		}
		if r.Operator == "In" && rapid.IntRange(0, 9).Draw(t, "wants variety") == 0 {
			r.MinValues = new(rapid.IntRange(1, len(r.Values)).Draw(t, "minValues"))
		}
		return r
	})
}

// pair draws a policy that passes Check and a wrapper.
func pair(t *rapid.T) (*hypershiftv1beta1.AutoNodePolicy, *hypershiftv1beta1.OpenshiftNodePool) {
	policy, pool := &hypershiftv1beta1.AutoNodePolicy{}, &hypershiftv1beta1.OpenshiftNodePool{}
	policy.Spec.NodePoolDefaults.Requirements = rapid.SliceOfN(entry(), 0, 4).
		Filter(func(list []merge.Requirement) bool {
			policy := &hypershiftv1beta1.AutoNodePolicy{}
			policy.Spec.NodePoolDefaults.Requirements = list
			return len(merge.Check(policy)) == 0
		}).Draw(t, "policy")
	pool.Name = "mine"
	pool.Spec.Template.Spec.Requirements = rapid.SliceOfN(entry(), 0, 4).Draw(t, "pool")
	for _, key := range []string{team, gpus} {
		if rapid.IntRange(0, 4).Draw(t, "label "+key) == 0 {
			pool.Spec.Template.ObjectMeta.Labels = map[string]string{
				key: rapid.SampledFrom(universe()[key]).Draw(t, "value of "+key),
			}
		}
	}
	return policy, pool
}

// R10, R16, R19: the policy's entries come first, then the user's, unchanged. Merging is a function of its arguments,
// changes none, and its result shares nothing with them.
func TestEntriesStayAsTheyAreAndInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		policy, pool := pair(t)
		policyBefore, poolBefore := policy.DeepCopy(), pool.DeepCopy()
		result := merge.NodePool(policy, pool, merge.NodePoolSettings{})
		if result.NodePool == nil {
			t.Fatalf("not written: %v", result.Problems)
		}
		written := result.NodePool.Spec.Template.Spec.Requirements
		want := slices.Concat(policyBefore.Spec.NodePoolDefaults.Requirements,
			poolBefore.Spec.Template.Spec.Requirements)
		if result.Closed {
			want = append(want, merge.Requirement{Key: instanceType, Operator: "DoesNotExist"})
		}
		if fmt.Sprint(spelled(written)) != fmt.Sprint(spelled(want)) {
			t.Fatalf("written %v, want %v", spelled(written), spelled(want))
		}
		if !reflect.DeepEqual(policy, policyBefore) || !reflect.DeepEqual(pool, poolBefore) {
			t.Fatal("an argument was changed")
		}
		if again := merge.NodePool(policy, pool, merge.NodePoolSettings{}); !reflect.DeepEqual(again.NodePool,
			result.NodePool) {
			t.Fatal("the second merge differs")
		}
		for _, r := range written {
			for i := range r.Values {
				r.Values[i] = "overwritten"
			}
		}
		if !reflect.DeepEqual(policy, policyBefore) || !reflect.DeepEqual(pool, poolBefore) {
			t.Fatal("the result refers to an argument")
		}
	})
}

// spelled prints entries with what their pointers point to.
func spelled(list []merge.Requirement) []string {
	texts := []string{}
	for _, r := range list {
		minValues := 0
		if r.MinValues != nil {
			minValues = *r.MinValues
		}
		texts = append(texts, fmt.Sprintf("%s %s %v %d", r.Key, r.Operator, r.Values, minValues))
	}
	return texts
}

// R11, R12, R15, K1: what is left is the intersection of the policy's set and the user's, as every planner reads the
// written pool. The labels that fit the merged pool are exactly those that fit both: merging never widens and never
// loses anything.
func TestMergingIsIntersection(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		policy, pool := pair(t)
		result := merge.NodePool(policy, pool, merge.NodePoolSettings{})
		allowed, _, err := translate.Requirements(policy.Spec.NodePoolDefaults.Requirements)
		asked, _, err2 := translate.Requirements(pool.Spec.Template.Spec.Requirements)
		fold, _, err3 := translate.PoolRequirements(result.NodePool)
		if err != nil || err2 != nil || err3 != nil {
			t.Fatal(err, err2, err3)
		}
		if !result.Closed && !fold.Equal(result.Folded) {
			t.Fatalf("the written pool folds to %s, the merge said %s", fold, result.Folded)
		}
		if !result.Folded.And(allowed).Equal(result.Folded) {
			t.Fatalf("%s is wider than the policy's %s", result.Folded, allowed)
		}
		own := pool.Spec.Template.ObjectMeta.Labels
		for _, labels := range nodes() {
			labels[karpenterv1.NodePoolLabelKey], labels["karpenter.k8s.aws/ec2nodeclass"] = "mine", "default"
			want := allowed.Matches(labels) && asked.Matches(labels) && requirement.FromLabels(own).Matches(labels)
			if got := fold.Matches(labels); got != (want && !result.Closed) {
				t.Fatalf("%v fits: %t, want %t; closed: %t", labels, got, want, result.Closed)
			}
		}
		if len(result.Conflicts) == 0 && !slices.ContainsFunc(nodes(), func(labels map[string]string) bool {
			return result.Folded.Without(karpenterv1.NodePoolLabelKey).Without(
				"karpenter.k8s.aws/ec2nodeclass").Matches(labels)
		}) {
			t.Fatalf("no conflict is named, and no node fits %s", result.Folded)
		}
	})
}

// nodes is every node of the universe, and some with values that no entry lists: each has a type, and the other labels
// or not.
func nodes() []map[string]string {
	var list []map[string]string
	for _, kind := range append([]string{"D"}, universe()[instanceType]...) {
		for _, count := range append([]string{"", "0", "4"}, universe()[gpus]...) {
			for _, name := range append([]string{"", "c"}, universe()[team]...) {
				labels := map[string]string{instanceType: kind}
				if count != "" {
					labels[gpus] = count
				}
				if name != "" {
					labels[team] = name
				}
				list = append(list, labels)
			}
		}
	}
	return list
}

// Merging what was merged changes nothing: a wrapper that has the merged list already leaves the same.
func TestMergingTwiceLeavesTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		policy, pool := pair(t)
		first := merge.NodePool(policy, pool, merge.NodePoolSettings{})
		pool.Spec.Template.Spec.Requirements = first.NodePool.Spec.Template.Spec.Requirements
		second := merge.NodePool(policy, pool, merge.NodePoolSettings{})
		fold, _, _ := translate.PoolRequirements(first.NodePool)
		if !second.Folded.Equal(fold) {
			t.Fatalf("first %s, then %s", fold, second.Folded)
		}
	})
}

// G12: with any number of duplicates, what is left is the same, and the list is never too long.
func TestDuplicatesAreLeftOutWithoutAnEffect(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		policy, pool := pair(t)
		plain := merge.NodePool(policy, pool, merge.NodePoolSettings{})
		for i := range rapid.IntRange(90, 120).Draw(t, "copies") {
			own := &pool.Spec.Template.Spec.Requirements
			*own = append(*own, merge.Requirement{Key: team, Operator: "In", Values: []string{"b", "a"}})
			if i%2 == 0 {
				(*own)[len(*own)-1].Values = []string{"a", "b"}
			}
		}
		many := merge.NodePool(policy, pool, merge.NodePoolSettings{})
		if many.NodePool == nil || len(many.NodePool.Spec.Template.Spec.Requirements) > merge.MaxRequirements {
			t.Fatalf("problems %v", many.Problems)
		}
		universal := requirement.NewSet(requirement.OneOf(team, "a", "b"))
		if want := plain.Folded.And(universal); !many.Folded.Equal(want) {
			t.Fatalf("left %s, want %s", many.Folded, want)
		}
	})
}

// R42, G16: the order in which wrappers are listed does not matter.
func TestReadyIsTheSameInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		policy := &hypershiftv1beta1.AutoNodePolicy{}
		var targets []merge.Target
		for i := range rapid.IntRange(0, 15).Draw(t, "pools") {
			pool := &hypershiftv1beta1.OpenshiftNodePool{}
			pool.Name = "p" + strconv.Itoa(i)
			pool.Status.ObservedPolicy = rapid.SampledFrom(observed()).Draw(t, "observed")
			pool.Status.Conditions = []karpenterv1.Condition{{
				Type:   hypershiftv1beta1.ConditionTypePolicyApplied,
				Status: rapid.SampledFrom(statuses()).Draw(t, "status"), Reason: "Reason" + strconv.Itoa(i),
			}}
			targets = append(targets, merge.PoolTarget(pool))
		}
		if a, b := merge.Ready(policy, targets),
			merge.Ready(policy, rapid.Permutation(targets).Draw(t, "order")); a != b {
			t.Fatalf("%v and %v", a, b)
		}
	})
}

// K4: Check accepts the same label values as the API.
func TestValuesAreCheckedAsTheAPIDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.StringMatching(`[-a-zA-Z0-9_.]{0,65}`),
			rapid.StringMatching(`[a-z]{62,64}`)).Draw(t, "value")
		policy := &hypershiftv1beta1.AutoNodePolicy{}
		policy.Spec.NodePoolDefaults.Requirements = []merge.Requirement{
			{Key: team, Operator: "In", Values: []string{value}},
		}
		if got, want := len(merge.Check(policy)) == 0, len(validation.IsValidLabelValue(value)) == 0; got != want {
			t.Fatalf("%q is accepted: %t, want %t", value, got, want)
		}
	})
}
