package fold_test

import (
	"fmt"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
)

const zone fold.Key = "topology.kubernetes.io/zone"

// Entries for one label, by any of its names, fold to what they allow together.
func ExampleOf() {
	set, minimums, err := fold.Of([]fold.Requirement{
		{Key: string(zone), Operator: fold.In, Values: []string{"a", "b", "c"}, MinValues: new(2)},
		{Key: "failure-domain.beta.kubernetes.io/zone", Operator: fold.NotIn, Values: []string{"c"}},
		{Key: "example.com/gpus", Operator: fold.Gt, Values: []string{"0"}},
		{Key: "example.com/gpus", Operator: fold.Lte, Values: []string{"2"}},
	})
	fmt.Println(set, minimums, err)
	// Output: example.com/gpus=1|2 topology.kubernetes.io/zone=a|b [{topology.kubernetes.io/zone 2}] <nil>
}

// Entries that contradict each other leave nothing, which is not the same as a node without the label.
func ExampleSet_EmptyKeys() {
	set, _, _ := fold.Of([]fold.Requirement{
		{Key: "team", Operator: fold.In, Values: []string{"red"}},
		{Key: "team", Operator: fold.In, Values: []string{"blue"}}, {Key: "rack", Operator: fold.DoesNotExist},
	})
	fmt.Println(set.EmptyKeys(), set.Get("team").Empty(), set.Get("rack").Equal(fold.Absent("rack")))
	// Output: [team] true true
}

// An entry that cannot be understood is an error that names it.
func ExampleNew() {
	many, _ := fold.New("cpu", fold.Gte, "4")
	few, _ := fold.New("cpu", fold.Lt, "8")
	fmt.Println(many, many.And(few))
	for _, op := range []fold.Operator{fold.Exists, "Near"} {
		_, err := fold.New("cpu", op, "4")
		fmt.Println(err)
	}
	// Output:
	// cpu>=4 cpu=4|5|6|7
	// requirement "cpu": operator Exists takes no values, got ["4"]
	// requirement "cpu": operator "Near" is none of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte
}

// What a requirement allows can be asked in many ways.
func ExampleAllowed() {
	var some fold.Allowed = fold.OneOf(zone, "b", "a")
	values, finite := some.Values()
	_, single := some.Single()
	first, _ := some.Example()
	fmt.Println(some.Key() == zone, values, finite, single, first, some.Has("c"))
	fmt.Println(some.AllowsAbsent(), some.AllowsPresent(), some.IsAny(), fold.Any(zone).IsAny())
	fmt.Println(some.And(fold.OneOf(zone, "b")).String(), some.Intersects(fold.Nothing(zone)),
		some.Intersects(fold.Present(zone)))
	// Output:
	// true [a b] true false a false
	// false true false true
	// topology.kubernetes.io/zone=b false true
}

// Terms are how the API writes what a requirement allows.
func ExampleAllowed_Terms() {
	not, _ := fold.New("arch", fold.NotIn, "arm64")
	for _, term := range not.And(fold.Present("arch")).Terms() {
		var t fold.Term = term
		fmt.Println(t.Operator, t.Values)
	}
	// Output:
	// NotIn [arm64]
	// Exists []
}

// A set is a conjunction, one requirement for each label.
func ExampleSet() {
	set := fold.NewSet(fold.OneOf("arch", "amd64"), fold.Present("team"))
	node := map[string]string{"arch": "amd64", "team": "red"}
	fmt.Println(set.Len(), set.Matches(node), set.Intersects(fold.FromLabels(node)), set.Holds("rack"))
	fmt.Println(set.Without("team").With(fold.Absent("rack")).String())
	var both fold.Set = set.And(fold.FromLabels(node))
	for allowed := range both.All() {
		fmt.Print(allowed, "; ")
	}
	fmt.Println(both.Equal(set))
	// Output:
	// 2 true true false
	// arch=amd64 !rack
	// arch=amd64; team=red; false
}

// Labels have aliases. Karpenter takes most of them for the label in use now.
func ExampleNames() {
	fmt.Println(fold.Names("beta.kubernetes.io/arch"), fold.Canonical("beta.kubernetes.io/os"), fold.Names("team"))
	fmt.Println(fold.ReadByKarpenter("topology.ebs.csi.aws.com/zone"), fold.ReadByKarpenter("topology.gke.io/zone"))
	// Output:
	// [kubernetes.io/arch beta.kubernetes.io/arch] kubernetes.io/os [team]
	// true false
}

// A copy shares nothing with the entry.
func ExampleRequirement_Clone() {
	entry := fold.Requirement{Key: "team", Operator: fold.In, Values: []string{"red"}}
	copied := entry.Clone()
	copied.Values[0] = "blue"
	_, minimums, _ := fold.Of([]fold.Requirement{entry})
	fmt.Println(entry.Values, minimums == nil, fold.MinCount{Key: "team", Count: 2})
	// Output: [red] true {team 2}
}
