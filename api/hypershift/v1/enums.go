package v1

// IPAddressAssociation says whether instances get a public address.
type IPAddressAssociation string

// The values of IPAddressAssociation.
const (
	IPAddressAssociationPublic        IPAddressAssociation = "Public"
	IPAddressAssociationSubnetDefault IPAddressAssociation = "SubnetDefault"
)

// InstanceMatchCriteria says which instances a capacity reservation takes.
type InstanceMatchCriteria string

// The values of InstanceMatchCriteria.
const (
	InstanceMatchCriteriaOpen     InstanceMatchCriteria = "Open"
	InstanceMatchCriteriaTargeted InstanceMatchCriteria = "Targeted"
)

// InstanceStorePolicy says what is done with the disks that are part of an instance type.
type InstanceStorePolicy string

// InstanceStorePolicyRAID0 makes one volume of them.
const InstanceStorePolicyRAID0 InstanceStorePolicy = "RAID0"

// Monitoring says how often instances report their metrics.
type Monitoring string

// The values of Monitoring.
const (
	MonitoringDetailed Monitoring = "Detailed"
	MonitoringBasic    Monitoring = "Basic"
)

// MetadataAccess says whether the metadata service answers.
type MetadataAccess string

// The values of MetadataAccess.
const (
	MetadataAccessHTTPEndpoint MetadataAccess = "HTTPEndpoint"
	MetadataAccessNone         MetadataAccess = "None"
)

// MetadataIPProtocol is the protocol of the metadata service's address.
type MetadataIPProtocol string

// The values of MetadataIPProtocol.
const (
	MetadataIPProtocolIPv4 MetadataIPProtocol = "IPv4"
	MetadataIPProtocolIPv6 MetadataIPProtocol = "IPv6"
)

// MetadataTokens says whether a request to the metadata service needs a session token.
type MetadataTokens string

// The values of MetadataTokens.
const (
	MetadataTokensRequired MetadataTokens = "Required"
	MetadataTokensOptional MetadataTokens = "Optional"
)

// RootVolumeRole says whether a mapping is the root volume.
type RootVolumeRole string

// The values of RootVolumeRole.
const (
	RootVolumeRoleRoot    RootVolumeRole = "RootVolume"
	RootVolumeRoleNotRoot RootVolumeRole = "NotRootVolume"
)

// DeleteOnTermination says what becomes of a volume when its instance ends.
type DeleteOnTermination string

// The values of DeleteOnTermination.
const (
	DeleteOnTerminationDelete DeleteOnTermination = "Delete"
	DeleteOnTerminationRetain DeleteOnTermination = "Retain"
)

// Encryption says whether a volume is encrypted.
type Encryption string

// The values of Encryption.
const (
	EncryptionEncrypted   Encryption = "Encrypted"
	EncryptionUnencrypted Encryption = "Unencrypted"
)

// VolumeType is the type of an EBS volume. EC2NodeClass has the same in lower case.
type VolumeType string

// The values of VolumeType.
const (
	VolumeTypeStandard VolumeType = "Standard"
	VolumeTypeIO1      VolumeType = "IO1"
	VolumeTypeIO2      VolumeType = "IO2"
	VolumeTypeGP2      VolumeType = "GP2"
	VolumeTypeGP3      VolumeType = "GP3"
	VolumeTypeSC1      VolumeType = "SC1"
	VolumeTypeST1      VolumeType = "ST1"
)
