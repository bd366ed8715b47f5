package launch

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
)

// Instance is a launched machine.
type Instance struct {
	ID string
	// Override is the pool of the machine, with the requested price and template. For a pool that was not requested,
	// it has what EC2 says, without a price.
	Override
	CapacityType string
}

// Refused is a reason why a launch did not bring all machines.
type Refused struct {
	refusal.Refusal
	CapacityType string
	// Pools are the pools without capacity, cheapest first. Only a refusal of offerings has any.
	Pools []Override
	// For is how long they count as unavailable if EC2 did not say which of them it refused. 0 means that it did say:
	// then the shortage backs off like any other.
	For time.Duration
}

// unclear is how long a pool counts as unavailable when the refusal may be about another one (E-42).
const unclear = time.Minute

// Read returns the machines of an answer, ordered by ID, and the refusals, each once and in EC2's order (E-41, E-42).
// An answer may have both. Missing fields come from the request.
func Read(r Request, out *ec2.CreateFleetOutput) (instances []Instance, refused []Refused) {
	if out == nil {
		return nil, nil
	}
	pools := r.Pools()
	for _, group := range out.Instances {
		said := r.said(group.LaunchTemplateAndOverrides)
		said.Type = cmp.Or(string(group.InstanceType), said.Type)
		said.Zone = cmp.Or(aws.ToString(group.AvailabilityZone), said.Zone)
		said.Subnet = cmp.Or(aws.ToString(group.SubnetId), said.Subnet)
		pool := said
		if fit := among(pools, said); len(fit) == 1 {
			pool = fit[0]
		}
		for _, id := range group.InstanceIds {
			instances = append(instances, Instance{ID: id, Override: pool, CapacityType: r.taken(group.Lifecycle)})
		}
	}
	slices.SortStableFunc(instances, func(a, b Instance) int { return strings.Compare(a.ID, b.ID) })
	instances = slices.CompactFunc(instances, func(a, b Instance) bool { return a.ID == b.ID })
	for _, e := range out.Errors {
		one := r.refused(pools, e)
		same := func(other Refused) bool {
			return other.Code == one.Code && other.CapacityType == one.CapacityType && other.For == one.For &&
				slices.Equal(other.Pools, one.Pools)
		}
		if !slices.ContainsFunc(refused, same) {
			refused = append(refused, one)
		}
	}
	return instances, refused
}

// refused reads an error of an answer.
func (r *Request) refused(pools []Override, e ec2types.CreateFleetError) Refused {
	code := aws.ToString(e.ErrorCode)
	one := Refused{
		Refusal:      refusal.Refusal{Class: refusal.ClassOf(code), Code: code, Message: aws.ToString(e.ErrorMessage)},
		CapacityType: r.taken(e.Lifecycle),
	}
	if !one.Class.OfOfferings() {
		return one
	}
	said := r.said(e.LaunchTemplateAndOverrides)
	one.Pools = among(pools, said)
	if len(one.Pools) == 0 && said.Type != "" && said.Zone != "" {
		one.Pools = []Override{said} // it was not requested, but EC2 says that it has no capacity
	}
	if len(one.Pools) > 1 {
		one.For = unclear
	}
	return one
}

// said returns the pool that an answer names, as far as it does.
func (r *Request) said(told *ec2types.LaunchTemplateAndOverridesResponse) Override {
	said := Override{Price: resources.Unpriced}
	if told == nil || told.Overrides == nil {
		return said
	}
	o := told.Overrides
	said.Type, said.Zone = string(o.InstanceType), aws.ToString(o.AvailabilityZone)
	said.Subnet, said.Image = aws.ToString(o.SubnetId), aws.ToString(o.ImageId)
	return said
}

// among returns the pools that agree with every field of said; all of them if it has none.
func among(pools []Override, said Override) []Override {
	fits := func(said, has string) bool { return said == "" || said == has }
	var list []Override
	for _, o := range pools {
		if fits(said.Type, o.Type) && fits(said.Zone, o.Zone) && fits(said.Subnet, o.Subnet) &&
			fits(said.Image, o.Image) {
			list = append(list, o)
		}
	}
	return list
}

// taken returns the capacity type for EC2's lifecycle of an instance. By default it is the requested one.
func (r *Request) taken(lifecycle ec2types.InstanceLifecycle) string {
	switch {
	case lifecycle == ec2types.InstanceLifecycleSpot:
		return catalog.Spot
	case lifecycle == ec2types.InstanceLifecycleOnDemand && r.CapacityType == catalog.Spot:
		return catalog.OnDemand
	case lifecycle == ec2types.InstanceLifecycleCapacityBlock ||
		lifecycle == ec2types.InstanceLifecycleInterruptibleCapacityReservation:
		return catalog.Reserved
	}
	return r.CapacityType
}
