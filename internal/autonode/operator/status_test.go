package operator_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// A-01, G15: while the policy is not known nobody compares, and what was altered before stays told.
func TestA01_WhatIsAlteredStaysTold(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
	s.read()
	s.behind(s.admitted(func(pool *karpenterv1.NodePool) { pool.Spec.Weight = new(int32(3)) }))
	for _, answer := range []operator.Answer{{Policy: s.stored()}, {Err: errors.New("down")}} {
		s.learn(answer)
		s.step(s.pools, "web")
		s.says("web", hypershiftv1beta1.ConditionTypeSpecAltered, metav1.ConditionTrue,
			hypershiftv1beta1.ReasonAlteredOnWrite)
	}
}

// R23, A-03: after a restart the status says what an earlier process had applied, of this generation of the wrapper.
func TestA03_AfterARestartTheStatusIsAHint(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happens func(*hypershiftv1beta1.OpenshiftNodePool)
		repairs float64
	}{
		"as it was": {func(*hypershiftv1beta1.OpenshiftNodePool) {}, 1},
		"changed":   {func(w *hypershiftv1beta1.OpenshiftNodePool) { w.Generation = 2 }, 0},
	} {
		s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
		s.read()
		registry := s.behind(s.guest)
		s.step(s.pools, "web")
		s.board.Forget("OpenshiftNodePool", "web")
		w := s.wrapper("web")
		c.happens(w)
		s.must(s.guest.Update(t.Context(), w))
		s.deletePool("web")
		s.step(s.pools, "web")
		if n := controllertest.Count(t, registry, "autonode_repairs_total", "NodePool"); n != c.repairs {
			t.Errorf("%s: %v repairs are counted, want %v", name, n, c.repairs)
		}
	}
}
