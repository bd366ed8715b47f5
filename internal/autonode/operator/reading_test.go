package operator_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

var (
	policies     = schema.GroupResource{Group: "karpenter.hypershift.openshift.io", Resource: "autonodepolicies"}
	errForbidden = apierrors.NewForbidden(policies, "", errors.New("no rule"))
	errNotServed = apierrors.NewNotFound(policies, "")
	errBusy      = apierrors.NewInternalError(errors.New("etcd is away"))
	errExpired   = apierrors.NewUnauthorized("token expired")
)

// R45, G15: which answers, at which second, lead to which state.
func TestTheStatesOfReadingThePolicy(t *testing.T) {
	t.Parallel()
	policy := &hypershiftv1beta1.AutoNodePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "u", Generation: 3},
	}
	type step struct {
		second int
		answer operator.Answer
		want   operator.ReadState
	}
	for name, test := range map[string]struct {
		keepLast bool
		steps    []step
	}{
		"found": {steps: []step{{0, operator.Answer{Policy: policy}, operator.StateRead}}},
		"none":  {steps: []step{{0, operator.Answer{}, operator.StateRead}}},
		"a refusal is believed after 30 seconds": {steps: []step{
			{0, operator.Answer{Err: errForbidden}, operator.StateDenied},
			{29, operator.Answer{Err: errForbidden}, operator.StateDenied},
			{30, operator.Answer{Err: errForbidden}, operator.StatePermissive},
			{31, operator.Answer{Policy: policy}, operator.StateRead},
			{32, operator.Answer{Err: errForbidden}, operator.StateDenied},
		}},
		"a missing CRD is a refusal": {steps: []step{
			{0, operator.Answer{Err: errNotServed}, operator.StateDenied},
			{30, operator.Answer{Err: errNotServed}, operator.StatePermissive},
		}},
		"a failure that passes is never permissive": {steps: []step{
			{0, operator.Answer{Err: errBusy}, operator.StateUnavailable},
			{300, operator.Answer{Err: errBusy}, operator.StateUnavailable},
			{301, operator.Answer{Err: errExpired}, operator.StateUnavailable},
			{302, operator.Answer{Err: errForbidden}, operator.StateDenied},
		}},
		"a failure in between neither confirms nor forgets": {steps: []step{
			{0, operator.Answer{Err: errForbidden}, operator.StateDenied},
			{20, operator.Answer{Err: errForbidden}, operator.StateDenied},
			{32, operator.Answer{Err: errBusy}, operator.StateUnavailable},
			{34, operator.Answer{Err: errForbidden}, operator.StateDenied},
			{43, operator.Answer{Err: errForbidden}, operator.StateDenied},
			{44, operator.Answer{Err: errForbidden}, operator.StatePermissive},
			{45, operator.Answer{Err: errBusy}, operator.StateUnavailable},
			{46, operator.Answer{Err: errForbidden}, operator.StatePermissive},
		}},
		// It does so before it is away and after, until it has read the rights.
		"an API server that starts anew is no refusal": {steps: []step{
			{0, operator.Answer{Err: errForbidden}, operator.StateDenied},
			{2, operator.Answer{Err: errBusy}, operator.StateUnavailable},
			{28, operator.Answer{Err: errBusy}, operator.StateUnavailable},
			{30, operator.Answer{Err: errForbidden}, operator.StateDenied},
			{32, operator.Answer{Err: errForbidden}, operator.StateDenied},
			{34, operator.Answer{Policy: policy}, operator.StateRead},
		}},
		"what is refused for good is believed after an outage too": {steps: []step{
			{0, operator.Answer{Err: errForbidden}, operator.StateDenied},
			{25, operator.Answer{Err: errForbidden}, operator.StateDenied},
			{27, operator.Answer{Err: errBusy}, operator.StateUnavailable},
			{41, operator.Answer{Err: errForbidden}, operator.StateDenied},
			{70, operator.Answer{Err: errForbidden}, operator.StateDenied},
			{71, operator.Answer{Err: errForbidden}, operator.StatePermissive},
		}},
		"keep last": {keepLast: true, steps: []step{
			{0, operator.Answer{Err: errForbidden}, operator.StateDenied},
			{3000, operator.Answer{Err: errForbidden}, operator.StateDenied},
		}},
	} {
		reading := operator.Reading{State: operator.StateStarting}
		start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		for _, s := range test.steps {
			reading = reading.Next(s.answer, start.Add(time.Duration(s.second)*time.Second), test.keepLast)
			if reading.State != s.want {
				t.Errorf("%s: at second %d: %s, want %s", name, s.second, reading.State, s.want)
			}
			if reading.State != operator.StateRead && reading.Policy != nil {
				t.Errorf("%s: at second %d: a policy is kept in state %s", name, s.second, reading.State)
			}
		}
	}
}

// Only a status that changed is no reason to look at every wrapper again.
func TestWhenTwoReadingsAreTheSameForWrappers(t *testing.T) {
	t.Parallel()
	read := func(uid types.UID, generation int64, version string) operator.Reading {
		return operator.Reading{}.Next(operator.Answer{Policy: &hypershiftv1beta1.AutoNodePolicy{
			ObjectMeta: metav1.ObjectMeta{UID: uid, Generation: generation, ResourceVersion: version},
		}}, time.Time{}, false)
	}
	none := operator.Reading{State: operator.StateRead}
	for name, c := range map[string]struct {
		a, b operator.Reading
		want bool
	}{
		"a new status":         {read("u", 1, "1"), read("u", 1, "2"), true},
		"a new generation":     {read("u", 1, "1"), read("u", 2, "2"), false},
		"another policy":       {read("u", 1, "1"), read("v", 1, "2"), false},
		"the policy went":      {read("u", 1, "1"), none, false},
		"a policy came":        {none, read("u", 1, "1"), false},
		"none, as before":      {none, none, true},
		"none, by another way": {none, operator.Reading{State: operator.StatePermissive}, false},
	} {
		if got := c.a.SameForWrappers(c.b); got != c.want {
			t.Errorf("%s: the same is %t, want %t", name, got, c.want)
		}
	}
}

// G15, G24: a refusal and a failure keep their cause for those who look; a kind that the API server does not know is
// a refusal. What to apply is known when there is a policy, when there is none, and when nobody may have one.
func TestWhatAReadingSays(t *testing.T) {
	t.Parallel()
	unknown := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "AutoNodePolicy"}}
	for _, c := range []struct {
		err  error
		want operator.ReadState
	}{{errForbidden, operator.StateDenied}, {unknown, operator.StateDenied}, {errBusy, operator.StateUnavailable}} {
		got := operator.Reading{}.Next(operator.Answer{Err: c.err}, time.Time{}, false)
		if got.State != c.want || !errors.Is(got.Cause, c.err) {
			t.Errorf("%v: state %s, cause %v; want %s and the error itself", c.err, got.State, got.Cause, c.want)
		}
	}
	known := []operator.ReadState{operator.StateRead, operator.StatePermissive, operator.StateDisabled}
	for _, state := range operator.ReadStates() {
		if got := (operator.Reading{State: state}).Known(); got != slices.Contains(known, state) {
			t.Errorf("%s: known is %t", state, got)
		}
	}
}

// A board begins before the first answer, and says what hung there before.
func TestTheBoardBeginsBeforeTheFirstAnswer(t *testing.T) {
	t.Parallel()
	board := operator.NewBoard()
	if got := board.Reading().State; got != operator.StateStarting {
		t.Errorf("it begins with %s", got)
	}
	board.Set(operator.Reading{State: operator.StateRead})
	if got := board.Set(operator.Reading{State: operator.StateDenied}).State; got != operator.StateRead {
		t.Errorf("before was %s", got)
	}
}
