package ec2_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/quota"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// claim returns a claim like those of planning: some types, any zone, a pool.
func claim(name string, change ...func(*karpenterv1.NodeClaim)) *karpenterv1.NodeClaim {
	c := &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{
			karpenterv1.NodePoolLabelKey: "default", "team": "blue",
		}},
		Spec: karpenterv1.NodeClaimSpec{
			NodeClassRef: &karpenterv1.NodeClassReference{Group: awsv1.Group, Kind: "EC2NodeClass", Name: "default"},
			Resources: karpenterv1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")},
			},
			Requirements: []karpenterv1.NodeSelectorRequirementWithMinValues{
				in(corev1.LabelInstanceTypeStable, "m5.large", "m5a.large", "c5.large", "m6i.xlarge"),
			},
		},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func in(key string, values ...string) karpenterv1.NodeSelectorRequirementWithMinValues {
	return karpenterv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn,
		Values: values}
}

func must(key string, values ...string) func(*karpenterv1.NodeClaim) {
	return func(c *karpenterv1.NodeClaim) { c.Spec.Requirements = append(c.Spec.Requirements, in(key, values...)) }
}

// E-29, E-61: claims that ask for the same share calls, one for each hundred, and one template.
func TestFiveHundredClaims(t *testing.T) {
	t.Parallel()
	s := whatIsSold(t)
	a := newAccount(t, s, ec2test.Faults{})
	a.clock.slow = true
	a.Provider = a.restart(t, s, "")
	var group sync.WaitGroup
	failed := make(chan error, 500)
	for i := range 500 {
		group.Go(func() {
			if _, err := a.Launch(t.Context(), claim(fmt.Sprintf("n%03d", i)), time.Time{}); err != nil {
				failed <- err
			}
		})
	}
	group.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	if n := a.Machines(); n != 500 {
		t.Errorf("%d machines for 500 claims", n)
	}
	counts := a.server.Counts()
	if counts["ec2:CreateFleet"] != 5 {
		t.Errorf("%d calls of CreateFleet, want 5", counts["ec2:CreateFleet"])
	}
	if counts["ec2:CreateLaunchTemplate"] != 2 { // the types have two numbers of pods
		t.Errorf("%d templates were made, want 2: %v", counts["ec2:CreateLaunchTemplate"], a.server.LaunchTemplates())
	}
	for _, i := range a.server.Instances() {
		for key, want := range map[string]string{
			"karpenter.sh/nodepool": "default", "karpenter.k8s.aws/ec2nodeclass": "default",
			"eks:eks-cluster-name": clusterName, "kubernetes.io/cluster/" + clusterName: "owned",
		} {
			if i.Tags[key] != want || i.VolumeTags[key] != want {
				t.Fatalf("instance %s has tag %s=%q, its volume %q; want %q", i.ID, key, i.Tags[key],
					i.VolumeTags[key], want)
			}
		}
		if i.Tags["joiner.sh/launch"] == "" || i.Token != i.Tags["joiner.sh/launch"] {
			t.Fatalf("instance %s has launch %q and token %q, want the same", i.ID, i.Tags["joiner.sh/launch"],
				i.Token)
		}
	}
}

// E-35, E-61: claims with the size of their company wait for no timer: a single one goes at once, and 450 share five
// calls, in any order and however slowly they arrive.
func TestClaimsThatWereMadeTogether(t *testing.T) {
	t.Parallel()
	s := whatIsSold(t)
	a := newAccount(t, s, ec2test.Faults{})
	a.clock.never = true
	a.Provider = a.restart(t, s, "")
	of := func(group string, size int) func(*karpenterv1.NodeClaim) {
		return func(c *karpenterv1.NodeClaim) { translate.SetCompany(c, translate.Company{Group: group, Size: size}) }
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := a.Launch(ctx, claim("alone", of("one", 1)), time.Time{}); err != nil {
		t.Fatal(err)
	}
	const many = 450
	a.server.Forget()
	var group sync.WaitGroup
	for i := range many {
		group.Go(func() {
			if _, err := a.Launch(ctx, claim(fmt.Sprintf("n%03d", i), of("many", many)), time.Time{}); err != nil {
				t.Error(err)
			}
		})
		if i%50 == 0 {
			<-time.After(20 * time.Millisecond) // an API server that is busy
		}
	}
	group.Wait()
	if calls, n := a.server.Counts()["ec2:CreateFleet"], a.Machines(); calls != 5 || n != many+1 {
		t.Errorf("%d calls of CreateFleet brought %d machines, want 5 and %d", calls, n, many+1)
	}
}

// E-36 to E-38: a lost answer, and a process that ends before its answer, do no harm: there is one machine for each
// claim, however EC2 reacts to a repeated token.
func TestAProcessThatEndsBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	s := whatIsSold(t)
	for _, tokens := range []ec2test.TokenBehaviour{ec2test.TokenReplay, ec2test.TokenFleetOnly,
		ec2test.TokenMismatch} {
		t.Run(string(tokens), func(t *testing.T) {
			t.Parallel()
			a := newAccount(t, s, ec2test.Faults{})
			for i := range 17 {
				c := claim(fmt.Sprintf("n%02d", i))
				if err := a.server.SetFaults(ec2test.Faults{Tokens: tokens,
					LostAfter: []ec2test.Loss{{Action: "ec2:CreateFleet", Share: 1, Times: 1}}}); err != nil {
					t.Fatal(err)
				}
				if _, err := a.Launch(t.Context(), c, time.Time{}); err == nil || provider.Refused(err) {
					t.Fatalf("%s: error %v, want one that leaves open what came of it", c.Name, err)
				}
				a.Provider = a.restart(t, s, "")
				stored := a.kube.Of(c.UID)
				// what came is not to be had any more: no matter for what is there
				for _, m := range a.server.Instances() {
					a.MarkUnavailable(provider.Offering{Type: m.Type, Zone: m.Zone, CapacityType: m.CapacityType})
				}
				first, err := a.Launch(t.Context(), stored, time.Time{})
				if err != nil {
					t.Fatalf("%s after the restart: %v", c.Name, err)
				}
				a.kube.bind(stored, first.ProviderID)
				if n := a.Machines(); n != i+1 {
					t.Fatalf("%d machines for %d claims", n, i+1)
				}
			}
			a.Settle(t)
			list, err := a.List(t.Context())
			if err != nil || len(list) != 17 {
				t.Errorf("%d machines are listed, error %v", len(list), err)
			}
			for _, i := range list {
				if i.ClaimName == "" || i.ClaimUID != "uid-of-"+i.ClaimName || i.Labels["team"] != "blue" {
					t.Errorf("machine %s is of claim %q, UID %q, with labels %v", i.ProviderID, i.ClaimName,
						i.ClaimUID, i.Labels)
				}
			}
		})
	}
}

// bind writes a machine on its claim, like the controller of claims.
func (c *cluster) bind(claim *karpenterv1.NodeClaim, providerID string) {
	stored := claim.DeepCopy()
	stored.Status.ProviderID = providerID
	c.Put(stored)
}

// E-37: orphans are distinguished from machines that a claim may still take.
func TestOrphansAreTold(t *testing.T) {
	t.Parallel()
	s := whatIsSold(t)
	a := newAccount(t, s, ec2test.Faults{LostAfter: []ec2test.Loss{{Action: "ec2:CreateFleet", Share: 1, Times: 1}}})
	c := claim("n0")
	if _, err := a.Launch(t.Context(), c, time.Time{}); err == nil {
		t.Fatal("no answer was lost")
	}
	a.Provider = a.restart(t, s, "")
	a.Settle(t)
	list, err := a.List(t.Context())
	if err != nil || len(list) != 1 || list[0].ClaimUID != string(c.UID) {
		t.Errorf("listed %+v, error %v; want the machine as the claim's that waits for it", list, err)
	}
	a.kube.Delete(c.UID)
	if list, err = a.List(t.Context()); err != nil || len(list) != 1 || list[0].ClaimUID != "" {
		t.Errorf("listed %+v, error %v; want the machine as nobody's", list, err)
	}
}

// E-41 to E-43: offerings without capacity are left out of the catalogue, and the claim says what was tried.
func TestWhatCannotBeHad(t *testing.T) {
	t.Parallel()
	s := whatIsSold(t)
	for name, test := range map[string]struct {
		faults ec2test.Faults
		gone   func(o provider.Offering) bool
	}{
		"capacity": {
			ec2test.Faults{Pools: []ec2test.Pool{{Type: "m5.large", Zone: "us-east-1a", CapacityType: "on-demand"}}},
			func(o provider.Offering) bool {
				return o.Type == "m5.large" && o.Zone == "us-east-1a" && o.CapacityType == "on-demand"
			}},
		"quota": {ec2test.Faults{Quotas: []ec2test.Quota{{Group: "standard", CapacityType: "on-demand", VCPUs: 1}}},
			func(o provider.Offering) bool { return o.Type == "c5.2xlarge" && o.CapacityType == "on-demand" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t, s, test.faults)
			only := claim("n0", func(c *karpenterv1.NodeClaim) { c.Spec.Requirements = nil },
				must(corev1.LabelInstanceTypeStable, "m5.large"),
				must(corev1.LabelTopologyZone, "us-east-1a"), must(karpenterv1.CapacityTypeLabelKey, "on-demand"))
			_, err := a.Launch(t.Context(), only, time.Time{})
			var insufficient *provider.InsufficientCapacityError
			if !errors.As(err, &insufficient) || !strings.Contains(err.Error(), "m5.large/us-east-1a/on-demand") {
				t.Fatalf("error %v, want *InsufficientCapacityError that names what was tried", err)
			}
			c, err := a.Catalog(t.Context(), "default")
			if err != nil {
				t.Fatal(err)
			}
			marked, left := 0, 0
			for _, kind := range c.Types {
				for _, o := range kind.Offerings {
					switch {
					case test.gone(provider.Offering{Type: kind.Name, Zone: o.Zone, CapacityType: o.CapacityType}) &&
						o.Available:
						t.Errorf("%s/%s/%s is offered", kind.Name, o.Zone, o.CapacityType)
					case test.gone(provider.Offering{Type: kind.Name, Zone: o.Zone, CapacityType: o.CapacityType}):
						marked++
					case o.Available:
						left++
					}
				}
			}
			if marked == 0 || left == 0 {
				t.Errorf("%d offerings are marked, %d are left", marked, left)
			}
			if _, err := a.Launch(t.Context(), claim("n1"), time.Time{}); err != nil {
				t.Errorf("launching elsewhere: %v", err)
			}
		})
	}
}

// E-44, E-60: missing rights are reported, and no claim is given up because of throttling.
func TestRefusalsOfTheCall(t *testing.T) {
	t.Parallel()
	s := whatIsSold(t)
	a := newAccount(t, s, ec2test.Faults{Deny: []ec2test.Denial{{Action: "ec2:CreateFleet"}}})
	var failure *provider.LaunchError
	if _, err := a.Launch(t.Context(), claim("n0"), time.Time{}); !errors.As(err, &failure) ||
		failure.ConditionReason != ec2.ReasonUnauthorized {
		t.Errorf("without rights: error %v, want *LaunchError Unauthorized", err)
	}
	a.Allowed("uid-of-default")
	if err := a.server.SetFaults(ec2test.Faults{
		Throttle: map[string]ec2test.Bucket{"ec2:CreateFleet": {}},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Launch(t.Context(), claim("n1"), time.Time{}); !errors.Is(err, provider.ErrThrottled) {
		t.Errorf("throttled: error %v, want ErrThrottled", err)
	}
	if n := a.Machines(); n != 0 {
		t.Errorf("%d machines", n)
	}
	if err := a.server.SetFaults(ec2test.Faults{Deny: []ec2test.Denial{{Action: "ec2:CreateFleet"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Launch(t.Context(), claim("n0"), time.Time{}); !errors.As(err, &failure) {
		t.Errorf("without rights again: error %v", err)
	}
	if err := a.server.SetFaults(ec2test.Faults{}); err != nil {
		t.Fatal(err)
	}
	var notReady *provider.NodeClassNotReadyError
	if _, err := a.Launch(t.Context(), claim("n0"), time.Time{}); !errors.As(err, &notReady) ||
		!strings.Contains(err.Error(), "CreateFleet") {
		t.Errorf("right after it: error %v, want that the class may not launch, with the action", err)
	}
	before := a.server.Counts()["ec2:CreateFleet"]
	a.server.Advance(29 * time.Minute)
	if _, err := a.Launch(t.Context(), claim("n0"), time.Time{}); err == nil ||
		a.server.Counts()["ec2:CreateFleet"] != before {
		t.Errorf("29 min later: error %v, and %d calls more; want none", err,
			a.server.Counts()["ec2:CreateFleet"]-before)
	}
	a.server.Advance(2 * time.Minute)
	for _, name := range []string{"n0", "n1"} {
		if _, err := a.Launch(t.Context(), claim(name), time.Time{}); err != nil {
			t.Errorf("%s once it may: %v", name, err)
		}
	}
	if n := a.Machines(); n != 2 {
		t.Errorf("%d machines for 2 claims", n)
	}
}

// A caller that gives up during the call leaves a machine that is listed completely.
func TestWhoGivesUp(t *testing.T) {
	t.Parallel()
	a := newAccount(t, whatIsSold(t), ec2test.Faults{})
	ctx, giveUp := context.WithCancel(t.Context())
	a.server.Deny(func(ask ec2test.Ask) string {
		if ask.Action == "ec2:CreateFleet" {
			giveUp()
		}
		return ""
	})
	if _, err := a.Launch(ctx, claim("n0"), time.Time{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want that of the context", err)
	}
	for range 200 { // until the answer has come, and a little longer
		list, err := a.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range list {
			if i.ClaimUID != "uid-of-n0" || i.Labels["team"] != "blue" || i.Capacity.Cpu().IsZero() || i.Price <= 0 {
				t.Fatalf("listed %+v, want the claim's machine with its labels, capacity and price", i)
			}
		}
	}
	if n := a.Machines(); n != 1 {
		t.Errorf("%d machines", n)
	}
}

// E-43: an account without the role for spot gets no spot for half an hour, on-demand in its place, and is told the
// command.
func TestTheRoleForSpotIsMissing(t *testing.T) {
	t.Parallel()
	a := newAccount(t, whatIsSold(t), ec2test.Faults{FleetErrors: []ec2test.FleetError{{
		Code:    quota.NoSpotRole,
		Message: "The provided credentials do not have permission to create the service-linked role", Share: 1,
		Times: 1, Instead: true,
	}}})
	_, err := a.Launch(t.Context(), claim("n0"), time.Time{})
	var insufficient *provider.InsufficientCapacityError
	if !errors.As(err, &insufficient) {
		t.Fatalf("error %v, want *InsufficientCapacityError: something else may be had", err)
	}
	i, err := a.Launch(t.Context(), claim("n1"), time.Time{})
	if err != nil || i.CapacityType != "on-demand" {
		t.Errorf("launched %s, error %v; want on-demand", i.CapacityType, err)
	}
	if len(a.told) != 1 || a.told[0].Reason != quota.ReasonSpotRoleMissing ||
		!strings.Contains(a.told[0].Message, "aws iam create-service-linked-role") {
		t.Errorf("told %+v", a.told)
	}
}

// E-43: too many fleets mark the whole capacity type for a minute, whether EC2 refuses the call or the fleet has the
// error, which names no pool; and an event says so.
func TestTooManyFleets(t *testing.T) {
	t.Parallel()
	const code = "MaxFleetCountExceeded"
	s := whatIsSold(t)
	for name, faults := range map[string]ec2test.Faults{
		"the call":              {MaxFleets: 1},
		"an error of the fleet": {FleetErrors: []ec2test.FleetError{{Code: code, Share: 1, Times: 1, Instead: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t, s, ec2test.Faults{})
			if _, err := a.Launch(t.Context(), claim("first"), time.Time{}); err != nil {
				t.Fatal(err)
			}
			if err := a.server.SetFaults(faults); err != nil {
				t.Fatal(err)
			}
			_, err := a.Launch(t.Context(), claim("n0"), time.Time{})
			var insufficient *provider.InsufficientCapacityError
			if !errors.As(err, &insufficient) {
				t.Fatalf("error %v, want *InsufficientCapacityError: something else may be had", err)
			}
			if left := a.offered(t); left["spot"] > 0 || left["on-demand"] == 0 {
				t.Errorf("offered are %v, want no spot and all on-demand", left)
			}
			if len(a.told) != 1 || a.told[0].Reason != quota.ReasonExceeded ||
				!strings.Contains(a.told[0].Message, code) {
				t.Errorf("told %+v, want %s once", a.told, quota.ReasonExceeded)
			}
			a.server.Advance(time.Minute)
			if left := a.offered(t); left["spot"] == 0 {
				t.Errorf("a minute later offered are %v", left)
			}
		})
	}
}

// offered counts the offerings of the class that are available, by capacity type.
func (a *account) offered(t *testing.T) map[string]int {
	t.Helper()
	c, err := a.Catalog(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]int{}
	for _, kind := range c.Types {
		for _, o := range kind.Offerings {
			if o.Available {
				left[o.CapacityType]++
			}
		}
	}
	return left
}

// E-45: an instance that ends before its node is there is explained, once; the third one of the class's own fault
// within ten minutes rests it, each further one for longer.
func TestInstancesThatFail(t *testing.T) {
	t.Parallel()
	a := newAccount(t, whatIsSold(t), ec2test.Faults{})
	fail := func(name, code string) {
		t.Helper()
		c := claim(name)
		i, err := a.Launch(t.Context(), c, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		a.kube.bind(c, i.ProviderID)
		a.server.End(i.ProviderID[strings.LastIndex(i.ProviderID, "/")+1:], code, "because")
		a.server.Advance(time.Minute)
		for range 2 {
			if _, err := a.Get(t.Context(), i.ProviderID); !errors.Is(err, provider.ErrNotFound) ||
				!strings.Contains(err.Error(), code) {
				t.Errorf("%s: error %v, want that it is gone, and why", name, err)
			}
		}
	}
	rests := func(want bool) time.Time {
		t.Helper()
		text, until := a.Failing("uid-of-default")
		if (text != "") != want || want && !strings.Contains(text, "Client.InvalidKMSKey.InvalidState") {
			t.Errorf("failing: %q, want %v", text, want)
		}
		return until
	}
	fail("n0", "Server.InsufficientInstanceCapacity")
	fail("n1", "Client.InvalidKMSKey.InvalidState")
	fail("n2", "Client.InvalidKMSKey.InvalidState")
	rests(false)
	fail("n3", "Client.InvalidKMSKey.InvalidState")
	first := rests(true).Sub(a.server.Now())
	if len(a.told) != 4 || a.told[1].Reason != ec2.EventInstanceFailed || a.told[1].Claim != "n1" ||
		!strings.Contains(a.told[1].Message, "because") {
		t.Errorf("told %+v", a.told)
	}
	a.server.Advance(first)
	rests(false)
	fail("n4", "Client.InvalidKMSKey.InvalidState")
	if second := rests(true).Sub(a.server.Now()); second <= first {
		t.Errorf("rests for %s after %s, want longer", second, first)
	}
}
