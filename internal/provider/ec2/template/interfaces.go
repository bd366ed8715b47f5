package template

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// EC2's types of interfaces.
const (
	ordinary   = "interface"
	fabric     = "efa"
	fabricOnly = "efa-only" // without an address
)

// interfaces returns the network interfaces of a template; none if EC2's default is enough, which has the template's
// groups.
func interfaces(ask Ask,
	groups []string) ([]ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest, error) {
	spec := ask.Class.Spec
	layout := layout(spec.NetworkInterfaces, ask.FabricCards)
	prefixes := aws.ToInt32(spec.IPPrefixCount)
	if len(layout) == 0 {
		if spec.AssociatePublicIPAddress == nil && spec.ConnectionTracking == nil && prefixes == 0 && !ask.IPv6 {
			return nil, nil
		}
		layout = []awsv1.NetworkInterface{{InterfaceType: ordinary}}
	}
	if len(layout) > 1 && aws.ToBool(spec.AssociatePublicIPAddress) {
		return nil, fmt.Errorf("spec.associatePublicIPAddress is true and the instance has %d network interfaces: "+
			"EC2 gives a public address to an instance with one only", len(layout))
	}
	var list []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest
	for _, own := range layout {
		n := ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
			NetworkCardIndex: aws.Int32(own.NetworkCardIndex), DeviceIndex: aws.Int32(own.DeviceIndex),
			Groups: groups, DeleteOnTermination: aws.Bool(true),
		}
		if own.InterfaceType != ordinary {
			n.InterfaceType = aws.String(own.InterfaceType)
		}
		if len(layout) == 1 {
			n.AssociatePublicIpAddress = spec.AssociatePublicIPAddress
		}
		if own.InterfaceType != fabricOnly {
			n.ConnectionTrackingSpecification = connections(spec.ConnectionTracking)
		}
		if own.NetworkCardIndex == 0 && own.DeviceIndex == 0 {
			primary(&n, ask.IPv6, prefixes)
		}
		list = append(list, n)
	}
	return list, nil
}

// layout returns the interfaces that the class lists, or those with a fabric adapter, one for each card. It is device
// 0 on the first card and device 1 on the others, whose device 0 is not used.
func layout(own []awsv1.NetworkInterface, fabricCards int32) []awsv1.NetworkInterface {
	if len(own) > 0 {
		return own
	}
	var list []awsv1.NetworkInterface
	for card := range fabricCards {
		list = append(list, awsv1.NetworkInterface{NetworkCardIndex: card, DeviceIndex: min(card, 1),
			InterfaceType: fabric})
	}
	return list
}

// primary gives the first interface the addresses of the node, and prefixes for its pods.
func primary(n *ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest, ipv6 bool, prefixes int32) {
	if ipv6 {
		n.Ipv6AddressCount, n.PrimaryIpv6 = aws.Int32(1), aws.Bool(true)
	}
	switch {
	case prefixes > 0 && ipv6:
		n.Ipv6PrefixCount = aws.Int32(prefixes)
	case prefixes > 0:
		n.Ipv4PrefixCount = aws.Int32(prefixes)
	}
}

func connections(own *awsv1.ConnectionTracking) *ec2types.ConnectionTrackingSpecificationRequest {
	if own == nil {
		return nil
	}
	return &ec2types.ConnectionTrackingSpecificationRequest{TcpEstablishedTimeout: own.TCPEstablishedTimeout,
		UdpStreamTimeout: own.UDPStreamTimeout, UdpTimeout: own.UDPTimeout}
}
