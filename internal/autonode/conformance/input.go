package conformance

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// Kinds of objects that are judged.
const (
	NodePool     = "NodePool"
	EC2NodeClass = "EC2NodeClass"
	NodeClaim    = "NodeClaim"
	Node         = "Node"
	Policy       = "AutoNodePolicy"
)

// Objects is what the guest's API server has, in any order. Objects that are being deleted are not judged.
type Objects struct {
	Pools   []karpenterv1.NodePool
	Classes []awsv1.EC2NodeClass
	Claims  []karpenterv1.NodeClaim
	Nodes   []corev1.Node
}

// PolicyState says what is known about the policy.
type PolicyState string

// The states of the policy.
const (
	PolicyHolds    PolicyState = ""           // Input.Policy holds; if it is nil, requirements are not judged
	PolicyIsBad    PolicyState = "Invalid"    // the last valid one holds
	PolicyIsUnread PolicyState = "Unreadable" // the policy is unknown, and nothing is enforced
)

// Product names an object that the operator writes.
type Product struct{ Kind, Name string }

// Written is what this process last knew about a product: after a write, or after it found the product as wanted.
type Written struct {
	UID types.UID
	// Policy is the generation of the policy that the product was made for.
	Policy int64
	// Altered is set if the answer to a write differed from what was sent.
	Altered bool
	// Failed is why the product is not as wanted, as the operator knows; "" if it is as wanted.
	Failed Cause
	// Class is the spec that the operator found to be as wanted; nil for pools, and for a class that was never as
	// wanted.
	Class *awsv1.EC2NodeClassSpec
}

// Memory is what the operator knows about itself. Times are the API server's or the operator's; zero means unknown.
type Memory struct {
	// Began is when the process started.
	Began time.Time
	// Protected is when the guest was protected for the first time.
	Protected time.Time
	// Unprotected is set while one of the operator's admission policies is not in force.
	Unprotected bool
	// PolicySince is when the policy's present generation came into force; zero if that was before the process
	// started.
	PolicySince time.Time
	// Written is what the operator wrote, by product.
	Written map[Product]Written
	// Images are the identifiers of the machine images that this process gave to node classes; nil if it gives none.
	Images map[string]bool
	// Others are the kinds that another operator writes: NodePool, EC2NodeClass. This operator writes none of them, so
	// they are judged by the policy alone.
	Others map[string]bool
	// Wrapped are the names of OpenshiftEC2NodeClasses, if another operator writes EC2NodeClasses.
	Wrapped map[string]bool
	// Profile is the instance profile that all nodes should have; "" if the operator gives none.
	Profile string
}

// Settings are the tolerances.
type Settings struct {
	// Grace is how long after a change of the policy older objects may differ: their nodes are being replaced (A-21:
	// 24 h).
	Grace time.Duration
	// Clocks is how much the clocks of API server and operator may differ (A-07: 10 s).
	Clocks time.Duration
	// Settle is how long a write may be under way before a missing one is a finding.
	Settle time.Duration
}

// DefaultSettings returns the settings of the specification.
func DefaultSettings() Settings {
	return Settings{Grace: 24 * time.Hour, Clocks: 10 * time.Second, Settle: time.Minute}
}

// Input is the input of [Look].
type Input struct {
	State PolicyState
	// Policy is the policy in force; nil if there is none, or none is known.
	Policy   *hypershiftv1beta1.AutoNodePolicy
	Memory   Memory
	Objects  Objects
	Settings Settings
	Now      time.Time
}
