package instancetype

import (
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// warmInterfaces is how many interfaces a node has when its volumes are counted: its own, and a spare one that the VPC
// CNI has attached so that pods need not wait *(unverified)*. The CSI driver also counts only once, when it starts.
const warmInterfaces = 2

// attachable returns how many volumes pods can attach, beside those of the machine (E-23): at least 1, like the CSI
// driver, and 0 if EC2 says nothing. EC2's maximum already excludes what every machine of the type has: its local
// disks, and one interface if interfaces share the limit. Xen does not count interfaces.
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

// startsWith returns how many interfaces a node has at first: those of the class, or all fabric adapters, and those
// that the CNI adds.
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
