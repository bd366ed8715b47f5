package operator_test

import (
	"context"
	"errors"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

// when the guest's admin takes the right to read away, the caches show for ever what was there. The
// operator tells that it does not see any more, and vouches for nothing until it does.
func TestA07_AnOperatorThatMayNotReadSaysSo(t *testing.T) {
	t.Parallel()
	const told = "the operator may not read these in the hosted cluster and does not see what becomes of them: " +
		"Node, ValidatingAdmissionPolicy"
	s := newScene(t, nil, policyOf(1, in(instanceType, "a")))
	var answer error
	live := interceptor.NewClient(s.guest, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			options ...client.ListOption) error {
			if answer != nil {
				return answer
			}
			return c.List(ctx, list, options...)
		}})
	c := operator.NewSightController(operator.SightConfig{
		Live: live, Board: s.board, Now: s.clock.Now,
		Kinds: map[string]client.ObjectList{"Node": &corev1.NodeList{},
			"ValidatingAdmissionPolicy": &admissionv1.ValidatingAdmissionPolicyList{}},
	})
	look := s.looking(s.guest)
	s.read()
	s.step(look, "")
	s.clock.Advance(2 * time.Minute)
	s.step(look, "")
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("taken away"))
	for i, step := range []struct {
		answer error
		after  time.Duration
		blind  bool
		again  time.Duration
	}{
		{nil, 0, false, time.Minute},
		{errBusy, time.Minute, false, time.Minute},
		{forbidden, 0, false, 10 * time.Second},
		{forbidden, 20 * time.Second, false, 10 * time.Second},
		{errBusy, 10 * time.Second, false, 10 * time.Second},
		{forbidden, 0, false, 10 * time.Second},
		{forbidden, 10 * time.Second, true, 10 * time.Second},
		{errBusy, 10 * time.Second, true, 10 * time.Second},
		{nil, 0, false, time.Minute},
	} {
		answer = step.answer
		s.clock.Advance(step.after)
		if again := s.step(c, "").RequeueAfter; again != step.again {
			t.Errorf("%d: again after %s", i, again)
		}
		want := []string{"True NoTargets", "True InForce", "True NoObjects"}
		if step.blind {
			want = []string{"Unknown ProtectionMissing", "False ProtectionMissing", "Unknown NotChecked"}
		}
		for j, kind := range []string{hypershiftv1beta1.ConditionTypeReady, hypershiftv1beta1.ConditionTypeProtected,
			conformance.ConditionType} {
			got := s.policyCondition(kind)
			if string(got.Status)+" "+got.Reason != want[j] || step.blind && got.Message != told {
				t.Errorf("%d: %s is %s %s: %s", i, kind, got.Status, got.Reason, got.Message)
			}
		}
	}
	s.board.Release()
	answer = forbidden
	if again := s.step(c, "").RequeueAfter; again != 0 {
		t.Errorf("again after %s, though the cluster is left", again)
	}
	if got := s.policyCondition(hypershiftv1beta1.ConditionTypeProtectedOnce); got.Status != metav1.ConditionTrue {
		t.Errorf("the guest was never protected: %+v", got)
	}
}
