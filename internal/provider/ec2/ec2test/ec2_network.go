package ec2test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

type describeSubnetsIn struct {
	checked
	paging
	Filters []filter `query:"Filter"`
	IDs     []string `query:"SubnetId"`
}

type subnetXML struct {
	ID     string `xml:"subnetId"`
	ARN    string `xml:"subnetArn"`
	State  string `xml:"state"`
	VPC    string `xml:"vpcId"`
	CIDR   string `xml:"cidrBlock"`
	Free   int    `xml:"availableIpAddressCount"`
	Zone   string `xml:"availabilityZone"`
	ZoneID string `xml:"availabilityZoneId"`
	Owner  string `xml:"ownerId"`
	Tags   []tag  `xml:"tagSet>item"`
}

type describeSubnetsOut struct {
	Subnets list[subnetXML] `xml:"subnetSet"`
	Next    *string         `xml:"nextToken"`
}

var subnetFilters = fields[*subnet]{
	"subnet-id":            one(func(n *subnet) string { return n.ID }),
	"vpc-id":               one(func(n *subnet) string { return n.VPC }),
	"availability-zone":    one(func(n *subnet) string { return n.Zone }),
	"availability-zone-id": one(func(n *subnet) string { return n.ZoneID }),
	"state":                one(func(*subnet) string { return "available" }),
	"owner-id":             one(func(*subnet) string { return Account }),
}

// named returns the items with these ids, or all when there are none; one that does not exist is refused with code.
func named[T any](all map[string]T, ids []string, code, format string) ([]T, error) {
	if len(ids) == 0 {
		return slices.Collect(maps.Values(all)), nil
	}
	var list []T
	for _, id := range ids {
		item, exists := all[id]
		if !exists {
			return nil, refuse(400, code, format, id)
		}
		list = append(list, item)
	}
	return list, nil
}

func describeSubnets(c *call, in *describeSubnetsIn) (any, error) {
	if err := c.listing(in.DryRun); err != nil {
		return nil, err
	}
	if err := wholeOrPaged(in.paging, in.IDs, "subnetSet"); err != nil {
		return nil, err
	}
	list, err := named(c.subnets, in.IDs, "InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist")
	if err != nil {
		return nil, err
	}
	list, err = filtered(list, in.Filters, subnetFilters, func(n *subnet) map[string]string { return n.Tags })
	if err != nil {
		return nil, err
	}
	list, next, err := page(c, list, func(n *subnet) string { return n.ID }, in.paging, bounds{5, 1000})
	out := describeSubnetsOut{Next: next}
	for _, n := range list {
		out.Subnets.Items = append(out.Subnets.Items, c.subnetXML(n))
	}
	return out, err
}

func (s *Server) subnetXML(n *subnet) subnetXML {
	return subnetXML{
		ID: n.ID, ARN: s.arn("subnet", n.ID), State: "available", VPC: n.VPC, CIDR: n.CIDR, Free: n.free, Zone: n.Zone,
		ZoneID: n.ZoneID, Owner: Account, Tags: tagList(n.Tags),
	}
}

type describeGroupsIn struct {
	checked
	paging
	Filters []filter `query:"Filter"`
	IDs     []string `query:"GroupId"`
	Names   []string `query:"GroupName"`
}

type groupXML struct {
	ID          string `xml:"groupId"`
	Name        string `xml:"groupName"`
	Description string `xml:"groupDescription"`
	VPC         string `xml:"vpcId"`
	Owner       string `xml:"ownerId"`
	Tags        []tag  `xml:"tagSet>item"`
}

type describeGroupsOut struct {
	Groups list[groupXML] `xml:"securityGroupInfo"`
	Next   *string        `xml:"nextToken"`
}

var groupFilters = fields[SecurityGroup]{
	"group-id":    one(func(g SecurityGroup) string { return g.ID }),
	"group-name":  one(func(g SecurityGroup) string { return g.Name }),
	"vpc-id":      one(func(g SecurityGroup) string { return g.VPC }),
	"owner-id":    one(func(SecurityGroup) string { return Account }),
	"description": one(func(g SecurityGroup) string { return g.Description }),
}

func describeSecurityGroups(c *call, in *describeGroupsIn) (any, error) {
	if err := c.listing(in.DryRun); err != nil {
		return nil, err
	}
	if err := wholeOrPaged(in.paging, in.IDs, "groupIds"); err != nil {
		return nil, err
	}
	list, err := named(c.groups, in.IDs, "InvalidGroup.NotFound", "The security group '%s' does not exist")
	if err != nil {
		return nil, err
	}
	for _, name := range in.Names {
		if !slices.ContainsFunc(list, func(g SecurityGroup) bool { return g.Name == name }) {
			return nil, refuse(400, "InvalidGroup.NotFound", "The security group '%s' does not exist", name)
		}
	}
	if len(in.Names) > 0 {
		list = slices.DeleteFunc(list, func(g SecurityGroup) bool { return !slices.Contains(in.Names, g.Name) })
	}
	list, err = filtered(list, in.Filters, groupFilters, func(g SecurityGroup) map[string]string { return g.Tags })
	if err != nil {
		return nil, err
	}
	list, next, err := page(c, list, func(g SecurityGroup) string { return g.ID }, in.paging, bounds{5, 1000})
	out := describeGroupsOut{Next: next}
	for _, g := range list {
		out.Groups.Items = append(out.Groups.Items, groupXML{g.ID, g.Name, g.Description, g.VPC, Account,
			tagList(g.Tags)})
	}
	return out, err
}

type describeImagesIn struct {
	checked
	paging
	Filters    []filter `query:"Filter"`
	IDs        []string `query:"ImageId"`
	Owners     []string `query:"Owner"`
	Executable []string `query:"ExecutableBy"`
	Deprecated bool     `query:"IncludeDeprecated"`
	Disabled   bool     `query:"IncludeDisabled"`
}

type imageXML struct {
	ID           string     `xml:"imageId"`
	Name         string     `xml:"name"`
	Description  string     `xml:"description,omitempty"`
	State        string     `xml:"imageState"`
	Owner        string     `xml:"imageOwnerId"`
	Alias        string     `xml:"imageOwnerAlias,omitempty"`
	Public       bool       `xml:"isPublic"`
	Architecture string     `xml:"architecture"`
	Type         string     `xml:"imageType"`
	Platform     string     `xml:"platformDetails"`
	Created      string     `xml:"creationDate"`
	Deprecated   string     `xml:"deprecationTime,omitempty"`
	RootType     string     `xml:"rootDeviceType"`
	RootName     string     `xml:"rootDeviceName"`
	Virtual      string     `xml:"virtualizationType"`
	Hypervisor   string     `xml:"hypervisor"`
	Devices      []imageEBS `xml:"blockDeviceMapping>item"`
	Tags         []tag      `xml:"tagSet>item"`
}

type imageEBS struct {
	Name     string `xml:"deviceName"`
	Snapshot string `xml:"ebs>snapshotId"`
	Size     int    `xml:"ebs>volumeSize"`
	Type     string `xml:"ebs>volumeType"`
	Delete   bool   `xml:"ebs>deleteOnTermination"`
}

type describeImagesOut struct {
	Images list[imageXML] `xml:"imagesSet"`
	Next   *string        `xml:"nextToken"`
}

var imageFilters = fields[Image]{
	"image-id":            one(func(i Image) string { return i.ID }),
	"name":                one(func(i Image) string { return i.Name }),
	"description":         one(func(i Image) string { return i.Description }),
	"architecture":        one(func(i Image) string { return i.Architecture }),
	"owner-id":            one(func(i Image) string { return i.Owner }),
	"owner-alias":         one(func(i Image) string { return i.Alias }),
	"state":               one(func(i Image) string { return i.State }),
	"is-public":           one(func(i Image) string { return fmt.Sprint(i.Alias != "") }),
	"root-device-type":    one(func(Image) string { return "ebs" }),
	"virtualization-type": one(func(Image) string { return "hvm" }),
}

func describeImages(c *call, in *describeImagesIn) (any, error) {
	if err := c.listing(in.DryRun); err != nil {
		return nil, err
	}
	if err := wholeOrPaged(in.paging, in.IDs, "imagesSet"); err != nil {
		return nil, err
	}
	list, err := named(c.images, in.IDs, "InvalidAMIID.NotFound", "The image id '[%s]' does not exist")
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(i Image) bool {
		old := !i.Deprecated.IsZero() && !i.Deprecated.After(c.now())
		return old && !in.Deprecated && i.Owner != Account && len(in.IDs) == 0 ||
			i.State == "disabled" && !in.Disabled || !i.ownedBy(in.Owners)
	})
	list, err = filtered(list, in.Filters, imageFilters, func(i Image) map[string]string { return i.Tags })
	if err != nil {
		return nil, err
	}
	list, next, err := page(c, list, func(i Image) string { return i.ID }, in.paging, bounds{1, 1000})
	out := describeImagesOut{Next: next}
	for _, i := range list {
		out.Images.Items = append(out.Images.Items, i.xml())
	}
	return out, err
}

func (i Image) ownedBy(owners []string) bool {
	return len(owners) == 0 || slices.ContainsFunc(owners, func(owner string) bool {
		return owner == i.Owner || owner == i.Alias && owner != "" || owner == "self" && i.Owner == Account
	})
}

const awsMillis = "2006-01-02T15:04:05.000Z"

func (i Image) xml() imageXML {
	deprecated := ""
	if !i.Deprecated.IsZero() {
		deprecated = i.Deprecated.UTC().Format(awsMillis)
	}
	return imageXML{
		ID: i.ID, Name: i.Name, Description: i.Description, State: i.State, Owner: i.Owner, Alias: i.Alias,
		Public:       i.Alias != "",
		Architecture: i.Architecture, Type: "machine", Platform: "Linux/UNIX",
		Created: i.Created.UTC().Format(awsMillis), Deprecated: deprecated,
		RootType: "ebs", RootName: i.RootDevice, Virtual: "hvm", Hypervisor: "xen", Tags: tagList(i.Tags),
		Devices: []imageEBS{{
			Name: i.RootDevice, Snapshot: strings.Replace(i.ID, "ami-", "snap-", 1), Size: i.SnapshotGiB, Type: "gp3",
			Delete: true,
		}},
	}
}

func stamp(at time.Time) string { return at.UTC().Truncate(time.Second).Format(time.RFC3339) }
