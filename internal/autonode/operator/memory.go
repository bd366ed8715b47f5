package operator

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// memory is what the operator remembers about its own writes for package conformance, and what that package found. It
// is protected by the board's lock.
type memory struct {
	written    map[conformance.Product]conformance.Written
	images     map[string]bool // that were given to node classes since the start
	conforming *condition.Value
}

func newMemory() memory {
	return memory{written: map[conformance.Product]conformance.Written{}, images: map[string]bool{}}
}

// made remembers the result of a step for a product.
func (b *Board) made(kind, name string, reading Reading, out outcome) {
	product := conformance.Product{Kind: kind, Name: name}
	b.mu.Lock()
	defer b.mu.Unlock()
	if out.product == nil {
		delete(b.memory.written, product)
		return
	}
	if out.made == nil { // the policy is unknown: what was remembered before holds
		return
	}
	w := conformance.Written{UID: out.product.GetUID(), Failed: failure(kind, reading, out)}
	if reading.Policy != nil {
		w.Policy = reading.Policy.Generation
	}
	before := b.memory.written[product]
	class, is := out.product.(*karpenterawsv1.EC2NodeClass)
	switch {
	case w.Failed == conformance.AlteredOnWrite:
		w.Altered, w.Failed = true, ""
	case out.made.Missing != "" && before.UID == w.UID:
		w.Class = before.Class // it stays as it was
	case is && w.Failed == "":
		w.Class = class.Spec.DeepCopy()
		for _, term := range class.Spec.AMISelectorTerms {
			b.memory.images[term.ID] = true
		}
	}
	b.memory.written[product] = w
}

// unmade forgets a product whose wrapper is gone.
func (b *Board) unmade(kind, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.memory.written, conformance.Product{Kind: kind, Name: name})
}

// failure returns why a step that knew the policy did not bring a product in line, as a cause of package conformance.
// It returns "" if the step did, and for a pool that waits for its class: then the class has the cause.
func failure(kind string, reading Reading, out outcome) conformance.Cause {
	switch {
	case out.refused != nil && out.refused.reason == hypershiftv1beta1.ReasonAlteredOnWrite:
		return conformance.AlteredOnWrite
	case out.refused != nil && out.refused.reason == ReasonDeleting:
		return conformance.WrittenByOther
	case out.refused != nil:
		return conformance.OperatorError
	case len(out.made.Problems) > 0:
		return causeOf(out.made.Problems[0], reading.Policy)
	case out.made.Missing != "" && kind == karpenterawsv1.EC2NodeClassKind:
		if slices.ContainsFunc(out.made.Conditions, unresolved) { // the requested release is not available, or not yet
			return conformance.VersionNotSupported
		}
		return conformance.BootstrapMissing
	}
	return ""
}

// unresolved reports whether a condition says that a class does not have the release that its user asks for.
func unresolved(said condition.Value) bool {
	return said.Type == hypershiftv1beta1.ConditionTypeVersionResolved && said.Status == metav1.ConditionFalse
}

// causeOf returns the cause of package conformance for a problem of a merge. A wrapper that cannot be merged with a
// valid policy is its user's business. But too many entries are the provider's if the policy leaves no room for
// others.
func causeOf(problem merge.Problem, policy *hypershiftv1beta1.AutoNodePolicy) conformance.Cause {
	if policy != nil && len(merge.Check(policy)) > 0 {
		return conformance.PolicyInvalid
	}
	switch problem.Reason {
	case hypershiftv1beta1.ReasonTooManyRequirements:
		if policy == nil || len(policy.Spec.NodePoolDefaults.Requirements) < merge.MaxRequirements {
			return conformance.IncompatibleRequirements
		}
		return conformance.TooManyRequirements
	case hypershiftv1beta1.ReasonNodeClassUnmanaged, hypershiftv1beta1.ReasonNodeClassNotApplied,
		merge.ReasonInvalidNodeClassRef:
		return conformance.NodeClassUnmanaged
	case hypershiftv1beta1.ReasonVersionNotSupported:
		return conformance.VersionNotSupported
	case hypershiftv1beta1.ReasonInvalidRequirements, merge.ReasonInvalidBlockDevice,
		hypershiftv1beta1.ReasonRuleTooLarge:
		return conformance.IncompatibleRequirements
	}
	return conformance.OperatorError
}

// remembered returns copies of what was written and of the images that were given.
func (b *Board) remembered() (written map[conformance.Product]conformance.Written, images map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.memory.written), maps.Clone(b.memory.images)
}

// setConforming stores what a look found, and reports whether that is news.
func (b *Board) setConforming(value condition.Value) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.memory.conforming != nil && *b.memory.conforming == value {
		return false
	}
	b.memory.conforming = &value
	return true
}

// conforming returns what the last look found; nil before the first.
func (b *Board) conforming() *condition.Value {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.memory.conforming
}
