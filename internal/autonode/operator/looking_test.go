package operator_test

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

// a process that has just begun comes back when it can judge, and does not overwrite what an earlier one found
// before that.
func TestA22_AProcessThatHasJustBegunComesBack(t *testing.T) {
	t.Parallel()
	pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "stray"}}
	s := newScene(t, []client.Object{pool}, policyOf(1, in(instanceType, "a")))
	c := s.looking(s.guest)
	if again := s.step(c, "").RequeueAfter; again != time.Minute {
		t.Errorf("before the policy is known: again after %s, want 1m", again)
	}
	s.read()
	for _, want := range []time.Duration{time.Minute, 40 * time.Second, 20 * time.Second} {
		if again := s.step(c, "").RequeueAfter; again != want || c.woken != 0 {
			t.Errorf("again after %s, woken %d times, want %s and none", again, c.woken, want)
		}
		s.clock.Advance(20 * time.Second)
	}
	if again := s.step(c, "").RequeueAfter; again != 5*time.Minute || c.woken != 1 {
		t.Errorf("a minute after the start: again after %s, woken %d times, want 5m and once", again, c.woken)
	}
}

// G15, A-21: a policy that cannot be read for a moment stays in force; one that is gone is not judged by any more.
func TestA21_WhatIsJudgedByWhileThePolicyIsNotRead(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	for _, c := range []struct {
		name    string
		answers []operator.Answer
		want    string
	}{
		{"a failure that passes", []operator.Answer{{Err: errors.New("down")}}, "NotConforming HandMade Tenant"},
		{"refused for a moment", []operator.Answer{{Err: forbidden}}, "NotConforming HandMade Tenant"},
		{"deleted", []operator.Answer{{}}, "Conforms  "},
		{"deleted, and then a failure", []operator.Answer{{}, {Err: errors.New("down")}}, "Conforms  "},
	} {
		s := newScene(t, []client.Object{class("default"), wrapper("web", in(instanceType, "a", "b"))},
			policyOf(1, in(instanceType, "a")))
		s.read()
		look := s.looking(s.guest)
		s.step(look, "")
		s.step(s.classes, "default")
		s.step(s.pools, "web")
		claim := handMade("outside")
		claim.CreationTimestamp = metav1.Time{Time: s.clock.Now()}
		claim.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{in(instanceType, "b")}
		claim.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: "web", UID: s.nodePool("web").UID,
		}}
		s.must(s.guest.Create(t.Context(), claim))
		s.clock.Advance(2 * time.Minute)
		for _, answer := range c.answers {
			s.learn(answer)
			s.step(look, "")
		}
		if found := look.claims(); found != c.want {
			t.Errorf("%s: the claim is %q, want %q", c.name, found, c.want)
		}
	}
}
