package launch

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tag"
)

// Request is a launch.
type Request struct {
	// ID is the client token (E-36).
	ID    launchid.ID
	Count int // machines, from 1
	// CapacityType and Kind are those of the [Choice].
	CapacityType string
	Kind         Kind
	// Overrides are the pools, each with its launch template. Those beyond EC2's bounds are cut.
	Overrides []Override
	Minima    []Least
	// Ranked means that the prices differ from EC2's: overlays or commitments have changed them. Then EC2 must follow
	// our order.
	Ranked bool
	// Tags are the tags of fleet, instances and volumes, from packages tag and launchid. Interfaces and spot requests
	// get theirs from the launch template.
	Tags map[string]string
	// Context is spec.context of the class, "" for none.
	Context string
}

// version is the only version of our launch templates. Versions that others add do not count.
const version = "1"

// Pools returns the overrides within EC2's bounds, cheapest first: those that the fleet has.
func (r *Request) Pools() []Override { return Cut(r.Overrides, FleetBounds(), r.Minima) }

// Fleet returns the call for a launch (E-28). It does not depend on the order of the request's overrides and tags,
// except that the first of equal pools counts.
func Fleet(r Request) *ec2.CreateFleetInput {
	in := &ec2.CreateFleetInput{
		Type: ec2types.FleetTypeInstant, ClientToken: aws.String(string(r.ID)),
		TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: aws.Int32(int32(r.Count)), DefaultTargetCapacityType: r.target(),
		},
		LaunchTemplateConfigs: r.configs(),
	}
	if r.Context != "" {
		in.Context = aws.String(r.Context)
	}
	switch in.TargetCapacitySpecification.DefaultTargetCapacityType {
	case ec2types.DefaultTargetCapacityTypeSpot:
		strategy := ec2types.SpotAllocationStrategyPriceCapacityOptimized
		if r.Ranked {
			strategy = ec2types.SpotAllocationStrategyCapacityOptimizedPrioritized
		}
		in.SpotOptions = &ec2types.SpotOptionsRequest{AllocationStrategy: strategy}
	case ec2types.DefaultTargetCapacityTypeOnDemand:
		strategy := ec2types.FleetOnDemandAllocationStrategyLowestPrice
		if r.Ranked {
			strategy = ec2types.FleetOnDemandAllocationStrategyPrioritized
		}
		in.OnDemandOptions = &ec2types.OnDemandOptionsRequest{AllocationStrategy: strategy}
	case ec2types.DefaultTargetCapacityTypeReservedCapacity:
		in.ReservedCapacityOptions = &ec2types.ReservedCapacityOptionsRequest{
			ReservationTypes: []ec2types.FleetReservationType{
				ec2types.FleetReservationTypeInterruptibleCapacityReservation,
			},
		}
	}
	for _, kind := range []ec2types.ResourceType{ec2types.ResourceTypeFleet, ec2types.ResourceTypeInstance,
		ec2types.ResourceTypeVolume} {
		in.TagSpecifications = append(in.TagSpecifications,
			ec2types.TagSpecification{ResourceType: kind, Tags: tag.List(r.Tags)})
	}
	return in
}

// target returns EC2's name for the capacity type. A plain reservation is on-demand; its template names it.
func (r *Request) target() ec2types.DefaultTargetCapacityType {
	switch {
	case r.CapacityType == catalog.Spot:
		return ec2types.DefaultTargetCapacityTypeSpot
	case r.CapacityType == catalog.Reserved && r.Kind == Block:
		return ec2types.DefaultTargetCapacityTypeCapacityBlock
	case r.CapacityType == catalog.Reserved && r.Kind == Interruptible:
		return ec2types.DefaultTargetCapacityTypeReservedCapacity
	}
	return ec2types.DefaultTargetCapacityTypeOnDemand
}

// configs returns the pools by template, ordered by the cheapest pool of each.
func (r *Request) configs() []ec2types.FleetLaunchTemplateConfigRequest {
	var configs []ec2types.FleetLaunchTemplateConfigRequest
	at := map[string]int{} // by template: its position
	rank, last := -1.0, resources.Money(-1)
	for _, o := range r.Pools() {
		i, known := at[o.Template]
		if !known {
			i = len(configs)
			at[o.Template] = i
			configs = append(configs, ec2types.FleetLaunchTemplateConfigRequest{
				LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{
					LaunchTemplateName: aws.String(o.Template), Version: aws.String(version),
				},
			})
		}
		override := ec2types.FleetLaunchTemplateOverridesRequest{
			InstanceType: ec2types.InstanceType(o.Type), SubnetId: aws.String(o.Subnet),
			AvailabilityZone: aws.String(o.Zone), ImageId: aws.String(o.Image),
		}
		if o.Price != last {
			rank, last = rank+1, o.Price
		}
		if r.Ranked {
			override.Priority = aws.Float64(rank)
		}
		configs[i].Overrides = append(configs[i].Overrides, override)
	}
	return configs
}
