package ec2test

import (
	"maps"
	"net/netip"
	"slices"
)

// Resources that are created in the account through the API, by tests that know only the endpoint's URL (E-64):
// networks, groups and images. Only the right to create each is checked; there are no quotas.

type vpcXML struct {
	ID    string `xml:"vpcId"`
	CIDR  string `xml:"cidrBlock"`
	State string `xml:"state"`
	Owner string `xml:"ownerId"`
	Tags  []tag  `xml:"tagSet>item"`
}

// done is the answer of a call without a result.
type done struct {
	Return bool `xml:"return"`
}

// makingOf checks the tags and the right to make something of a kind, and ends a dry run.
func (c *call) makingOf(kind string, specs []tagSpecification, dryRun bool) (map[string]string, error) {
	tags, err := tagsOf(specs, kind)
	if err != nil {
		return nil, err
	}
	if err := c.authorize(c.creating(kind, tags)...); err != nil {
		return nil, err
	}
	return tags, c.dry(dryRun)
}

// removing checks the right to remove something, and ends a dry run.
func (c *call) removing(kind, id string, dryRun bool) error {
	if err := c.authorize(Ask{Action: c.name(), Resource: c.arn(kind, id)}); err != nil {
		return err
	}
	return c.dry(dryRun)
}

func createVPC(c *call, in *struct {
	checked
	CIDR string             `query:"CidrBlock"`
	Tags []tagSpecification `query:"TagSpecification"`
}) (any, error) {
	tags, err := c.makingOf("vpc", in.Tags, in.DryRun)
	if err != nil {
		return nil, err
	}
	block, err := netip.ParsePrefix(in.CIDR)
	if err != nil || block.Bits() < 16 || block.Bits() > 28 {
		return nil, refuse(400, "InvalidVpc.Range", "The CIDR '%s' is invalid.", in.CIDR)
	}
	id := c.newID("vpc")
	c.vpcs[id] = block
	return struct {
		VPC vpcXML `xml:"vpc"`
	}{vpcXML{id, in.CIDR, "available", Account, tagList(tags)}}, nil
}

func deleteVPC(c *call, in *struct {
	checked
	ID string `query:"VpcId"`
}) (any, error) {
	if err := c.removing("vpc", in.ID, in.DryRun); err != nil {
		return nil, err
	}
	if _, exists := c.vpcs[in.ID]; !exists {
		return nil, refuse(400, "InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", in.ID)
	}
	used := slices.ContainsFunc(slices.Collect(maps.Values(c.subnets)),
		func(n *subnet) bool { return n.VPC == in.ID }) ||
		slices.ContainsFunc(slices.Collect(maps.Values(c.groups)),
			func(g SecurityGroup) bool { return g.VPC == in.ID })
	if used {
		return nil, refuse(400, "DependencyViolation", "The vpc '%s' has dependencies and cannot be deleted.", in.ID)
	}
	delete(c.vpcs, in.ID)
	return done{true}, nil
}

func createSubnet(c *call, in *struct {
	checked
	VPC  string             `query:"VpcId"`
	CIDR string             `query:"CidrBlock"`
	Zone string             `query:"AvailabilityZone"`
	Tags []tagSpecification `query:"TagSpecification"`
}) (any, error) {
	tags, err := c.makingOf("subnet", in.Tags, in.DryRun)
	if err != nil {
		return nil, err
	}
	of, exists := c.vpcs[in.VPC]
	block, err := netip.ParsePrefix(in.CIDR)
	switch {
	case !exists:
		return nil, refuse(400, "InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", in.VPC)
	case err != nil || !of.Overlaps(block) || block.Bits() < of.Bits():
		return nil, refuse(400, "InvalidSubnet.Range", "The CIDR '%s' is invalid.", in.CIDR)
	}
	for _, n := range c.subnets {
		if n.VPC == in.VPC && n.prefix.Overlaps(block) {
			return nil, refuse(400, "InvalidSubnet.Conflict", "The CIDR '%s' conflicts with another subnet", in.CIDR)
		}
	}
	n := c.addSubnet(Subnet{VPC: in.VPC, CIDR: in.CIDR, Zone: in.Zone, Tags: tags})
	return struct {
		Subnet subnetXML `xml:"subnet"`
	}{c.subnetXML(c.subnets[n.ID])}, nil
}

func deleteSubnet(c *call, in *struct {
	checked
	ID string `query:"SubnetId"`
}) (any, error) {
	if err := c.removing("subnet", in.ID, in.DryRun); err != nil {
		return nil, err
	}
	if c.subnets[in.ID] == nil {
		return nil, refuse(400, "InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", in.ID)
	}
	for _, i := range c.machines {
		if i.Subnet == in.ID && i.State != Terminated {
			return nil, refuse(400, "DependencyViolation", "The subnet '%s' has dependencies and cannot be deleted.",
				in.ID)
		}
	}
	delete(c.subnets, in.ID)
	return done{true}, nil
}

func createSecurityGroup(c *call, in *struct {
	checked
	Name  string             `query:"GroupName"`
	About string             `query:"GroupDescription"`
	VPC   string             `query:"VpcId"`
	Tags  []tagSpecification `query:"TagSpecification"`
}) (any, error) {
	tags, err := c.makingOf("security-group", in.Tags, in.DryRun)
	if err != nil {
		return nil, err
	}
	if _, exists := c.vpcs[in.VPC]; !exists {
		return nil, refuse(400, "InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", in.VPC)
	}
	g := SecurityGroup{ID: c.newID("sg"), Name: in.Name, Description: in.About, VPC: in.VPC, Tags: tags}
	c.groups[g.ID] = g
	return struct {
		ID   string `xml:"groupId"`
		Tags []tag  `xml:"tagSet>item"`
	}{g.ID, tagList(tags)}, nil
}

func deleteSecurityGroup(c *call, in *struct {
	checked
	ID string `query:"GroupId"`
}) (any, error) {
	if err := c.removing("security-group", in.ID, in.DryRun); err != nil {
		return nil, err
	}
	if _, exists := c.groups[in.ID]; !exists {
		return nil, refuse(400, "InvalidGroup.NotFound", "The security group '%s' does not exist", in.ID)
	}
	for _, i := range c.machines {
		if slices.Contains(i.Groups, in.ID) && i.State != Terminated {
			return nil, refuse(400, "DependencyViolation", "resource %s has a dependent object", in.ID)
		}
	}
	delete(c.groups, in.ID)
	return done{true}, nil
}

func registerImage(c *call, in *struct {
	checked
	Name         string             `query:"Name"`
	About        string             `query:"Description"`
	Architecture string             `query:"Architecture"`
	RootDevice   string             `query:"RootDeviceName"`
	Virtual      string             `query:"VirtualizationType"`
	Devices      []device           `query:"BlockDeviceMapping"`
	Tags         []tagSpecification `query:"TagSpecification"`
}) (any, error) {
	tags, err := c.makingOf("image", in.Tags, in.DryRun)
	if err != nil {
		return nil, err
	}
	image := Image{Name: in.Name, Description: in.About, Architecture: in.Architecture, RootDevice: in.RootDevice,
		Owner: Account, Tags: tags}
	for _, d := range in.Devices {
		if d.Name == in.RootDevice && d.EBS != nil && d.EBS.Size != nil {
			image.SnapshotGiB = int(*d.EBS.Size)
		}
	}
	return struct {
		ID string `xml:"imageId"`
	}{c.addImage(image).ID}, nil
}

func deregisterImage(c *call, in *struct {
	checked
	ID string `query:"ImageId"`
}) (any, error) {
	if err := c.removing("image", in.ID, in.DryRun); err != nil {
		return nil, err
	}
	if _, exists := c.images[in.ID]; !exists {
		return nil, refuse(400, "InvalidAMIID.NotFound", "The image id '[%s]' does not exist", in.ID)
	}
	delete(c.images, in.ID)
	return done{true}, nil
}
