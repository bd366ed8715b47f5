package translate

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

type entry = karpenterv1.NodeSelectorRequirementWithMinValues

func TestRequirementsOfPools(t *testing.T) { // P-02, P-09, V-05
	t.Parallel()
	set, minValues, err := Requirements([]entry{
		{Key: "zone", Operator: "In", Values: []string{"b", "a"}, MinValues: new(2)},
		{Key: "zone", Operator: "NotIn", Values: []string{"c"}},
		{Key: "beta.kubernetes.io/arch", Operator: "In", Values: []string{"arm64"}},
		{Key: "cpu", Operator: "Gte", Values: []string{"4"}, MinValues: new(1)},
		{Key: "cpu", Operator: "Lte", Values: []string{"6"}, MinValues: new(3)},
		{Key: "gpu", Operator: "Exists"},
		{Key: "gpu", Operator: "DoesNotExist"},
	})
	if want := "cpu=4|5|6 gpu: nothing kubernetes.io/arch=arm64 zone=a|b"; set.String() != want || err != nil {
		t.Errorf("got %s, %v; want %s", set, err, want)
	}
	if got := fmt.Sprint(set.EmptyKeys()); got != "[gpu]" {
		t.Errorf("contradictions on %s", got)
	}
	if got := fmt.Sprint(minValues); got != "[{cpu 3} {zone 2}]" {
		t.Errorf("minimum counts %s", got)
	}
}

func TestRequirementThatCannotBeReadAllowsNothing(t *testing.T) {
	t.Parallel()
	set, _, err := Requirements([]entry{{Key: "a", Operator: "Resembles", Values: []string{"x"}},
		{Key: "b", Operator: "In"}, {Key: "c", Operator: "Exists"}})
	if got := fmt.Sprint(set.EmptyKeys()); got != "[a b]" {
		t.Errorf("keys that nothing satisfies: %s", got)
	}
	if err == nil || !strings.Contains(err.Error(), `"Resembles"`) ||
		!strings.Contains(err.Error(), `requirement "b"`) {
		t.Errorf("error %v", err)
	}
}

// Requirements written to a claim read back as the same set, even a contradiction.
func TestRequirementsThereAndBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(drawEntry), 0, 8).Draw(t, "entries")
		set, _, err := Requirements(list)
		if err != nil {
			t.Fatal(err)
		}
		var written []entry
		for r := range set.All() {
			written = append(written, requirementToAPI(r)...)
		}
		back, _, err := Requirements(written)
		if err != nil {
			t.Fatal(err)
		}
		for r := range set.All() { // a key that allows everything is not written
			if !back.Get(r.Key()).Equal(r) {
				t.Fatalf("%s becomes %s", set, back)
			}
		}
	})
}

func drawEntry(t *rapid.T) entry {
	e := entry{Key: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")}
	switch op := rapid.SampledFrom([]string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"}).Draw(t,
		"operator"); op {
	case "In", "NotIn":
		e.Operator, e.Values = corev1.NodeSelectorOperator(op),
			rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2", "300", "x"}), 1, 3).Draw(t, "values")
	case "Exists", "DoesNotExist":
		e.Operator = corev1.NodeSelectorOperator(op)
	default:
		e.Operator, e.Values = corev1.NodeSelectorOperator(op),
			[]string{fmt.Sprint(rapid.IntRange(0, 1000).Draw(t, "number"))}
	}
	return e
}
