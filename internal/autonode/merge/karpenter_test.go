package merge_test

import (
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// karpenterSet is how Karpenter represents what is allowed for a label (K1, K2): some values, or all except some,
// within bounds. It cannot represent "a node without the label": the empty set stands for that, and also for a
// contradiction.
type karpenterSet struct {
	allBut    bool
	values    []string
	low, high int
}

func karpenterReads(entry merge.Requirement) karpenterSet {
	set := karpenterSet{allBut: entry.Operator != "In" && entry.Operator != "DoesNotExist", low: -1, high: 1000}
	if entry.Operator == "In" || entry.Operator == "NotIn" {
		set.values = entry.Values
	}
	number := 0
	if len(entry.Values) > 0 {
		number, _ = strconv.Atoi(entry.Values[0])
	}
	switch entry.Operator {
	case "Gt":
		set.low = number + 1
	case "Gte":
		set.low = number
	case "Lt":
		set.high = number - 1
	case "Lte":
		set.high = number
	}
	return set
}

func (s karpenterSet) has(value string) bool {
	number, err := strconv.Atoi(value)
	if s.low >= 0 || s.high < 1000 {
		if err != nil || number < s.low || number > s.high {
			return false
		}
	}
	return slices.Contains(s.values, value) != s.allBut
}

func (s karpenterSet) and(other karpenterSet) karpenterSet {
	both := karpenterSet{allBut: s.allBut && other.allBut, low: max(s.low, other.low), high: min(s.high, other.high)}
	switch {
	case both.low > both.high:
		return karpenterSet{low: -1, high: 1000}
	case both.allBut:
		both.values = slices.Concat(s.values, other.values)
		return both
	case s.allBut:
		s, other = other, s
	}
	for _, value := range s.values {
		if other.has(value) {
			both.values = append(both.values, value)
		}
	}
	both.low, both.high = -1, 1000 // the values are within the bounds
	return both
}

// takesTypesWithout reports whether Karpenter takes a type that lacks the label: with "must not exist", which may be a
// contradiction, and with exclusions.
func (s karpenterSet) takesTypesWithout() bool {
	return s.allBut == (len(s.values) > 0)
}

// karpenterLaunches reports whether Karpenter would find an instance type for the pool. A and B have no GPUs, C has 1.
// It ignores labels that no type defines: a node gets them from the pool.
func karpenterLaunches(pool *karpenterv1.NodePool) bool {
	folded := map[string]karpenterSet{}
	add := func(entry merge.Requirement) {
		key := string(translate.Key(entry.Key))
		set := karpenterReads(entry)
		if before, found := folded[key]; found {
			set = before.and(set)
		}
		folded[key] = set
	}
	for _, entry := range pool.Spec.Template.Spec.Requirements {
		add(entry)
	}
	for key, value := range pool.Spec.Template.ObjectMeta.Labels {
		add(merge.Requirement{Key: key, Operator: "In", Values: []string{value}})
	}
	for _, kind := range []map[string]string{{instanceType: "A"}, {instanceType: "B"},
		{instanceType: "C", gpus: "1"}} {
		fits := true
		for _, key := range []string{instanceType, gpus} {
			set, asked := folded[key]
			value, has := kind[key]
			fits = fits && (!asked || has && set.has(value) || !has && set.takesTypesWithout())
		}
		if fits {
			return true
		}
	}
	return false
}

// G10, K2: if Karpenter would launch a node for the merged pool, then something is left for each label of the policy.
// Without the closing entry, or with labels in the vocabulary that some types lack, this does not hold.
func TestKarpenterLaunchesNothingPastAContradiction(t *testing.T) {
	t.Parallel()
	launched := 0
	rapid.Check(t, func(t *rapid.T) {
		policy, pool := pair(t)
		result := merge.NodePool(policy, pool, merge.NodePoolSettings{})
		if !karpenterLaunches(result.NodePool) {
			return
		}
		launched++
		allowed, _, _ := translate.Requirements(policy.Spec.NodePoolDefaults.Requirements)
		for r := range allowed.All() {
			if left := result.Folded.Get(r.Key()); left.Empty() {
				t.Fatalf("Karpenter launches although nothing is left for %s: %v", r.Key(),
					spelled(result.NodePool.Spec.Template.Spec.Requirements))
			}
		}
	})
	if launched == 0 {
		t.Error("nothing was ever launched: does the law still say something?")
	}
}

// K2, the reason for the law above: a contradiction keeps Karpenter from launching if every type has the label. For
// any other label it does not.
func TestWhatAContradictionMeansToKarpenter(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{instanceType: false, gpus: true, team: true} {
		pool := &karpenterv1.NodePool{}
		pool.Spec.Template.Spec.Requirements = []merge.Requirement{
			{Key: key, Operator: "In", Values: []string{"1"}}, {Key: key, Operator: "In", Values: []string{"2"}},
		}
		if got := karpenterLaunches(pool); got != want {
			t.Errorf("%s: launches %t, want %t", key, got, want)
		}
	}
}
