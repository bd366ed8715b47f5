package merge

import "github.com/joiner-autoscaler/joiner/autonodepolicy/admission"

// The admission policies are package admission's; they have their names here too, since whoever merges needs no other
// package for them.
type (
	// AdmissionConfig says who may write what in the guest cluster. Validate says what must hold. Labels are ours.
	AdmissionConfig = admission.Config
	// NodeClaimRule says how NodeClaims are protected (G5).
	NodeClaimRule = admission.NodeClaimRule
	// Protection is an admission policy with the binding that puts it into force.
	Protection = admission.Protection
)

const (
	// DefaultOperator is the user name that the operator has in the guest cluster unless it is told another (G4).
	DefaultOperator = admission.DefaultOperator
	// NodeClaimsAuto is NodeClaimsByIdentity when the operand has an identity of its own, and NodeClaimsOpen otherwise.
	NodeClaimsAuto = admission.NodeClaimsAuto
	// NodeClaimsOpen protects nothing.
	NodeClaimsOpen = admission.NodeClaimsOpen
	// NodeClaimsByIdentity lets only the operand and the operator create NodeClaims and change their spec.
	NodeClaimsByIdentity = admission.NodeClaimsByIdentity
	// NodeClaimsByContent lets everyone create NodeClaims that name a NodePool as their owner and in their label.
	NodeClaimsByContent = admission.NodeClaimsByContent
)

// Admission returns the policies for the guest cluster (R34 to R39), with the label of what the operator manages; see
// [admission.Policies].
func Admission(config AdmissionConfig) ([]Protection, error) {
	return admission.Policies(labelled(config))
}

// Unwanted returns what Admission leaves out under this configuration and not under every one; see [admission.Unwanted].
func Unwanted(config AdmissionConfig) []Protection { return admission.Unwanted(labelled(config)) }

func labelled(config AdmissionConfig) AdmissionConfig {
	config.Labels = map[string]string{ManagedByLabel: ManagedByValue}
	return config
}
