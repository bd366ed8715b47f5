package ec2_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

// spreading is an account whose default class puts its machines into a spread group.
func spreading(t *testing.T, s sold, faults ec2test.Faults) *account {
	t.Helper()
	a := newAccount(t, s, faults)
	a.server.AddPlacementGroup(ec2test.PlacementGroup{ID: "pg-1", Name: "apart", Strategy: "spread"})
	class := a.kube.classes["default"]
	class.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{ID: "pg-1"}
	a.Resolved([]*awsv1.EC2NodeClass{class}, map[string]resolve.Result{class.Name: {
		Placement: &resolve.PlacementGroup{ID: "pg-1", Name: "apart", Strategy: "spread"},
	}})
	return a
}

// offers counts what a class offers in each zone.
func (a *account) offers(t *testing.T, class string) map[string]int {
	t.Helper()
	c, err := a.Catalog(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	zones := map[string]int{}
	for _, kind := range c.Types {
		for _, o := range kind.Offerings {
			if o.Available {
				zones[o.Zone]++
			}
		}
	}
	return zones
}

// E-15: the eighth machine of a spread group in a zone is refused. The zone is unavailable for that group alone, until
// one of its machines ends or a minute has passed. No type is marked as short.
func TestE15_AFullZoneOfASpreadGroup(t *testing.T) {
	t.Parallel()
	s := whatIsSold(t)
	a := spreading(t, s, ec2test.Faults{})
	other := a.kube.classes["default"].DeepCopy()
	other.Name, other.UID, other.Spec.PlacementGroupSelector = "other", "uid-of-other", nil
	a.kube.classes["other"] = other
	before := a.offers(t, "other")
	inA := must(corev1.LabelTopologyZone, "us-east-1a")
	var insufficient *provider.InsufficientCapacityError
	var ids []string
	for i := range 8 {
		machine, err := a.Launch(t.Context(), claim(fmt.Sprintf("n%d", i), inA), time.Time{})
		switch {
		case i < 7 && err != nil:
			t.Fatalf("machine %d: %v", i, err)
		case i == 7 && !errors.As(err, &insufficient):
			t.Fatalf("the eighth: error %v, want *InsufficientCapacityError", err)
		}
		ids = append(ids, machine.ProviderID)
	}
	if zones := a.offers(t, "default"); zones["us-east-1a"] != 0 || zones["us-east-1b"] == 0 {
		t.Errorf("the group's class offers %v", zones)
	}
	if zones := a.offers(t, "other"); !maps.Equal(zones, before) {
		t.Errorf("a class without the group offers %v, and offered %v before: a type counts as short", zones, before)
	}
	if _, err := a.Launch(t.Context(), claim("elsewhere"), time.Time{}); err != nil {
		t.Errorf("launching in another zone: %v", err)
	}
	if err := a.Terminate(t.Context(), ids[0], nil); err != nil {
		t.Fatal(err)
	}
	a.server.Advance(time.Minute)
	if zones := a.offers(t, "default"); zones["us-east-1a"] == 0 {
		t.Errorf("a minute later the group's class offers %v", zones)
	}
	if _, err := a.Launch(t.Context(), claim("again", inA), time.Time{}); err != nil {
		t.Errorf("launching where one has ended: %v", err)
	}
}

// E-42, E-15: a type that is short for machines of a group is left out only for the group's class; one that is short
// without a group is left out for that class too.
func TestE42_AShortageInAPlacementGroupIsSeenByItsClass(t *testing.T) {
	t.Parallel()
	s := whatIsSold(t)
	shortA := ec2test.Faults{Pools: []ec2test.Pool{{Type: "m5.large", Zone: "us-east-1a", CapacityType: "on-demand"}}}
	a := spreading(t, s, shortA)
	offered := func(zone string) bool {
		c, err := a.Catalog(t.Context(), "default")
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range c.Types {
			for _, o := range kind.Offerings {
				if kind.Name == "m5.large" && o.Zone == zone && o.CapacityType == "on-demand" {
					return o.Available
				}
			}
		}
		t.Fatalf("m5.large is not in zone %s", zone)
		return false
	}
	if !offered("us-east-1a") {
		t.Fatal("m5.large is not offered before anything was refused")
	}
	only := claim("n0", func(c *karpenterv1.NodeClaim) { c.Spec.Requirements = nil },
		must(corev1.LabelInstanceTypeStable, "m5.large"),
		must(corev1.LabelTopologyZone, "us-east-1a"), must(karpenterv1.CapacityTypeLabelKey, "on-demand"))
	if _, err := a.Launch(t.Context(), only, time.Time{}); err == nil {
		t.Fatal("it was launched")
	}
	if offered("us-east-1a") || !offered("us-east-1b") {
		t.Errorf("offered in a: %t, in b: %t", offered("us-east-1a"), offered("us-east-1b"))
	}
	a.MarkUnavailable(provider.Offering{Type: "m5.large", Zone: "us-east-1b", CapacityType: "on-demand"})
	if offered("us-east-1b") {
		t.Error("what was marked without a group is offered in the group")
	}
}
