package resolve_test

import (
	"strings"
	"testing"
	"time"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

// E-02, E-03, E-15: a placement group is found by name or id, named if it does not exist, and kept during failures.
func TestAPlacementGroupIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	group := w.AddPlacementGroup(ec2test.PlacementGroup{Name: "near", Strategy: "partition", Partitions: 3})
	by := func(s awsv1.PlacementGroupSelector) func(*awsv1.EC2NodeClassSpec) {
		return func(spec *awsv1.EC2NodeClassSpec) { spec.PlacementGroupSelector = &s }
	}
	named := w.class("named", by(awsv1.PlacementGroupSelector{Name: "near"}))
	w.class("by id", by(awsv1.PlacementGroupSelector{ID: group.ID}))
	w.class("by id too", by(awsv1.PlacementGroupSelector{ID: group.ID}))
	w.ready()
	for name, result := range w.results {
		if p := result.Placement; p == nil || p.ID != group.ID || p.Strategy != "partition" || p.Partitions != 3 {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if n := w.Counts()["ec2:DescribePlacementGroups"]; n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
	if got := kinds(named); !strings.HasSuffix(got,
		"InstanceProfileReady PlacementGroupReady ValidationSucceeded Ready") {
		t.Errorf("conditions %s", got)
	}
	w.faults(throttled("ec2:DescribePlacementGroups"))
	w.restart()
	w.Advance(10 * time.Minute)
	w.resolve()
	w.expect(named, resolve.PlacementGroupReady, "True", resolve.PlacementGroupReady, "last seen at least 10 min ago")
	if p := w.results["named"].Placement; p == nil || p.Name != "near" || p.Strategy != "" {
		t.Errorf("a new process in trouble: %+v", p)
	}
	w.faults(ec2test.Faults{})
	w.Advance(time.Minute)
	for text, s := range map[string]awsv1.PlacementGroupSelector{"id pg-0": {ID: "pg-0"}, "name far": {Name: "far"}} {
		lost := w.class(text, by(s))
		w.resolve()
		w.expect(lost, resolve.PlacementGroupReady, "False", resolve.PlacementGroupNotFound, "("+text+")", "us-east-1")
		w.expect(lost, ready, "False", resolve.PlacementGroupNotFound)
	}
}
