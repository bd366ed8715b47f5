package operator

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// Reasons of conditions and events, besides those of the API.
const (
	// ReasonDeleting: somebody deletes the product. It is made again when it is gone.
	ReasonDeleting = "Deleting"
	// ReasonRefused: the API server does not let the operator write.
	ReasonRefused = hypershiftv1beta1.ReasonReconcileFailed
	// ReasonRefusedInvalid: the API server refuses the product as invalid (G13).
	ReasonRefusedInvalid = hypershiftv1beta1.ReasonInvalidRequirements
	// ReasonPolicyUnknown: at the moment it is unknown whether there is a policy (G15).
	ReasonPolicyUnknown = "PolicyUnknown"
	// ReasonWaiting: something else must exist first.
	ReasonWaiting = "Waiting"
	// ReasonNotReported: the product has no condition Ready yet.
	ReasonNotReported = "NotReported"
	// ReasonRestored is an event: somebody else had changed or deleted what the operator keeps.
	ReasonRestored = "Restored"
	// ReasonIgnoredTags is an event: tags of a node class that have no effect.
	ReasonIgnoredTags = "IgnoredTags"
	// ReasonUnmanaged is an event: an object without a wrapper that the operator did not make.
	ReasonUnmanaged = "Unmanaged"
	// ReasonForeign is an event: an object without a wrapper that was made past the admission policies.
	ReasonForeign = "Foreign"
	// ReasonNotApproved is an event: a certificate request that belongs to a NodeClaim and is left alone.
	ReasonNotApproved = "NotApproved"
)

// outcome is the result of a step for the product.
type outcome struct {
	made    *Made         // nil if the policy is unknown
	refused *refusal      // nil if the product was not refused or altered
	altered Difference    // between the stored product and the wanted one
	product client.Object // as it is after the step; nil if there is none
	unheld  error         // of adding the finalizer to the wrapper of an existing product
}

// describe sets the conditions and the observed policy of a wrapper. It is pure, except that it writes through state.
func describe(state State, s scene, out outcome, mirrored []karpenterv1.Condition, now time.Time) {
	generation := s.wrapper.GetGeneration()
	if out.product != nil {
		mirrored = current(mirrored, s.wrapper, out.product)
		takeOver(state.Conditions, mirrored)
	}
	// While nothing new is known, the conditions of the last generation stay.
	if out.made != nil || out.product == nil ||
		!hasType(*state.Conditions, hypershiftv1beta1.ConditionTypePolicyApplied) {
		if out.made != nil {
			for _, value := range out.made.Conditions {
				condition.Set(state.Conditions, generation, value, now)
			}
			*state.ObservedPolicy = observed(s.reading.Policy)
		}
		condition.Set(state.Conditions, generation, verdictOf(s.reading, out), now)
	}
	if out.made != nil {
		setAltered(state.Conditions, generation, out.altered.Other, now)
	}
	setReady(state.Conditions, mirrored, now)
}

// verdictOf returns the condition PolicyApplied.
func verdictOf(reading Reading, out outcome) condition.Value {
	const kind = hypershiftv1beta1.ConditionTypePolicyApplied
	switch {
	case out.made == nil: // users of the guest must not see errors of the management cluster
		return condition.Unknown(kind, ReasonPolicyUnknown,
			"the provider's policy cannot be read at the moment; what was applied last stays")
	case len(out.made.Problems) > 0:
		texts := make([]string, len(out.made.Problems))
		for i, problem := range out.made.Problems {
			texts[i] = problem.String()
		}
		return condition.False(kind, out.made.Problems[0].Reason, cut(strings.Join(texts, "; ")))
	case out.made.Missing != "":
		return condition.Unknown(kind, ReasonWaiting, out.made.Missing)
	case out.refused != nil && out.refused.reason == ReasonDeleting:
		return condition.Unknown(kind, out.refused.reason, out.refused.message)
	case out.refused != nil:
		return condition.False(kind, out.refused.reason, cut(out.refused.message))
	case reading.State == StatePermissive:
		return condition.False(kind, hypershiftv1beta1.ReasonPolicyUnreadable,
			"the provider's policy may not be read, so none is applied")
	case reading.Policy == nil:
		return condition.True(kind, hypershiftv1beta1.ReasonNoPolicy, "")
	}
	return condition.True(kind, hypershiftv1beta1.ReasonApplied, "")
}

// setAltered sets the condition SpecAltered: which of the user's own fields are not stored as written. That does not
// concern the policy.
func setAltered(conditions *[]karpenterv1.Condition, generation int64, paths []string, now time.Time) {
	const kind = hypershiftv1beta1.ConditionTypeSpecAltered
	if len(paths) == 0 {
		condition.Clear(conditions, kind)
		return
	}
	condition.Set(conditions, generation, condition.True(kind, hypershiftv1beta1.ReasonAlteredOnWrite,
		cut(alteration("NodePool", paths))), now)
}

// setReady sets Ready from the other conditions. What keeps the product from being written or from launching nodes
// comes first, then the product's own Ready.
func setReady(conditions *[]karpenterv1.Condition, mirrored []karpenterv1.Condition, now time.Time) {
	const kind = hypershiftv1beta1.ConditionTypeReady
	applied, _ := condition.Get(*conditions, hypershiftv1beta1.ConditionTypePolicyApplied)
	compatible, _ := condition.Get(*conditions, hypershiftv1beta1.ConditionTypeRequirementsCompatible)
	version, _ := condition.Get(*conditions, hypershiftv1beta1.ConditionTypeVersionResolved)
	ready := condition.Value{Type: kind}
	switch {
	case applied.Status != metav1.ConditionTrue && applied.Reason != hypershiftv1beta1.ReasonPolicyUnreadable:
		ready.Status, ready.Reason, ready.Message = applied.Status, applied.Reason, applied.Message
	case compatible.Status == metav1.ConditionFalse:
		ready.Status, ready.Reason, ready.Message = compatible.Status, compatible.Reason, compatible.Message
	case version.Status == metav1.ConditionFalse:
		ready.Status, ready.Reason, ready.Message = version.Status, version.Reason, version.Message
	case hasType(mirrored, kind):
		said, _ := condition.Get(mirrored, kind)
		condition.Clear(conditions, kind)
		*conditions = append(*conditions, said)
		return
	default:
		ready = condition.Unknown(kind, ReasonNotReported,
			"Karpenter has not said yet whether what was made from this object can be used")
	}
	condition.Set(conditions, applied.ObservedGeneration, ready, now)
}

// ownConditions are the conditions that the operator sets itself.
var ownConditions = []string{
	hypershiftv1beta1.ConditionTypePolicyApplied, hypershiftv1beta1.ConditionTypeRequirementsCompatible,
	hypershiftv1beta1.ConditionTypeRootVolumeOverridden,
	hypershiftv1beta1.ConditionTypeSpecAltered, hypershiftv1beta1.ConditionTypeNodeClassManaged,
	hypershiftv1beta1.ConditionTypeVersionResolved,
	hypershiftv1beta1.ConditionTypeReady, // the product's own counts in it
}

// takeOver replaces the conditions that are not the operator's own with the product's (R26).
func takeOver(conditions *[]karpenterv1.Condition, mirrored []karpenterv1.Condition) {
	own := func(c karpenterv1.Condition) bool { return slices.Contains(ownConditions, c.Type) }
	list := slices.DeleteFunc(slices.Clone(*conditions), func(c karpenterv1.Condition) bool { return !own(c) })
	*conditions = append(list, slices.DeleteFunc(slices.Clone(mirrored), own)...)
}

// current translates the generations in the product's conditions to those of the wrapper, since each counts its own. A
// condition that is current for the product becomes current for the wrapper.
func current(said []karpenterv1.Condition, wrapper, product client.Object) []karpenterv1.Condition {
	list := slices.Clone(said)
	for i := range list {
		switch list[i].ObservedGeneration {
		case 0:
		case product.GetGeneration():
			list[i].ObservedGeneration = wrapper.GetGeneration()
		default:
			list[i].ObservedGeneration = max(0, wrapper.GetGeneration()-1)
		}
	}
	return list
}

func hasType(conditions []karpenterv1.Condition, kind string) bool {
	_, found := condition.Get(conditions, kind)
	return found
}

// observed identifies a state of the policy, nil for none.
func observed(policy *hypershiftv1beta1.AutoNodePolicy) *hypershiftv1.ObservedPolicy {
	if policy == nil {
		return nil
	}
	return &hypershiftv1.ObservedPolicy{UID: policy.UID, Generation: policy.Generation}
}

func samePolicy(seen *hypershiftv1.ObservedPolicy, policy *hypershiftv1beta1.AutoNodePolicy) bool {
	now := observed(policy)
	return (seen == nil) == (now == nil) && (now == nil || *seen == *now)
}

// applied reports whether the wrapper's conditions say that this generation of it is applied.
func applied(conditions []karpenterv1.Condition, generation int64) bool {
	said, _ := condition.Get(conditions, hypershiftv1beta1.ConditionTypePolicyApplied)
	return said.Status == metav1.ConditionTrue && said.ObservedGeneration == generation
}
