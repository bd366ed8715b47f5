package offering_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// E-17: everything that EC2 sells in a region is read, in 25 calls or fewer, and again after 12 h.
func TestTypesAreAskedForRarely(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	types := offering.NewTypes(a.ec2, a.clock)
	refresh := func() {
		t.Helper()
		if err := types.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	refresh()
	known := types.Known()
	first := a.Counts()["ec2:DescribeInstanceTypes"] + a.Counts()["ec2:DescribeInstanceTypeOfferings"]
	if first > 25 || len(known.Types) < 800 || !known.At.Equal(start) {
		t.Errorf("%d types in %d calls, at %s", len(known.Types), first, known.At)
	}
	for name, info := range known.Types {
		if !slices.Contains(info.SupportedVirtualizationTypes, ec2types.VirtualizationTypeHvm) ||
			name == "mac2.metal" {
			t.Errorf("%s is among the types", name)
		}
		if zones := known.Zones[name]; len(zones) == 0 || !slices.IsSorted(zones) || zones[0] < "us-east-1a" {
			t.Errorf("%s is sold in %v", name, zones)
		}
	}
	want := ec2test.Types(t)["g5.12xlarge"]
	if *known.Types["g5.12xlarge"].MemoryInfo.SizeInMiB != *want.MemoryInfo.SizeInMiB {
		t.Error("g5.12xlarge has another memory than EC2 says")
	}
	a.clock.Advance(12*time.Hour - time.Second)
	if refresh(); types.Known() != known {
		t.Error("EC2 was asked again before 12 h")
	}
	a.clock.Advance(time.Second)
	a.SetPageSize(97) // pages of any size are read to their end
	if refresh(); len(types.Known().Types) != len(known.Types) || len(types.Known().Zones) != len(known.Zones) {
		t.Errorf("%d types, %d of them with zones; want %d", len(types.Known().Types), len(types.Known().Zones),
			len(known.Types))
	}
	if types.Known() == known || !types.Known().At.Equal(types.Due().Add(-12*time.Hour)) {
		t.Errorf("after 12 h what is known is of %s, and due again at %s", types.Known().At, types.Due())
	}
}

// E-17: a refresh that fails, at whichever page, keeps what was known, and is tried again after 1, 2, 4 min.
func TestAFailedRefreshKeepsWhatWasKnown(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"ec2:DescribeInstanceTypes", "ec2:DescribeInstanceTypeOfferings"} {
		a := newAccount(t, ec2test.Faults{})
		types := offering.NewTypes(a.ec2, a.clock)
		if err := types.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		known := types.Known()
		a.clock.Advance(12 * time.Hour)
		if err := a.SetFaults(ec2test.Faults{Throttle: map[string]ec2test.Bucket{action: {Burst: 1}}}); err != nil {
			t.Fatal(err)
		}
		for _, wait := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
			if err := types.Refresh(t.Context()); err == nil {
				t.Errorf("%s fails, and nobody says so", action)
			}
			if types.Known() != known || types.Due().Sub(a.clock.Now()) != wait {
				t.Errorf("%s: due again after %s, want %s; kept: %t", action, types.Due().Sub(a.clock.Now()), wait,
					types.Known() == known)
			}
			a.Forget()
			if err := types.Refresh(t.Context()); err != nil || len(a.Calls()) > 0 {
				t.Errorf("EC2 is asked at once after a failure: %v, %d calls", err, len(a.Calls()))
			}
			a.clock.Advance(wait)
		}
		if err := a.SetFaults(ec2test.Faults{}); err != nil {
			t.Fatal(err)
		}
		if err := types.Refresh(t.Context()); err != nil || types.Known() == known {
			t.Errorf("%s works again, but what is known is old: %v", action, err)
		}
	}
}

// E-17, E-78: an unreadable or empty answer is a failure like any other.
func TestAnAnswerWithoutTypesIsNone(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"cut", "empty", "html", "types"} {
		a := newAccount(t,
			ec2test.Faults{Garbled: []ec2test.Garble{{Action: "ec2:DescribeInstanceTypes", Share: 1, How: how}}})
		types := offering.NewTypes(a.ec2, a.clock)
		if err := types.Refresh(t.Context()); err == nil || types.Known() == nil || len(types.Known().Types) > 0 {
			t.Errorf("%s: %v", how, err)
		}
	}
}

// paged answers with the given pages, whatever is asked.
type paged struct {
	types     []ec2.DescribeInstanceTypesOutput
	offerings []ec2.DescribeInstanceTypeOfferingsOutput
	calls     int
}

func (p *paged) DescribeInstanceTypes(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (
	*ec2.DescribeInstanceTypesOutput, error) {
	p.calls++
	return &p.types[min(p.calls, len(p.types))-1], nil
}

func (p *paged) DescribeInstanceTypeOfferings(context.Context, *ec2.DescribeInstanceTypeOfferingsInput,
	...func(*ec2.Options)) (
	*ec2.DescribeInstanceTypeOfferingsOutput, error) {
	p.calls++
	return &p.offerings[min(p.calls-len(p.types), len(p.offerings))-1], nil
}

// E-17, E-64: answers of some other servers: a zone twice, a type without data, a page that follows itself.
func TestOddListings(t *testing.T) {
	t.Parallel()
	large := ec2test.Types(t)["m5.large"]
	offered := ec2.DescribeInstanceTypeOfferingsOutput{InstanceTypeOfferings: []ec2types.InstanceTypeOffering{
		{InstanceType: "m5.large", Location: aws.String("b")}, {InstanceType: "m5.large", Location: aws.String("a")},
		{InstanceType: "m5.large"},
	}, NextToken: aws.String("1")}
	last := offered
	last.NextToken = aws.String("")
	api := &paged{
		types: []ec2.DescribeInstanceTypesOutput{
			{InstanceTypes: []ec2types.InstanceTypeInfo{{InstanceType: "m5.odd"}, large, {}},
				NextToken: aws.String("1")}, {},
		},
		offerings: []ec2.DescribeInstanceTypeOfferingsOutput{offered, last},
	}
	clock := timer.NewFake(start)
	types := offering.NewTypes(api, clock)
	if err := types.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if known := types.Known(); len(known.Types) != 1 || !slices.Equal(known.Zones["m5.large"], []string{"a", "b"}) {
		t.Errorf("%d types, m5.large in %v", len(known.Types), known.Zones["m5.large"])
	}
	known := types.Known()
	api.calls, api.offerings = 0, api.offerings[:1]
	clock.Advance(12 * time.Hour)
	err := types.Refresh(t.Context())
	if err == nil || !strings.Contains(err.Error(), "does not end") || types.Known() != known || api.calls > 5 {
		t.Errorf("a listing that does not end: %v, after %d calls", err, api.calls)
	}
}
