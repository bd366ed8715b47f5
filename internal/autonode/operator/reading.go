package operator

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
)

// ConfirmAfter is how long the management cluster must refuse to show the policy until it counts as unreadable (G15):
// a Role that is being replaced, or a CRD that is being installed, must not open the cluster for a moment.
const ConfirmAfter = 30 * time.Second

// ReadState says how the policy is known. It is a label of a metric: the set is closed.
type ReadState string

// The states. Only in Read, Permissive and Disabled is anything written that depends on the policy.
const (
	// StateStarting is before the first answer of the management cluster.
	StateStarting ReadState = "Starting"
	// StateRead is when the policy is known, or known not to exist.
	StateRead ReadState = "Read"
	// StateDenied is when reading is refused (403, or the kind is not served), but not for long enough, or for good
	// when the operator is to keep what was applied last.
	StateDenied ReadState = "Denied"
	// StatePermissive is when reading was refused for ConfirmAfter: as if there was no policy (R45).
	StatePermissive ReadState = "Permissive"
	// StateUnavailable is when reading fails in a way that passes: nothing is known, what was applied last stays.
	StateUnavailable ReadState = "Unavailable"
	// StateDisabled is when the feature gate is off (G24): there is no policy.
	StateDisabled ReadState = "Disabled"
)

// ReadStates lists the states.
func ReadStates() []ReadState {
	return []ReadState{StateStarting, StateRead, StateDenied, StatePermissive, StateUnavailable, StateDisabled}
}

// Reading is what is known of the policy. It is a value; the policy it points to is not changed by anybody.
type Reading struct {
	State ReadState
	// Policy is the policy in StateRead; nil when there is none.
	Policy *hypershiftv1beta1.AutoNodePolicy
	// Cause is the error behind the states Denied, Permissive and Unavailable.
	Cause error

	deniedSince time.Time // of the first refusal in a row; failures that pass do not end the row, answers do
}

// Known reports whether it is known what to apply: the policy, or that there is none.
func (r Reading) Known() bool {
	return r.State == StateRead || r.State == StatePermissive || r.State == StateDisabled
}

// SameForWrappers reports whether two readings ask the same of the wrappers.
func (r Reading) SameForWrappers(other Reading) bool {
	if r.State != other.State || (r.Policy == nil) != (other.Policy == nil) {
		return false
	}
	return r.Policy == nil || r.Policy.UID == other.Policy.UID && r.Policy.Generation == other.Policy.Generation
}

// Answer is what one attempt to read the policy brought: the policy, nil for none, or an error.
type Answer struct {
	Policy *hypershiftv1beta1.AutoNodePolicy
	Err    error
}

// Next returns what is known after an answer (G15). With keepLast a refusal never becomes permissive.
func (r Reading) Next(answer Answer, now time.Time, keepLast bool) Reading {
	if answer.Err == nil {
		return Reading{State: StateRead, Policy: answer.Policy}
	}
	if !denied(answer.Err) {
		return Reading{State: StateUnavailable, Cause: answer.Err, deniedSince: r.deniedSince}
	}
	since := r.deniedSince
	if since.IsZero() {
		since = now
	}
	state := StateDenied
	if !keepLast && now.Sub(since) >= ConfirmAfter {
		state = StatePermissive
	}
	return Reading{State: state, Cause: answer.Err, deniedSince: since}
}

// denied reports whether an error of listing means that this operator may not, or cannot, read policies here at all.
// That credentials are not accepted (401) is not one: tokens are renewed.
func denied(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}
