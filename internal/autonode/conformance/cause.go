package conformance

// Party says whose business a finding is. The set is closed.
type Party string

// The parties.
const (
	Tenant   Party = "Tenant"   // administers the hosted cluster
	Provider Party = "Provider" // writes the policy
	Service  Party = "Service"  // runs the control planes: HyperShift or Joiner
	Cloud    Party = "Cloud"
	Nobody   Party = "" // of an unknown cause
)

// Parties returns every party.
func Parties() []Party { return []Party{Tenant, Provider, Service, Cloud} }

// Cause is why an object differs. The set is closed.
type Cause string

// The causes.
const (
	// the API server stored something other than the operator sent
	AlteredOnWrite Cause = "AlteredOnWrite"
	WrittenByOther Cause = "WrittenByOther" // it was as wanted, and no longer is
	// made beside the wrappers while the guest was not protected
	Foreign                  Cause = "Foreign"
	HandMade                 Cause = "HandMade"                 // a claim or node that no NodePool made
	NodeClassUnmanaged       Cause = "NodeClassUnmanaged"       // a node class that is not the operator's
	VersionNotSupported      Cause = "VersionNotSupported"      // a release without bootstrap data
	IncompatibleRequirements Cause = "IncompatibleRequirements" // a pool that contradicts the policy
	PolicyInvalid            Cause = "PolicyInvalid"
	PolicyUnreadable         Cause = "PolicyUnreadable"
	PolicyChanged            Cause = "PolicyChanged" // older than the policy's present generation
	TooManyRequirements      Cause = "TooManyRequirements"
	BootstrapMissing         Cause = "BootstrapMissing"
	OperatorError            Cause = "OperatorError"
	ProtectionMissing        Cause = "ProtectionMissing"
	NotOwned                 Cause = "NotOwned" // another operator writes objects of this kind
	Legacy                   Cause = "Legacy"   // older than the protection of this guest
	CloudRefused             Cause = "CloudRefused"
	CloudDiffers             Cause = "CloudDiffers" // the machine is not what the claim asked for
	Unclear                  Cause = "Unknown"      // the operator's memory does not reach back far enough
)

// Causes returns every cause, in the order of their declaration.
func Causes() []Cause {
	return []Cause{
		AlteredOnWrite, WrittenByOther, Foreign, HandMade, NodeClassUnmanaged, VersionNotSupported,
		IncompatibleRequirements,
		PolicyInvalid, PolicyUnreadable, PolicyChanged, TooManyRequirements, BootstrapMissing, OperatorError,
		ProtectionMissing, NotOwned, Legacy,
		CloudRefused, CloudDiffers, Unclear,
	}
}

// Party returns whose business a cause is.
func (c Cause) Party() Party {
	switch c {
	case AlteredOnWrite, WrittenByOther, Foreign, HandMade, NodeClassUnmanaged, VersionNotSupported,
		IncompatibleRequirements:
		return Tenant
	case PolicyInvalid, PolicyUnreadable, PolicyChanged, TooManyRequirements:
		return Provider
	case BootstrapMissing, OperatorError, ProtectionMissing, NotOwned, Legacy:
		return Service
	case CloudRefused, CloudDiffers:
		return Cloud
	}
	return Nobody
}

// State says how an object compares with the policy.
type State string

// The states of objects.
const (
	Conforms      State = "Conforms"
	NotConforming State = "NotConforming"
	Replacing     State = "Replacing" // outside the policy, and expected to go: the policy changed recently
	NotKnown      State = "Unknown"   // it cannot be judged yet
)

// Finding is one way in which one object differs.
type Finding struct {
	Kind  string // NodePool, EC2NodeClass, NodeClaim, Node or AutoNodePolicy
	Name  string
	State State // never Conforms
	Cause Cause
	// Field is where the object differs; "" for the object as a whole.
	Field string
	// Message says what is there, what is allowed, and what to do.
	Message string
}
