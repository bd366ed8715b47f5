package ec2test

import (
	"fmt"
	"slices"
)

type createFleetIn struct {
	checked
	Token    string                 `query:"ClientToken"`
	Context  string                 `query:"Context"`
	Kind     string                 `query:"Type"`
	Configs  []fleetConfig          `query:"LaunchTemplateConfigs"`
	Target   *fleetTarget           `query:"TargetCapacitySpecification"`
	Spot     *fleetSpot             `query:"SpotOptions"`
	OnDemand *fleetOnDemand         `query:"OnDemandOptions"`
	Reserved *fleetReservedCapacity `query:"ReservedCapacityOptions"`
	Tags     []tagSpecification     `query:"TagSpecification"`
}

type fleetConfig struct {
	Template  fleetTemplate   `query:"LaunchTemplateSpecification"`
	Overrides []fleetOverride `query:"Overrides"`
}

type fleetTemplate struct {
	ID      string `query:"LaunchTemplateId" xml:"launchTemplateId,omitempty"`
	Name    string `query:"LaunchTemplateName" xml:"launchTemplateName,omitempty"`
	Version string `query:"Version" xml:"version,omitempty"`
}

type fleetOverride struct {
	Zone     string   `query:"AvailabilityZone" xml:"availabilityZone,omitempty"`
	Image    string   `query:"ImageId" xml:"imageId,omitempty"`
	Type     string   `query:"InstanceType" xml:"instanceType,omitempty"`
	MaxPrice string   `query:"MaxPrice" xml:"maxPrice,omitempty"`
	Priority *float64 `query:"Priority" xml:"priority"`
	Subnet   string   `query:"SubnetId" xml:"subnetId,omitempty"`
}

type fleetTarget struct {
	Default  string `query:"DefaultTargetCapacityType"`
	OnDemand int    `query:"OnDemandTargetCapacity"`
	Spot     int    `query:"SpotTargetCapacity"`
	Total    int    `query:"TotalTargetCapacity"`
}

type fleetSpot struct {
	Strategy     string `query:"AllocationStrategy"`
	Interruption string `query:"InstanceInterruptionBehavior"`
}

type fleetOnDemand struct {
	Strategy    string `query:"AllocationStrategy"`
	Reservation *struct {
		Usage string `query:"UsageStrategy"`
	} `query:"CapacityReservationOptions"`
}

type fleetReservedCapacity struct {
	Types []string `query:"ReservationType"`
}

// fleet is the request and the answer of a client token.
type fleet struct {
	request string
	out     fleetOut
}

type fleetOut struct {
	ID        string           `xml:"fleetId"`
	Errors    []fleetError     `xml:"errorSet>item"`
	Instances []fleetInstances `xml:"fleetInstanceSet>item"`
}

type fleetLaunch struct {
	Template fleetTemplate `xml:"launchTemplateSpecification"`
	Override fleetOverride `xml:"overrides"`
}

type fleetError struct {
	Launch    *fleetLaunch `xml:"launchTemplateAndOverrides"`
	Lifecycle string       `xml:"lifecycle"`
	Code      string       `xml:"errorCode"`
	Message   string       `xml:"errorMessage"`
}

type fleetInstances struct {
	Launch    fleetLaunch `xml:"launchTemplateAndOverrides"`
	Lifecycle string      `xml:"lifecycle"`
	IDs       []string    `xml:"instanceIds>item"`
	Type      string      `xml:"instanceType"`
	Zone      string      `xml:"availabilityZone"`
	Subnet    string      `xml:"subnetId"`
}

// maxTarget is EC2's documented quota of instances for one fleet.
const maxTarget = 10000

// maxOverrides is EC2's documented bound for all the configurations of a fleet together.
const maxOverrides = 300

func createFleet(c *call, in *createFleetIn) (any, error) {
	launch, err := c.newLaunch(in)
	if err != nil {
		return nil, err
	}
	fleetTags, err := tagsOf(in.Tags, "fleet")
	if err != nil {
		return nil, err
	}
	if err := c.authorize(c.creating("fleet", fleetTags)...); err != nil {
		return nil, err
	}
	if err := launch.mayOffer(); err != nil {
		return nil, err
	}
	if err := c.dry(in.DryRun); err != nil {
		return nil, err
	}
	request := fmt.Sprintf("%#v", c.parameters.(*parameter).flat())
	if known := c.tokens[in.Token]; known != nil && in.Token != "" && c.faults.Tokens != TokenIgnore {
		return c.repeat(known, request)
	}
	if c.faults.MaxFleets > 0 && c.fleets >= c.faults.MaxFleets {
		return nil, refuse(400, "MaxFleetCountExceeded", "You have reached the maximum number of fleets: %d",
			c.faults.MaxFleets)
	}
	if c.faults.throttled(c, float64(in.Target.Total), " instances") {
		return nil, throttledBy(ec2Query{})
	}
	c.fleets++
	out := fleetOut{ID: "fleet-" + c.newID("")[1:]}
	launch.fleet = out.ID
	if f := c.faults.refuseFleet(c); f != nil {
		out.Errors = append(out.Errors, fleetError{Lifecycle: launch.capacityType, Code: f.Code, Message: f.Message})
		if f.Instead {
			launch.left = 0
		}
	}
	launch.fill(&out)
	if in.Token != "" {
		c.tokens[in.Token] = &fleet{request: request, out: out}
	}
	return out, nil
}

// mayOffer asks for the rights to everything that the request names, each once. Rights to what a template names and
// creates are asked for at the launch, as RunInstances. Source: CreateFleet in AWS's service authorization reference
// for EC2, which has fleet and instance as needed, and image, launch-template, placement-group, subnet and volume
// where the request has them.
func (l *launch) mayOffer() error {
	var asks []Ask
	seen := map[string]bool{}
	ask := func(kind, id string, tags map[string]string) {
		if arn := l.arn(kind, id); id != "" && !seen[arn] {
			seen[arn] = true
			asks = append(asks, Ask{Action: l.name(), Resource: arn, ResourceTags: tags})
		}
	}
	for _, p := range l.pools {
		ask("launch-template", p.template.id, p.template.tags)
		ask("image", p.override.Image, nil)
		ask("subnet", p.override.Subnet, nil)
	}
	instance, err := tagsOf(l.tags, "instance")
	if err != nil {
		return err
	}
	asks = append(asks, l.creating("instance", instance)...)
	for _, spec := range l.tags {
		if spec.Kind != "fleet" && spec.Kind != "instance" {
			asks = append(asks, l.creating(spec.Kind, tagMap(spec.Tags))...)
		}
	}
	return l.authorize(asks...)
}

// repeat answers a client token that was used before.
func (c *call) repeat(known *fleet, request string) (any, error) {
	switch {
	case c.faults.Tokens == TokenFleetOnly:
		return fleetOut{ID: known.out.ID}, nil
	case c.faults.Tokens == TokenMismatch || known.request != request:
		return nil, refuse(400, "IdempotentParameterMismatch",
			"Arguments on this idempotent request are inconsistent with arguments used in previous request(s).")
	}
	return known.out, nil
}

// flat lists names and values in order.
func (p *parameter) flat() []string {
	d := &formDecoder{}
	d.unknown(p, "")
	list := make([]string, 0, len(d.surplus))
	for _, name := range d.surplus {
		at := p
		for part := range splitName(name) {
			at = at.below[part]
		}
		list = append(list, name+"="+at.value)
	}
	return list
}

// newLaunch checks a request for what EC2 refuses completely, and lists its pools.
func (c *call) newLaunch(in *createFleetIn) (*launch, error) {
	switch {
	case in.Target == nil || in.Target.Total < 1 || in.Target.Total > maxTarget:
		return nil, refuse(400, "InvalidParameterValue", "TotalTargetCapacity has to be 1 to %d", maxTarget)
	case in.Kind != "instant":
		return nil, refuse(400, "InvalidParameterValue", "the endpoint has fleets of type instant only, not %q",
			in.Kind)
	case len(in.Token) > 64:
		return nil, refuse(400, "InvalidParameterValue", "ClientToken has %d characters; at most 64", len(in.Token))
	case len(in.Configs) == 0:
		return nil, refuse(400, codeMissing, "The request must contain the parameter LaunchTemplateConfigs")
	}
	l := &launch{call: c, token: in.Token, capacityType: spot, left: in.Target.Total}
	strategy := ""
	if in.Spot != nil {
		strategy = in.Spot.Strategy
	}
	allowed := []string{"", "price-capacity-optimized", "capacity-optimized", "capacity-optimized-prioritized",
		"lowest-price", "diversified"}
	if in.Target.Default != spot {
		l.capacityType, strategy = onDemand, ""
		allowed = []string{"", "lowest-price", "prioritized"}
		if in.OnDemand != nil {
			strategy = in.OnDemand.Strategy
		}
	}
	if !slices.Contains(allowed, strategy) {
		return nil, refuse(400, "InvalidParameterValue", "AllocationStrategy %q is none of %q", strategy, allowed[1:])
	}
	if in.Target.Default == spot && in.Target.OnDemand > 0 || in.Target.Default != spot && in.Target.Spot > 0 {
		return nil, fmt.Errorf("ec2:CreateFleet: the endpoint has fleets of one capacity type only")
	}
	for _, spec := range in.Tags {
		if !slices.Contains([]string{"fleet", "instance", "volume", "network-interface", "spot-instances-request"},
			spec.Kind) {
			return nil, refuse(400, codeBadValue, "'%s' is not a valid taggable resource type for this operation.",
				spec.Kind)
		}
		if err := checkTags(spec.Tags); err != nil {
			return nil, err
		}
	}
	l.tags = in.Tags
	if err := l.addPools(in.Configs); err != nil {
		return nil, err
	}
	l.sort(strategy)
	return l, nil
}

// addPools lists the pools of the configurations: each override, or the template alone.
func (l *launch) addPools(configs []fleetConfig) error {
	seen := map[[3]string]bool{}
	total := 0
	for _, config := range configs {
		t, err := l.findTemplate(config.Template.ID, config.Template.Name)
		if err != nil {
			return err
		}
		if err := checkVersion(config.Template.Version); err != nil {
			return err
		}
		overrides := config.Overrides
		if len(overrides) == 0 {
			overrides = []fleetOverride{{}}
		}
		total += len(overrides)
		for _, o := range overrides {
			p := l.pool(t, o)
			if key := [3]string{p.kind, p.zone, p.image}; seen[key] {
				return refuse(400, "InvalidFleetConfig",
					"The fleet configuration contains duplicate instance pools: %s in %s", p.kind, p.zone)
			} else {
				seen[key] = true
			}
			l.pools = append(l.pools, p)
		}
	}
	if total > maxOverrides {
		return refuse(400, "InvalidFleetConfig", "The fleet has %d overrides; at most %d", total, maxOverrides)
	}
	return nil
}
