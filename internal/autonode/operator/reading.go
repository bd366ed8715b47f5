package operator

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
)

// ConfirmAfter is how long the management cluster must refuse to show the policy before that counts as unreadable
// (G15). A Role that is being replaced, or a CRD that is being installed, must not open the cluster for a moment.
const ConfirmAfter = 30 * time.Second

// forgetAfter is how long failures of another kind may come between two refusals without the count beginning anew. It
// is longer than a request that times out and its pause, and shorter than an API server takes to start: one that has
// just started refuses everybody until it knows the rights.
const forgetAfter = ConfirmAfter / 2

// ReadState says what is known about the policy. It is a label of a metric: the set is closed.
type ReadState string

// The states. What depends on the policy is written only in Read, Permissive and Disabled.
const (
	// StateStarting holds before the first answer of the management cluster.
	StateStarting ReadState = "Starting"
	// StateRead: the policy is known, or known not to exist.
	StateRead ReadState = "Read"
	// StateDenied: reading is refused (403, or the kind is not served), but not yet for ConfirmAfter. With keepLast it
	// stays Denied.
	StateDenied ReadState = "Denied"
	// StatePermissive: reading was refused for ConfirmAfter. The operator acts as if there was no policy (R45).
	StatePermissive ReadState = "Permissive"
	// StateUnavailable: reading fails for now. Nothing is known, and what was applied last stays.
	StateUnavailable ReadState = "Unavailable"
	// StateDisabled: the feature gate is off (G24), so there is no policy.
	StateDisabled ReadState = "Disabled"
)

// ReadStates returns all states.
func ReadStates() []ReadState {
	return []ReadState{StateStarting, StateRead, StateDenied, StatePermissive, StateUnavailable, StateDisabled}
}

// Reading is what is known about the policy. It is a value. Nobody may change the policy that it points to.
type Reading struct {
	State ReadState
	// Policy is the policy in StateRead; nil if there is none.
	Policy *hypershiftv1beta1.AutoNodePolicy
	// Cause is the error behind the states Denied, Permissive and Unavailable.
	Cause error

	refusals refusals
}

// refusals counts for how long refusals have followed each other. Only time between two refusals in a row counts.
// Answers end a row; so do other failures, but they keep the count if they are over soon.
type refusals struct {
	lasted time.Duration
	last   time.Time // the last refusal; zero for none since the last answer
	broken bool      // other failures came since
}

// next returns the count after one more refusal.
func (r refusals) next(now time.Time) refusals {
	after := refusals{lasted: r.lasted, last: now}
	switch gap := now.Sub(r.last); {
	case r.last.IsZero(), r.broken && gap > forgetAfter:
		after.lasted = 0
	case !r.broken:
		after.lasted += gap
	}
	return after
}

// Known reports whether it is known what to apply: a policy, or none.
func (r Reading) Known() bool {
	return r.State == StateRead || r.State == StatePermissive || r.State == StateDisabled
}

// SameForWrappers reports whether two readings mean the same for the wrappers.
func (r Reading) SameForWrappers(other Reading) bool {
	if r.State != other.State || (r.Policy == nil) != (other.Policy == nil) {
		return false
	}
	return r.Policy == nil || r.Policy.UID == other.Policy.UID && r.Policy.Generation == other.Policy.Generation
}

// Answer is the result of one attempt to read the policy: the policy, nil for none, or an error.
type Answer struct {
	Policy *hypershiftv1beta1.AutoNodePolicy
	Err    error
}

// Next returns what is known after an answer (G15). With keepLast, a refusal never becomes StatePermissive.
func (r Reading) Next(answer Answer, now time.Time, keepLast bool) Reading {
	if answer.Err == nil {
		return Reading{State: StateRead, Policy: answer.Policy}
	}
	if !denied(answer.Err) {
		broken := r.refusals
		broken.broken = true
		return Reading{State: StateUnavailable, Cause: answer.Err, refusals: broken}
	}
	after := Reading{State: StateDenied, Cause: answer.Err, refusals: r.refusals.next(now)}
	if !keepLast && after.refusals.lasted >= ConfirmAfter {
		after.State = StatePermissive
	}
	return after
}

// denied reports whether an error of listing means that this operator may not, or cannot, read policies here at all.
// Rejected credentials (401) do not mean that: tokens are renewed.
func denied(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}
