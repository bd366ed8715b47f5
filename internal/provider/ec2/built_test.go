package ec2_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/subnet"
)

// E-49: a question about drift builds no catalogue as long as the class has the machine's type: ten thousand claims
// are asked about every five minutes. If it has the type no more, that is seen at once.
func TestDriftBuildsNoCatalogue(t *testing.T) {
	t.Parallel()
	s := whatIsSold(t)
	a := newAccount(t, s, ec2test.Faults{})
	var built atomic.Int64 // catalogues: each asks for this type once
	a.branches = func(kind string) int64 {
		if kind == "c5.large" {
			built.Add(1)
		}
		return 0
	}
	a.Provider = a.restart(t, s, "")
	c := claim("n0")
	c.Labels[corev1.LabelInstanceTypeStable] = "m5.large"
	if _, err := a.Catalog(t.Context(), "default"); err != nil || built.Load() != 1 {
		t.Fatalf("%d catalogues for one question, error %v", built.Load(), err)
	}
	for range 1000 {
		a.server.Advance(300 * time.Millisecond)
		if got, err := a.Drifted(t.Context(), c); got.Reason != "" || err != nil {
			t.Fatalf("drifted for %q, error %v; want not", got, err)
		}
	}
	if more := built.Load() - 1; more != 0 {
		t.Errorf("1,000 questions in 300 s built %d catalogues, want none", more)
	}
	class := a.kube.classes["default"]
	subnets := class.Status.Subnets
	class.Status.Subnets = nil
	if got, err := a.Drifted(t.Context(), c); got.Reason != "" || err != nil {
		t.Errorf("of a class that offers nothing, drifted for %q, error %v; want not", got, err)
	}
	class.Status.Subnets, class.ResourceVersion = subnets, "2"
	class.Status.AMIs[0].Requirements[0].Values = []string{"arm64"}
	if got, err := a.Drifted(t.Context(), c); got.Reason != provider.DriftInstanceTypeNotFound || err != nil {
		t.Errorf("of a class that lost the type, drifted for %q, error %v; want %s", got, err,
			provider.DriftInstanceTypeNotFound)
	}
}

// E-82: a catalogue that is built anew without a change is the very same one, so that nobody has to compare it. Each
// change makes another one: those that are reported at once, those by time alone within a second.
func TestAnUnchangedCatalogueStaysTheSame(t *testing.T) {
	t.Parallel()
	a := newAccount(t, whatIsSold(t), ec2test.Faults{})
	a.reserve(map[string]int64{"cr-1": 1})
	class := a.kube.classes["default"]
	ends := a.server.Now().Add(10 * time.Minute)
	class.Status.CapacityReservations[0].EndTime = &metav1.Time{Time: ends}
	last, err := a.Catalog(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	look := func(what string, changed bool, has func(catalog.Offering) bool) {
		t.Helper()
		now, err := a.Catalog(t.Context(), "default")
		if err != nil {
			t.Fatal(err)
		}
		if other := &now.Types[0] != &last.Types[0]; other != changed {
			t.Errorf("%s: another catalogue: %t, want %t", what, other, changed)
		}
		i := slices.IndexFunc(now.Types, func(kind catalog.Type) bool { return kind.Name == "m5.large" })
		if !slices.ContainsFunc(now.Types[i].Offerings, has) {
			t.Errorf("%s: m5.large has the offerings %+v", what, now.Types[i].Offerings)
		}
		last = now
	}
	spot := provider.Offering{Type: "m5.large", Zone: "us-east-1a", CapacityType: catalog.Spot}
	spotIs := func(available bool) func(o catalog.Offering) bool {
		return func(o catalog.Offering) bool {
			return o.Zone == spot.Zone && o.CapacityType == spot.CapacityType && o.Available == available
		}
	}
	any := func(catalog.Offering) bool { return true }
	for range 3 {
		a.server.Advance(30 * time.Second)
		look("nothing has changed", false, spotIs(true))
	}
	a.MarkUnavailable(spot)
	look("an offering is short", true, spotIs(false))
	a.server.Advance(30 * time.Second)
	look("it is still short", false, spotIs(false))
	a.server.Advance(31 * time.Second)
	look("it is short no more", true, spotIs(true))
	class.Annotations, class.ResourceVersion = map[string]string{"of": "nobody"}, "2"
	look("the class has changed in what does not matter", false, any)
	a.free(20)
	look("addresses are free", false, any)
	a.pods = subnet.Secondary
	a.server.Advance(2 * time.Second)
	look("pods take addresses, and there are not enough", true, spotIs(false))
	a.free(4000)
	look("there are enough", true, spotIs(true))
	a.server.Advance(ends.Sub(a.server.Now()))
	look("the reservation has ended", true, any)
	if i := slices.IndexFunc(last.Types, func(kind catalog.Type) bool {
		return slices.ContainsFunc(kind.Offerings, func(o catalog.Offering) bool {
			return o.CapacityType == catalog.Reserved
		})
	}); i >= 0 {
		t.Errorf("%s is still offered in the reservation", last.Types[i].Name)
	}
	a.server.Advance(time.Hour)
	look("nothing more has changed", false, any)
}

// free reports the free addresses of each subnet of the class.
func (a *account) free(addresses int64) {
	a.server.Advance(time.Minute) // a later answer
	class, result := a.kube.classes["default"], resolve.Result{SubnetsAsked: a.server.Now()}
	for i, n := range class.Status.Subnets {
		free := addresses
		if i > 0 {
			free = addresses + 1 // one subnet has most
		}
		result.Subnets = append(result.Subnets, subnet.Subnet{ID: n.ID, Zone: n.Zone, ZoneID: n.ZoneID, Free: free})
	}
	a.Resolved([]*awsv1.EC2NodeClass{class}, map[string]resolve.Result{"default": result})
}
