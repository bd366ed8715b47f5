package machines

import (
	"cmp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// Machine is what EC2 shows of an instance.
type Machine struct {
	InstanceID, Zone   string
	Type, CapacityType string // the latter on-demand, spot or reserved
	Image, Subnet      string
	Reservation        string   // id of the capacity reservation that it runs in, "" for none
	PlacementGroup     string   // id, "" for none
	Tenancy            string   // default, dedicated or host; "" when the answer leaves it out
	Profile            string   // ARN of its instance profile
	Groups             []string // ids of its security groups, sorted
	Launched           time.Time
	// Ending means that it is shutting down, Gone that it is terminated.
	Ending, Gone bool
	// Reason and Message are EC2's reason why it ends; "" while it runs.
	Reason, Message string
	Tags            map[string]string
	// DNS is its private name, Addresses are its private addresses, to recognize its node (E-47).
	DNS       string
	Addresses []string
}

// ProviderID returns the provider ID of the machine's node.
func (m Machine) ProviderID() string { return ProviderID(m.Zone, m.InstanceID) }

// machineOf reads an answer. Fields that some other servers leave out are found elsewhere (E-64): the capacity type in
// the lifecycle or the request, the zone by the subnet.
func machineOf(i *ec2types.Instance, zoneOf func(subnet string) string) Machine {
	m := Machine{
		InstanceID: aws.ToString(i.InstanceId), Type: string(i.InstanceType),
		CapacityType: karpenterv1.CapacityTypeOnDemand,
		Image:        aws.ToString(i.ImageId), Subnet: aws.ToString(i.SubnetId),
		Reservation: aws.ToString(i.CapacityReservationId),
		Launched:    aws.ToTime(i.LaunchTime), DNS: aws.ToString(i.PrivateDnsName), Tags: map[string]string{},
	}
	if i.Placement != nil {
		m.Zone, m.PlacementGroup = aws.ToString(i.Placement.AvailabilityZone), aws.ToString(i.Placement.GroupId)
		m.Tenancy = string(i.Placement.Tenancy)
	}
	if m.Zone == "" && zoneOf != nil {
		m.Zone = zoneOf(m.Subnet)
	}
	switch {
	case i.InstanceLifecycle == ec2types.InstanceLifecycleTypeSpot || aws.ToString(i.SpotInstanceRequestId) != "":
		m.CapacityType = karpenterv1.CapacityTypeSpot
	case m.Reservation != "" && targeted(i):
		m.CapacityType = karpenterv1.CapacityTypeReserved
	}
	if i.IamInstanceProfile != nil {
		m.Profile = aws.ToString(i.IamInstanceProfile.Arn)
	}
	for _, group := range i.SecurityGroups {
		m.Groups = append(m.Groups, aws.ToString(group.GroupId))
	}
	slices.Sort(m.Groups)
	for _, tag := range i.Tags {
		m.Tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	m.Addresses = addresses(i)
	if i.State != nil {
		m.Ending = i.State.Name == ec2types.InstanceStateNameShuttingDown
		m.Gone = i.State.Name == ec2types.InstanceStateNameTerminated
	}
	if i.StateReason != nil && (m.Ending || m.Gone) {
		m.Reason, m.Message = aws.ToString(i.StateReason.Code), aws.ToString(i.StateReason.Message)
	}
	return m
}

// targeted reports whether the instance asked for its reservation. An instance in an open reservation is on-demand: it
// lives on when the reservation ends.
func targeted(i *ec2types.Instance) bool {
	return i.InstanceLifecycle == ec2types.InstanceLifecycleTypeCapacityBlock ||
		i.CapacityReservationSpecification != nil &&
			i.CapacityReservationSpecification.CapacityReservationTarget != nil
}

func addresses(i *ec2types.Instance) []string {
	var list []string
	for _, address := range []*string{i.PrivateIpAddress, i.Ipv6Address} {
		if a := aws.ToString(address); a != "" {
			list = append(list, a)
		}
	}
	return list
}

func byProviderID(a, b Machine) int {
	return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.InstanceID, b.InstanceID))
}
