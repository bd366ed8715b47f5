package operator

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// Kind is a kind of wrapper together with the kind that is made from it, under the same name: what differs between
// NodePools and the node classes of the platforms (G25). Its functions decide; only Make may read, from the management
// cluster.
type Kind struct {
	// Wrapper and Product are the names of the kinds, for people and metrics.
	Wrapper, Product string
	// Finalizer is on the wrapper while the product may exist (R24).
	Finalizer string

	NewWrapper     func() client.Object
	NewWrapperList func() client.ObjectList
	NewProduct     func() client.Object
	NewProductList func() client.ObjectList

	// Make says what a policy, nil for none, and a wrapper come to.
	Make func(ctx context.Context, policy *hypershiftv1beta1.AutoNodePolicy, wrapper client.Object) (Made, error)
	// Overwrite gives the product the spec of the wanted one.
	Overwrite func(product, wanted client.Object)
	// Quarantine lets a product that nobody manages launch nothing, and reports whether that changed anything; nil
	// where nothing can be launched without a pool.
	Quarantine func(product client.Object) (changed bool)
	// Altered compares the product as it is stored with the wanted one, field by field.
	Altered func(product, wanted client.Object) Difference
	// State returns the parts of the wrapper's status that every wrapper has.
	State func(wrapper client.Object) State
	// Mirror copies the product's status into the wrapper's. It returns the conditions instead (R26).
	Mirror func(wrapper, product client.Object) []karpenterv1.Condition
	// PatchStatus returns the patch between two states of a wrapper's status, nil when they say the same.
	PatchStatus func(before, after client.Object) client.Patch
	// Target is what the policy's readiness asks of the wrapper (G16).
	Target func(wrapper client.Object) merge.Target

	// ByOther says that another operator writes wrapper and product: they are read and judged, and never written
	//
	ByOther bool

	// Shared says that HyperShift's own operator knows wrapper and product too, under the same finalizer: a hand-over
	// leaves them tied to each other.
	Shared bool

	// class returns the name of the EC2NodeClass that a product refers to, and whether that should have a wrapper of
	// classes; nil where products refer to none. See OnlyManaged.
	class   func(product client.Object) (name string, ofWrapper bool)
	classes *Kind
}

// State are the parts of a wrapper's status that every wrapper has; writing through the pointers changes the wrapper.
type State struct {
	Conditions     *[]karpenterv1.Condition
	ObservedPolicy **hypershiftv1.ObservedPolicy
}

// Made is what a policy and a wrapper come to.
type Made struct {
	// Product is what to write, nil when Problems or Missing says why nothing is.
	Product client.Object
	// Problems keep the product from being written.
	Problems []merge.Problem
	// Withheld keeps a product that is not there from being made, nil for nothing. One that is there is written.
	Withheld *merge.Problem
	// Missing is what has to come into being first, "" for nothing; it is looked for again after RetryAfter.
	Missing    string
	RetryAfter time.Duration
	// Conditions are about the merge itself.
	Conditions []condition.Value
	// Warning is told as an event about wrapper and product, "" for none (G9).
	Warning, WarningReason string
}
