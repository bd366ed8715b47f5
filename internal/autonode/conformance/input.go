package conformance

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// Kinds of objects that are looked at.
const (
	NodePool     = "NodePool"
	EC2NodeClass = "EC2NodeClass"
	NodeClaim    = "NodeClaim"
	Node         = "Node"
	Policy       = "AutoNodePolicy"
)

// Objects is what the guest's API server has, in any order. Objects that are being deleted are not judged: they go.
type Objects struct {
	Pools   []karpenterv1.NodePool
	Classes []awsv1.EC2NodeClass
	Claims  []karpenterv1.NodeClaim
	Nodes   []corev1.Node
}

// PolicyState is what is known of the policy.
type PolicyState string

// The states of the policy.
const (
	PolicyHolds    PolicyState = ""           // the one that is given; without one requirements are not judged
	PolicyIsBad    PolicyState = "Invalid"    // the last valid one holds
	PolicyIsUnread PolicyState = "Unreadable" // nothing is known of it, and nothing is enforced
)

// Product names an object that the operator writes.
type Product struct{ Kind, Name string }

// Written is what this process last made of a product: after a write, or after a look that found it as it should be.
type Written struct {
	UID types.UID
	// Policy is the generation of the policy that it was made for.
	Policy int64
	// Altered is set when the answer to a write was not what was sent.
	Altered bool
	// Failed is why the product is not as it should be, in the operator's own words; "" when it is.
	Failed Cause
	// Class is the spec that the operator found to be as wanted; nil for pools, and for a class that never was.
	Class *awsv1.EC2NodeClassSpec
}

// Memory is what the operator knows of itself. Times are the API server's or the operator's; zero is not known.
type Memory struct {
	// Began is when the process began.
	Began time.Time
	// Protected is when the guest was protected for the first time.
	Protected time.Time
	// Unprotected is set while an admission policy of the operator's is not in force.
	Unprotected bool
	// PolicySince is since when the policy's present generation is in force; zero when it was before the process
	// began.
	PolicySince time.Time
	// Written is what was made, by product.
	Written map[Product]Written
	// Images are the identifiers of the machine images that this process gave to node classes; nil when it gives none.
	Images map[string]bool
	// Others are the kinds that another operator writes: NodePool, EC2NodeClass. What is written of them is nothing,
	// and they are judged by the policy alone.
	Others map[string]bool
	// Wrapped are the names that have an OpenshiftEC2NodeClass, where another operator writes EC2NodeClasses.
	Wrapped map[string]bool
	// Profile is the instance profile that all nodes are to have; "" when the operator gives none.
	Profile string
}

// Settings are the tolerances.
type Settings struct {
	// Grace is how long objects may be older than the policy before that is a finding: their nodes are being replaced
	// 24 h).
	Grace time.Duration
	// Clocks is how far the clocks of API server and operator may be apart (A-07: 10 s).
	Clocks time.Duration
	// Settle is how long a write may be under way before its lack is a finding.
	Settle time.Duration
}

// DefaultSettings returns the settings of the specification.
func DefaultSettings() Settings {
	return Settings{Grace: 24 * time.Hour, Clocks: 10 * time.Second, Settle: time.Minute}
}

// Input is all that a look gets.
type Input struct {
	State PolicyState
	// Policy is what is in force; nil when there is none, or none is known.
	Policy   *hypershiftv1beta1.AutoNodePolicy
	Memory   Memory
	Objects  Objects
	Settings Settings
	Now      time.Time
}
