package v1

// SubnetSelectorTerm chooses subnets, by tags or by identifier.
//
// +kubebuilder:validation:XValidation:rule="has(self.tags) != has(self.id)",message="a term of spec.subnetSelectorTerms must have either tags or id"
type SubnetSelectorTerm struct {
	// Tags are tags that subnets must have; * as a value stands for any.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="tags of a selector term have an empty key or value: give both, or * for any value"
	Tags map[string]string `json:"tags,omitempty"`
	// ID is the identifier of a subnet.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^subnet-[0-9a-z]+$')",messageExpression="'spec.subnetSelectorTerms id is ' + self + ': it must be subnet- and then lower-case letters and digits'"
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
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="tags of a selector term have an empty key or value: give both, or * for any value"
	Tags map[string]string `json:"tags,omitempty"`
	// ID is the identifier of a security group.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^sg-[0-9a-z]+$')",messageExpression="'spec.securityGroupSelectorTerms id is ' + self + ': it must be sg- and then lower-case letters and digits'"
	ID string `json:"id,omitempty"`
	// Name is the name of a security group, not the value of its tag Name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
}

// CapacityReservationSelectorTerm chooses capacity reservations.
//
// +kubebuilder:validation:XValidation:rule="has(self.tags) || has(self.id) || has(self.instanceMatchCriteria)",message="a term of spec.capacityReservationSelectorTerms chooses nothing: give tags, id or instanceMatchCriteria"
// +kubebuilder:validation:XValidation:rule="!has(self.id) || !(has(self.tags) || has(self.ownerID) || has(self.instanceMatchCriteria))",messageExpression="'a term of spec.capacityReservationSelectorTerms has the id ' + self.id + ' and other fields: an id stands alone in its term'"
type CapacityReservationSelectorTerm struct {
	// Tags are tags that reservations must have; * as a value stands for any.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="tags of a selector term have an empty key or value: give both, or * for any value"
	Tags map[string]string `json:"tags,omitempty"`
	// ID is the identifier of a capacity reservation.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^cr-[0-9a-z]+$')",messageExpression="'spec.capacityReservationSelectorTerms id is ' + self + ': it must be cr- and then lower-case letters and digits'"
	ID string `json:"id,omitempty"`
	// OwnerID is the number of the account that owns the reservations, twelve digits.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{12}$')",messageExpression="'spec.capacityReservationSelectorTerms ownerID is ' + self + ': it must be the twelve digits of an account'"
	OwnerID string `json:"ownerID,omitempty"`
	// InstanceMatchCriteria says which instances a reservation takes: Open takes any that fits, Targeted only
	// those that ask for it.
	// +optional
	// +kubebuilder:validation:Enum=Open;Targeted
	InstanceMatchCriteria InstanceMatchCriteria `json:"instanceMatchCriteria,omitempty"`
}
