package operator_test

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	policy := &hypershiftv1beta1.AutoNodePolicy{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "u", Generation: 3}}
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
			{31, operator.Answer{Err: errBusy}, operator.StateUnavailable},
			{32, operator.Answer{Err: errForbidden}, operator.StatePermissive},
			{33, operator.Answer{Err: errBusy}, operator.StateUnavailable},
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
func TestAReadingIsTheSameForWrappersUntilTheGenerationChanges(t *testing.T) {
	t.Parallel()
	read := func(uid string, generation int64) operator.Reading {
		return operator.Reading{}.Next(operator.Answer{Policy: &hypershiftv1beta1.AutoNodePolicy{
			ObjectMeta: metav1.ObjectMeta{UID: "u" + "/" + "1", Generation: generation, ResourceVersion: uid},
		}}, time.Time{}, false)
	}
	if !read("1", 1).SameForWrappers(read("2", 1)) || read("1", 1).SameForWrappers(read("1", 2)) ||
		read("1", 1).SameForWrappers(operator.Reading{State: operator.StateRead}) {
		t.Error("want UID and generation to decide")
	}
}
