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

// Kind is a kind of wrapper together with the kind of product that is made from it under the same name. It holds what
// differs between NodePools and the node classes of the platforms (G25). Its functions only decide; only Make may
// read, from the management cluster.
type Kind struct {
	// Wrapper and Product are the names of the kinds, for people and metrics.
	Wrapper, Product string
	// Finalizer is on the wrapper while the product may exist (R24).
	Finalizer string

	NewWrapper     func() client.Object
	NewWrapperList func() client.ObjectList
	NewProduct     func() client.Object
	NewProductList func() client.ObjectList

	// Make returns what to write for a policy, nil for none, and a wrapper.
	Make func(ctx context.Context, policy *hypershiftv1beta1.AutoNodePolicy, wrapper client.Object) (Made, error)
	// Overwrite gives the product the spec of the wanted one.
	Overwrite func(product, wanted client.Object)
	// Quarantine changes an unmanaged product so that it launches nothing, and reports whether that changed anything.
	// It is nil for kinds that launch nothing without a pool.
	Quarantine func(product client.Object) (changed bool)
	// Altered compares the stored product with the wanted one, field by field.
	Altered func(product, wanted client.Object) Difference
	// State returns the parts of the wrapper's status that every wrapper has.
	State func(wrapper client.Object) State
	// Mirror copies the product's status into the wrapper's, except the conditions, which it returns (R26).
	Mirror func(wrapper, product client.Object) []karpenterv1.Condition
	// PatchStatus returns the patch between two states of a wrapper's status, nil if they are the same.
	PatchStatus func(before, after client.Object) client.Patch
	// Target returns what the policy's readiness needs to know about the wrapper (G16).
	Target func(wrapper client.Object) merge.Target

	// ByOther says that another operator writes wrapper and product: they are read and judged, but never written
	//
	ByOther bool

	// Shared says that HyperShift's own operator knows wrapper and product too, with the same finalizer. So a
	// hand-over keeps the owner and the finalizer that tie them.
	Shared bool

	// class returns the name of the node class that a product refers to, and whether that must have a wrapper of kind
	// classes. It is nil for products that refer to none. See OnlyManaged.
	class   func(product client.Object) (name string, ofWrapper bool)
	classes *Kind
}

// State is the part of the status that every wrapper has. Writing through the pointers changes the wrapper.
type State struct {
	Conditions     *[]karpenterv1.Condition
	ObservedPolicy **hypershiftv1.ObservedPolicy
}

// Made is the result of [Kind.Make].
type Made struct {
	// Product is what to write; nil if Problems or Missing says why not.
	Product client.Object
	// Problems keep the product from being written.
	Problems []merge.Problem
	// Withheld keeps a missing product from being created; nil if nothing does. An existing one is written all the
	// same.
	Withheld *merge.Problem
	// Missing is what must exist first, "" for nothing. It is looked for again after RetryAfter.
	Missing    string
	RetryAfter time.Duration
	// Conditions are about the merge itself.
	Conditions []condition.Value
	// Warning is the text of an event about wrapper and product, "" for none (G9).
	Warning, WarningReason string
}
