package v1

// AMISelectorTerm chooses machine images. The fields of a term must all fit.
//
// +kubebuilder:validation:XValidation:rule="has(self.alias) || has(self.tags) || has(self.id) || has(self.name) || has(self.ssmParameter)",message="a term of spec.amiSelectorTerms chooses nothing: give alias, id, name, tags or ssmParameter"
// +kubebuilder:validation:XValidation:rule="!has(self.id) || !(has(self.alias) || has(self.tags) || has(self.name) || has(self.owner) || has(self.ssmParameter))",messageExpression="'a term of spec.amiSelectorTerms has the id ' + self.id + ' and other fields: an id stands alone in its term'"
// +kubebuilder:validation:XValidation:rule="!has(self.alias) || !(has(self.id) || has(self.tags) || has(self.name) || has(self.owner) || has(self.ssmParameter))",messageExpression="'a term of spec.amiSelectorTerms has the alias ' + self.alias + ' and other fields: an alias stands alone in its term'"
type AMISelectorTerm struct {
	// Alias is a family and a version of images that AWS publishes, for example al2023@latest. The families
	// are al2, al2023, bottlerocket, windows2019, windows2022 and windows2025.
	// +optional
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]+@.+$')",messageExpression="'amiSelectorTerms alias is ' + self + ': give a family and a version, for example al2023@latest'"
	// +kubebuilder:validation:XValidation:rule="self.split('@')[0] in ['al2', 'al2023', 'bottlerocket', 'windows2019', 'windows2022', 'windows2025']",messageExpression="'amiSelectorTerms alias is ' + self + ': its family must be al2, al2023, bottlerocket, windows2019, windows2022 or windows2025'"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('windows') || self.endsWith('@latest')",messageExpression="'amiSelectorTerms alias is ' + self + ': the only version of Windows images is latest'"
	Alias string `json:"alias,omitempty"`
	// ID is the identifier of an image.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^ami-[0-9a-z]+$`
	ID string `json:"id,omitempty"`
	// Name is the name of images; * stands for any text.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
	// Owner is the account that owns the images: its number, self, or a name such as amazon. Without it,
	// images of this account and of Amazon are looked at.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Owner string `json:"owner,omitempty"`
	// SSMParameter is the name or ARN of a parameter of the Systems Manager that holds the identifier of an
	// image.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	SSMParameter string `json:"ssmParameter,omitempty"`
	// Tags are tags that images must have; * as a value stands for any.
	// +optional
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="tags of a selector term have an empty key or value: give both, or * for any value"
	Tags map[string]string `json:"tags,omitempty"`
}

// SubnetSelectorTerm chooses subnets, by tags or by identifier.
//
// +kubebuilder:validation:XValidation:rule="has(self.tags) != has(self.id)",message="a term of spec.subnetSelectorTerms must have either tags or id"
type SubnetSelectorTerm struct {
	// Tags are tags that subnets must have; * as a value stands for any.
	// +optional
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="tags of a selector term have an empty key or value: give both, or * for any value"
	Tags map[string]string `json:"tags,omitempty"`
	// ID is the identifier of a subnet.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^subnet-[0-9a-z]+$`
	ID string `json:"id,omitempty"`
}

// SecurityGroupSelectorTerm chooses security groups, by tags, identifier or name.
//
// +kubebuilder:validation:XValidation:rule="has(self.tags) || has(self.id) || has(self.name)",message="a term of spec.securityGroupSelectorTerms chooses nothing: give tags, id or name"
// +kubebuilder:validation:XValidation:rule="!has(self.id) || !(has(self.tags) || has(self.name))",messageExpression="'a term of spec.securityGroupSelectorTerms has the id ' + self.id + ' and other fields: an id stands alone in its term'"
// +kubebuilder:validation:XValidation:rule="!has(self.name) || !(has(self.tags) || has(self.id))",messageExpression="'a term of spec.securityGroupSelectorTerms has the name ' + self.name + ' and other fields: a name stands alone in its term'"
type SecurityGroupSelectorTerm struct {
	// Tags are tags that security groups must have; * as a value stands for any.
	// +optional
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="tags of a selector term have an empty key or value: give both, or * for any value"
	Tags map[string]string `json:"tags,omitempty"`
	// ID is the identifier of a security group.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^sg-[0-9a-z]+$`
	ID string `json:"id,omitempty"`
	// Name is the name of a security group, not the value of its tag Name.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name,omitempty"`
}

// CapacityReservationSelectorTerm chooses capacity reservations.
//
// +kubebuilder:validation:XValidation:rule="has(self.tags) || has(self.id) || has(self.instanceMatchCriteria)",message="a term of spec.capacityReservationSelectorTerms chooses nothing: give tags, id or instanceMatchCriteria"
// +kubebuilder:validation:XValidation:rule="!has(self.id) || !(has(self.tags) || has(self.ownerID) || has(self.instanceMatchCriteria))",messageExpression="'a term of spec.capacityReservationSelectorTerms has the id ' + self.id + ' and other fields: an id stands alone in its term'"
type CapacityReservationSelectorTerm struct {
	// Tags are tags that reservations must have; * as a value stands for any.
	// +optional
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="tags of a selector term have an empty key or value: give both, or * for any value"
	Tags map[string]string `json:"tags,omitempty"`
	// ID is the identifier of a capacity reservation.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^cr-[0-9a-z]+$`
	ID string `json:"id,omitempty"`
	// OwnerID is the number of the account that owns the reservations, twelve digits.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9]{12}$`
	OwnerID string `json:"ownerID,omitempty"`
	// InstanceMatchCriteria says which instances a reservation takes: open takes any that fits, targeted
	// only those that ask for it.
	// +optional
	// +kubebuilder:validation:Enum=open;targeted
	InstanceMatchCriteria string `json:"instanceMatchCriteria,omitempty"`
}

// PlacementGroupSelector chooses a placement group, by name or by identifier.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.id)",message="spec.placementGroupSelector must have either name or id"
type PlacementGroupSelector struct {
	// Name is the name of the placement group.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name,omitempty"`
	// ID is the identifier of the placement group.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^pg-[0-9a-z]+$`
	ID string `json:"id,omitempty"`
}
