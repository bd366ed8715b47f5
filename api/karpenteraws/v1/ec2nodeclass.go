package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EC2NodeClass holds the settings of Amazon EC2 for the nodes of the NodePools that refer to it: the machine
// image, the network, the disks and the identity of the instances.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=ec2nodeclasses,scope=Cluster,shortName={ec2nc,ec2ncs},categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether NodePools may use the node class"
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=".metadata.creationTimestamp",description="Time since the node class was created"
// +kubebuilder:printcolumn:name=Role,type=string,JSONPath=".spec.role",priority=1,description="IAM role of the instances"
type EC2NodeClass struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec holds the settings for the instances.
	// +required
	Spec EC2NodeClassSpec `json:"spec"`
	// Status says what the selectors of the spec were found to stand for.
	// +optional
	Status EC2NodeClassStatus `json:"status,omitzero"`
}

// EC2NodeClassList is a list of EC2NodeClasses.
//
// +kubebuilder:object:root=true
type EC2NodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the EC2NodeClasses of the list.
	Items []EC2NodeClass `json:"items"`
}

// EC2NodeClassSpec holds the settings for instances of EC2.
//
// +kubebuilder:validation:XValidation:rule="has(self.role) != has(self.instanceProfile)",message="spec.role and spec.instanceProfile exclude each other, and one of them is needed: give the name of an IAM role, or of an instance profile"
// +kubebuilder:validation:XValidation:rule="has(self.amiFamily) || self.amiSelectorTerms.exists(t, has(t.alias))",message="spec.amiFamily is needed when no term of spec.amiSelectorTerms has an alias: it says how the image reads user data"
// +kubebuilder:validation:XValidation:rule="!has(self.amiFamily) || self.amiFamily == 'Custom' || self.amiSelectorTerms.all(t, !has(t.alias) || t.alias.split('@')[0] == self.amiFamily.lowerAscii())",messageExpression="'spec.amiFamily is ' + self.amiFamily + ': with an alias in spec.amiSelectorTerms it must be the family of the alias, or Custom, or be left out'"
type EC2NodeClassSpec struct {
	// AMIFamily says how the machine image is set up and reads user data. With an alias in
	// amiSelectorTerms it is known from there. Custom leaves user data as it is.
	// +optional
	// +kubebuilder:validation:Enum=AL2;AL2023;Bottlerocket;Custom;Windows2019;Windows2022;Windows2025
	AMIFamily *string `json:"amiFamily,omitempty"`
	// AMISelectorTerms choose the machine images. An image that fits one of the terms may be used; an alias
	// must be the only term.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.size() == 1 || !self.exists(t, has(t.alias))",message="spec.amiSelectorTerms: a term with an alias must be the only term"
	AMISelectorTerms []AMISelectorTerm `json:"amiSelectorTerms"`
	// Role is the name of the IAM role of the instances; an instance profile is made for it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != ''",message="spec.role must not be empty: give the name of an IAM role"
	Role *string `json:"role,omitempty"`
	// InstanceProfile is the name of an instance profile that exists, in place of role.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != ''",message="spec.instanceProfile must not be empty: give the name of an instance profile"
	InstanceProfile *string `json:"instanceProfile,omitempty"`
	// SubnetSelectorTerms choose the subnets. A subnet that fits one of the terms may be used.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	SubnetSelectorTerms []SubnetSelectorTerm `json:"subnetSelectorTerms"`
	// SecurityGroupSelectorTerms choose the security groups. Instances get all that fit one of the terms.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	SecurityGroupSelectorTerms []SecurityGroupSelectorTerm `json:"securityGroupSelectorTerms"`
	// CapacityReservationSelectorTerms choose the capacity reservations that may be used. Without terms
	// none is used.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=30
	CapacityReservationSelectorTerms []CapacityReservationSelectorTerm `json:"capacityReservationSelectorTerms,omitzero"`
	// PlacementGroupSelector chooses the placement group of the instances.
	// +optional
	PlacementGroupSelector *PlacementGroupSelector `json:"placementGroupSelector,omitempty"`
	// AssociatePublicIPAddress says whether instances get a public address. Without it the subnet decides.
	// +optional
	AssociatePublicIPAddress *bool `json:"associatePublicIPAddress,omitempty"`
	// IPPrefixCount is the number of address prefixes that the network interface of an instance gets.
	// +optional
	// +kubebuilder:validation:Minimum=0
	IPPrefixCount *int32 `json:"ipPrefixCount,omitempty"`
	// NetworkInterfaces are the network interfaces of an instance. Without them it has the primary one.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=150
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self.exists(n, n.networkCardIndex == 0 && n.deviceIndex == 0 && n.interfaceType == 'interface')",message="spec.networkInterfaces must hold the primary interface: networkCardIndex 0, deviceIndex 0, interfaceType interface"
	// +kubebuilder:validation:XValidation:rule="self.all(n, self.exists_one(m, m.networkCardIndex == n.networkCardIndex && m.deviceIndex == n.deviceIndex))",message="spec.networkInterfaces names a pair of networkCardIndex and deviceIndex twice: each pair is one interface"
	// +kubebuilder:validation:XValidation:rule="self.all(n, n.interfaceType != 'efa-only' || self.exists_one(m, m.networkCardIndex == n.networkCardIndex && m.interfaceType == 'efa-only'))",message="spec.networkInterfaces has two interfaces of type efa-only on one network card: at most one is possible"
	NetworkInterfaces []NetworkInterface `json:"networkInterfaces,omitzero"`
	// ConnectionTracking says how long the network keeps connections that are idle.
	// +optional
	ConnectionTracking *ConnectionTracking `json:"connectionTracking,omitempty"`
	// BlockDeviceMappings are the disks of an instance. Without them it has those of its image family.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.filter(m, has(m.rootVolume) && m.rootVolume).size() <= 1",message="spec.blockDeviceMappings has more than one mapping with rootVolume true: an instance has one root volume"
	BlockDeviceMappings []BlockDeviceMapping `json:"blockDeviceMappings,omitzero"`
	// InstanceStorePolicy says what is done with the disks that are part of an instance type. RAID0 makes
	// one volume of them, for pods and images.
	// +optional
	// +kubebuilder:validation:Enum=RAID0
	InstanceStorePolicy *string `json:"instanceStorePolicy,omitempty"`
	// DetailedMonitoring says whether instances report their metrics each minute instead of every five.
	// +optional
	DetailedMonitoring *bool `json:"detailedMonitoring,omitempty"`
	// CPUOptions are settings of the processors.
	// +optional
	CPUOptions *CPUOptions `json:"cpuOptions,omitempty"`
	// MetadataOptions say how an instance can read the metadata service.
	// +optional
	// +kubebuilder:default={httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 1, httpTokens: required}
	MetadataOptions *MetadataOptions `json:"metadataOptions,omitempty"`
	// EnclaveOptions are about Nitro enclaves: parts of an instance that it shuts itself out of.
	// +optional
	EnclaveOptions *EnclaveOptions `json:"enclaveOptions,omitempty"`
	// Kubelet are settings of the kubelet. Fields that are not described here are passed through.
	// +optional
	Kubelet *KubeletConfiguration `json:"kubelet,omitempty"`
	// Context is passed to the fleet request of EC2 as it is.
	// +optional
	Context *string `json:"context,omitempty"`
	// UserData is run or read by an instance when it starts. It is combined with what the image family
	// needs; with the family Custom it is used as it is.
	// +optional
	UserData *string `json:"userData,omitempty"`
	// Tags are put on instances, volumes and whatever else is created for them.
	// +optional
	// +kubebuilder:validation:MaxProperties=50
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '')",message="spec.tags has an empty key: each tag needs a name"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['eks:eks-cluster-name', 'karpenter.sh/nodepool', 'karpenter.sh/nodeclaim', 'karpenter.k8s.aws/ec2nodeclass']) && !k.startsWith('kubernetes.io/cluster'))",messageExpression="'spec.tags has the key ' + self.filter(k, k in ['eks:eks-cluster-name', 'karpenter.sh/nodepool', 'karpenter.sh/nodeclaim', 'karpenter.k8s.aws/ec2nodeclass'] || k.startsWith('kubernetes.io/cluster'))[0] + ', which the controller sets itself: take it out'"
	Tags map[string]string `json:"tags,omitempty"`
}

// NetworkInterface is one network interface of an instance.
type NetworkInterface struct {
	// NetworkCardIndex is the network card the interface belongs to; the first is 0.
	// +required
	// +kubebuilder:validation:Minimum=0
	NetworkCardIndex int32 `json:"networkCardIndex"`
	// DeviceIndex is the place of the interface on its card; the first is 0.
	// +required
	// +kubebuilder:validation:Minimum=0
	DeviceIndex int32 `json:"deviceIndex"`
	// InterfaceType is interface for one with an address, or efa-only for one that carries only the
	// traffic of the Elastic Fabric Adapter.
	// +required
	// +kubebuilder:validation:Enum=interface;efa-only
	InterfaceType string `json:"interfaceType"`
}

// ConnectionTracking says how long the network keeps connections that are idle, in seconds.
//
// +kubebuilder:validation:MinProperties=1
type ConnectionTracking struct {
	// TCPEstablishedTimeout is the time for TCP connections that are established, in seconds.
	// +optional
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=432000
	TCPEstablishedTimeout *int32 `json:"tcpEstablishedTimeout,omitempty"`
	// UDPStreamTimeout is the time for UDP flows that were answered more than once, in seconds.
	// +optional
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=180
	UDPStreamTimeout *int32 `json:"udpStreamTimeout,omitempty"`
	// UDPTimeout is the time for UDP flows in one direction or with one answer, in seconds.
	// +optional
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=60
	UDPTimeout *int32 `json:"udpTimeout,omitempty"`
}

// CPUOptions are settings of the processors.
type CPUOptions struct {
	// NestedVirtualization says whether an instance can run virtual machines of its own.
	// +optional
	// +kubebuilder:validation:Enum=enabled;disabled
	NestedVirtualization *string `json:"nestedVirtualization,omitempty"`
}

// EnclaveOptions are about Nitro enclaves.
type EnclaveOptions struct {
	// Enabled says whether programs on an instance can start enclaves. Only instance types that have them are
	// used then.
	// +required
	Enabled bool `json:"enabled"`
}

// MetadataOptions say how an instance can read the metadata service.
type MetadataOptions struct {
	// HTTPEndpoint says whether the service answers at all: enabled or disabled.
	// +optional
	// +kubebuilder:default=enabled
	// +kubebuilder:validation:Enum=enabled;disabled
	HTTPEndpoint *string `json:"httpEndpoint,omitempty"`
	// HTTPProtocolIPv6 says whether the service has an address of IPv6 too: enabled or disabled.
	// +optional
	// +kubebuilder:default=disabled
	// +kubebuilder:validation:Enum=enabled;disabled
	HTTPProtocolIPv6 *string `json:"httpProtocolIPv6,omitempty"`
	// HTTPPutResponseHopLimit is how many network hops an answer may travel. With 1 only the instance itself
	// can read it, not the pods that have a network of their own.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	HTTPPutResponseHopLimit *int64 `json:"httpPutResponseHopLimit,omitempty"`
	// HTTPTokens says whether a request needs a session token: required or optional.
	// +optional
	// +kubebuilder:default=required
	// +kubebuilder:validation:Enum=required;optional
	HTTPTokens *string `json:"httpTokens,omitempty"`
}
