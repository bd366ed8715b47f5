package template

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launch"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tag"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/userdata"
)

// Prefix begins the names of launch templates, as in Karpenter.
const Prefix = awsv1.Group + "/"

// Ask is the input for a launch template.
type Ask struct {
	// Class is the node class. Its status has the resolved security groups and the instance profile.
	Class *awsv1.EC2NodeClass
	// Cluster and Pool are names, for tags.
	Cluster, Pool string
	// Family is that of the image, as in spec.amiFamily. It decides the disks if the class has none.
	Family string
	Image  string // id
	// UserData is what the instance reads at its start, not encoded, at most userdata.Limit bytes.
	UserData string
	// CapacityType is as in package catalog. Reservation is the reservation of a template for reserved capacity.
	CapacityType string
	Reservation  launch.Reservation
	// FabricCards is how many network cards get an Elastic Fabric Adapter, from the first; 0 for none. It has no
	// effect if the class lists its interfaces.
	FabricCards int32
	// IPv6 is true if the cluster's pods and nodes have IPv6 addresses.
	IPv6      bool
	Placement Placement
}

// Placement is where instances are placed. The zero value leaves it to EC2.
type Placement struct {
	GroupID   string // of a placement group
	Partition int32  // of a group with partitions, from 1
	Tenancy   string // dedicated or host; "" and default are EC2's default
}

// Content returns the call that creates a template. Equivalent input gives the same call, whatever the order of maps
// and groups. The error names the field that no template can have, or is a *userdata.TooLargeError. It never repeats
// user data.
func Content(ask Ask) (*ec2.CreateLaunchTemplateInput, error) {
	class := ask.Class
	if len(ask.UserData) > userdata.Limit {
		return nil, &userdata.TooLargeError{Size: len(ask.UserData)}
	}
	if class.Status.InstanceProfile == "" {
		return nil, fmt.Errorf("status.instanceProfile of EC2NodeClass %s is empty: an instance needs a profile",
			class.Name)
	}
	groups := groups(class)
	if len(groups) == 0 {
		return nil, fmt.Errorf("status.securityGroups of EC2NodeClass %s is empty: an instance needs one", class.Name)
	}
	devices, err := devices(class.Spec.BlockDeviceMappings, ask.Family)
	if err != nil {
		return nil, err
	}
	interfaces, err := interfaces(ask, groups)
	if err != nil {
		return nil, err
	}
	tags := tag.List(tag.Of(class, ask.Cluster, ask.Pool))
	data := &ec2types.RequestLaunchTemplateData{
		ImageId: aws.String(ask.Image),
		IamInstanceProfile: &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{
			Name: aws.String(class.Status.InstanceProfile)},
		BlockDeviceMappings: devices, NetworkInterfaces: interfaces,
		MetadataOptions: metadata(class.Spec.MetadataOptions), CpuOptions: processors(class.Spec.CPUOptions),
		InstanceMarketOptions: market(ask), CapacityReservationSpecification: reservation(ask),
		Placement: placement(ask), TagSpecifications: []ec2types.LaunchTemplateTagSpecificationRequest{
			{ResourceType: ec2types.ResourceTypeNetworkInterface, Tags: tags}},
	}
	if len(interfaces) == 0 {
		data.SecurityGroupIds = groups
	}
	if ask.UserData != "" {
		data.UserData = aws.String(base64.StdEncoding.EncodeToString([]byte(ask.UserData)))
	}
	if on := class.Spec.DetailedMonitoring; on != nil {
		data.Monitoring = &ec2types.LaunchTemplatesMonitoringRequest{Enabled: aws.Bool(*on)}
	}
	if o := class.Spec.EnclaveOptions; o != nil && o.Enabled {
		data.EnclaveOptions = &ec2types.LaunchTemplateEnclaveOptionsRequest{Enabled: aws.Bool(true)}
	}
	if ask.CapacityType == catalog.Spot { // other types have no request that could have tags
		data.TagSpecifications = append(data.TagSpecifications, ec2types.LaunchTemplateTagSpecificationRequest{
			ResourceType: ec2types.ResourceTypeSpotInstancesRequest, Tags: tags})
	}
	name, err := nameOf(data, tags)
	if err != nil {
		return nil, err
	}
	return &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(name), LaunchTemplateData: data,
		TagSpecifications: []ec2types.TagSpecification{
			{ResourceType: ec2types.ResourceTypeLaunchTemplate, Tags: tags},
		}}, nil
}

// nameOf returns a name with a hash of the whole template. Tags count, since a role may only use the templates of its
// cluster, and a pool's tag assigns costs.
func nameOf(data *ec2types.RequestLaunchTemplateData, tags []ec2types.Tag) (string, error) {
	text, err := json.Marshal(struct {
		Data *ec2types.RequestLaunchTemplateData
		Tags []ec2types.Tag
	}{data, tags})
	if err != nil {
		return "", fmt.Errorf("naming a launch template: %w", err)
	}
	sum := sha256.Sum256(text)
	return Prefix + hex.EncodeToString(sum[:16]), nil
}

// groups returns the ids of the class's security groups, sorted, each once.
func groups(class *awsv1.EC2NodeClass) []string {
	ids := map[string]bool{}
	for _, g := range class.Status.SecurityGroups {
		ids[g.ID] = true
	}
	return slices.Sorted(maps.Keys(ids))
}

// metadata returns the options of the metadata service, with the API's defaults. Tags stay disabled there: with them
// EC2 refuses keys that have a slash.
func metadata(own *awsv1.MetadataOptions) *ec2types.LaunchTemplateInstanceMetadataOptionsRequest {
	if own == nil {
		own = &awsv1.MetadataOptions{}
	}
	hops := int32(1)
	if own.HTTPPutResponseHopLimit != nil {
		hops = int32(max(1, min(64, *own.HTTPPutResponseHopLimit))) // the API's bounds
	}
	return &ec2types.LaunchTemplateInstanceMetadataOptionsRequest{
		HttpEndpoint: ec2types.LaunchTemplateInstanceMetadataEndpointState(
			cmp.Or(aws.ToString(own.HTTPEndpoint), "enabled")),
		HttpProtocolIpv6: ec2types.LaunchTemplateInstanceMetadataProtocolIpv6(
			cmp.Or(aws.ToString(own.HTTPProtocolIPv6), "disabled")),
		HttpPutResponseHopLimit: aws.Int32(hops),
		HttpTokens: ec2types.LaunchTemplateHttpTokensState(cmp.Or(aws.ToString(own.HTTPTokens),
			"required")),
		InstanceMetadataTags: ec2types.LaunchTemplateInstanceMetadataTagsStateDisabled,
	}
}

func processors(own *awsv1.CPUOptions) *ec2types.LaunchTemplateCpuOptionsRequest {
	if own == nil || own.NestedVirtualization == nil {
		return nil
	}
	return &ec2types.LaunchTemplateCpuOptionsRequest{
		NestedVirtualization: ec2types.NestedVirtualizationSpecification(*own.NestedVirtualization)}
}

// market returns the market options of blocks and interruptible reservations. Spot is not set here: the fleet sets it,
// and EC2 refuses both.
func market(ask Ask) *ec2types.LaunchTemplateInstanceMarketOptionsRequest {
	if ask.CapacityType != catalog.Reserved {
		return nil
	}
	switch ask.Reservation.Kind {
	case launch.Block:
		return &ec2types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: ec2types.MarketTypeCapacityBlock}
	case launch.Interruptible:
		return &ec2types.LaunchTemplateInstanceMarketOptionsRequest{
			MarketType: ec2types.MarketTypeInterruptibleCapacityReservation}
	}
	return nil
}

// reservation returns the capacity reservation of the template. On-demand instances avoid open reservations only if
// the class chooses reservations at all, since these are then counted (E-14).
func reservation(ask Ask) *ec2types.LaunchTemplateCapacityReservationSpecificationRequest {
	switch {
	case ask.CapacityType == catalog.Reserved:
		return &ec2types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationTarget: &ec2types.CapacityReservationTarget{
				CapacityReservationId: aws.String(ask.Reservation.ID)}}
	case ask.CapacityType == catalog.OnDemand && len(ask.Class.Spec.CapacityReservationSelectorTerms) > 0:
		return &ec2types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: ec2types.CapacityReservationPreferenceNone}
	}
	return nil
}

func placement(ask Ask) *ec2types.LaunchTemplatePlacementRequest {
	p := ask.Placement
	if p.Tenancy == string(ec2types.TenancyDefault) {
		p.Tenancy = ""
	}
	if p == (Placement{}) {
		return nil
	}
	request := &ec2types.LaunchTemplatePlacementRequest{Tenancy: ec2types.Tenancy(p.Tenancy)}
	if p.GroupID != "" {
		request.GroupId = aws.String(p.GroupID)
	}
	if p.Partition > 0 {
		request.PartitionNumber = aws.Int32(p.Partition)
	}
	return request
}
