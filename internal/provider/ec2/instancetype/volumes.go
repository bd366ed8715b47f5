package instancetype

import (
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// warmInterfaces is how many interfaces a node has when its volumes are counted: its own, and one that the VPC CNI has
// attached so that pods need not wait for it *(unverified)*. The CSI driver counts when it starts, too, and not again.
const warmInterfaces = 2

// attachable is how many volumes pods can have attached, beside those of the machine (E-23); at least 1, as the CSI
// driver has it, and 0 where EC2 says nothing. EC2's greatest number leaves room for what every machine of the type
// has: where interfaces share the limit one of them, and all disks of its own. Xen counts no interfaces.
func (c Class) attachable(info *ec2types.InstanceTypeInfo) int64 {
	if info.EbsInfo == nil || value(info.EbsInfo.MaximumEbsAttachments) <= 0 {
		return 0
	}
	left := int64(value(info.EbsInfo.MaximumEbsAttachments)) - max(1, c.Volumes)
	if info.EbsInfo.AttachmentLimitType == ec2types.AttachmentLimitTypeShared &&
		info.Hypervisor != ec2types.InstanceTypeHypervisorXen {
		left -= c.startsWith(info.NetworkInfo) - 1
	}
	return max(1, left)
}

// startsWith is how many interfaces a node has at first: those that the class lists, or all of the fabric, and what
// the CNI adds.
func (c Class) startsWith(n *ec2types.NetworkInfo) int64 {
	if n == nil {
		return 1
	}
	most := int64(value(n.MaximumNetworkInterfaces))
	first := int64(len(c.Interfaces))
	if c.Interfaces == nil && n.EfaInfo != nil {
		first = int64(value(n.EfaInfo.MaximumEfaInterfaces))
	}
	return max(1, min(most, max(first, 1)+warmInterfaces-1))
}
