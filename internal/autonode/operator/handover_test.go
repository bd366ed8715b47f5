package operator_test

import (
	"slices"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// releasing is a guest in which everything is applied, and what hands it over through server.
func releasing(t *testing.T) *scene {
	t.Helper()
	s := newScene(t, []client.Object{wrapper("web", in(instanceType, "a")), class("big")},
		policyOf(1, in(instanceType, "a")))
	s.read()
	s.step(s.pools, "web")
	s.step(s.classes, "big")
	for _, protection := range protections(t) {
		s.must(s.guest.Create(t.Context(), &protection.Policy))
		s.must(s.guest.Create(t.Context(), &protection.Binding))
	}
	s.step(s.policy, "")
	return s
}

func (s *scene) handOver(server client.Client, done *int) *operator.HandOver {
	s.t.Helper()
	return s.handOverOf(server, s.management, done)
}

func (s *scene) handOverOf(server client.Client, management client.WithWatch, done *int) *operator.HandOver {
	s.t.Helper()
	return operator.NewHandOver(operator.HandOverConfig{
		Guest: operator.GuestClient{Client: server}, Live: server, Kinds: s.kinds,
		Management:  operator.ManagementClientOf(management, namespace),
		Protections: append(protections(s.t), operator.ClaimRule()), Done: func() {
			*done++
		}, Metrics: s.metrics, Now: s.clock.Now, Log: logr.Discard(),
	})
}

// what only this operator knows goes; what runs, and what another one knows by the same name, stays.
func TestA33_WhatAReleaseTakesAway(t *testing.T) {
	t.Parallel()
	s, done := releasing(t), 0
	pool, class := s.nodePool("web").GetUID(), s.madeClass("big")
	for range 2 { // twice is as good as once
		s.step(s.handOver(s.guest, &done), "")
	}
	if done != 2 {
		t.Fatalf("done %d times, want once for each", done)
	}
	after := s.nodePool("web")
	if after.UID != pool || len(after.Labels) > 0 || len(after.OwnerReferences) > 0 ||
		len(after.Spec.Template.Spec.Requirements) == 0 {
		t.Errorf("the NodePool is %v with labels %v and owners %v", after.UID, after.Labels, after.OwnerReferences)
	}
	if finalizers := s.wrapper("web").Finalizers; len(finalizers) > 0 {
		t.Errorf("the wrapper has the finalizers %v", finalizers)
	}
	now := s.madeClass("big")
	if now.UID != class.UID || now.Labels[merge.ManagedByLabel] != "" ||
		len(now.OwnerReferences) != len(class.OwnerReferences) {
		t.Errorf("the EC2NodeClass has labels %v and owners %v", now.Labels, now.OwnerReferences)
	}
	if finalizers := s.classWrapper("big").Finalizers; !slices.Equal(finalizers,
		[]string{operator.EC2ClassFinalizer}) {
		t.Errorf("the class's wrapper has the finalizers %v, want the one that HyperShift has too", finalizers)
	}
	var policies admissionv1.ValidatingAdmissionPolicyList
	var bindings admissionv1.ValidatingAdmissionPolicyBindingList
	s.must(s.guest.List(t.Context(), &policies))
	s.must(s.guest.List(t.Context(), &bindings))
	if len(policies.Items) != 1 || len(bindings.Items) != 1 ||
		policies.Items[0].Name != "karpenter.ec2nodeclass.hypershift.io" ||
		len(policies.Items[0].Labels)+len(bindings.Items[0].Labels) > 0 ||
		len(policies.Items[0].Spec.Validations) == 0 {
		t.Errorf("left are %v and %v", policies.Items, bindings.Items)
	}
	conditions := s.stored().Status.Conditions
	for _, kind := range []string{hypershiftv1beta1.ConditionTypeReady, hypershiftv1beta1.ConditionTypeProtected,
		hypershiftv1beta1.ConditionTypeConforming} {
		if said, _ := condition.Get(conditions, kind); said.Status != metav1.ConditionUnknown ||
			said.Reason != hypershiftv1beta1.ReasonReleased {
			t.Errorf("%s is %s %s", kind, said.Status, said.Reason)
		}
	}
	if _, found := condition.Get(conditions, hypershiftv1beta1.ConditionTypeProtectedOnce); found {
		t.Error("what is made from now on will be foreign")
	}
}

// what a user has deleted goes on going, and what is somebody else's is not touched.
func TestA33_AReleaseLeavesWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	s, done := releasing(t), 0
	s.must(s.guest.Delete(t.Context(), s.wrapper("web"))) // the finalizer holds it
	for _, protection := range protections(t) {
		if protection.Policy.Name != "karpenter.nodepool.hypershift.io" {
			continue
		}
		var theirs admissionv1.ValidatingAdmissionPolicy
		s.must(s.guest.Get(t.Context(), types.NamespacedName{Name: protection.Policy.Name}, &theirs))
		theirs.Labels = nil
		s.must(s.guest.Update(t.Context(), &theirs))
	}
	s.step(s.handOver(s.guest, &done), "")
	if owners := s.nodePool("web").OwnerReferences; len(owners) != 1 || s.wrapper("web") != nil {
		t.Errorf("the NodePool of a deleted wrapper has the owners %v, the wrapper is %v", owners, s.wrapper("web"))
	}
	var theirs admissionv1.ValidatingAdmissionPolicy
	s.must(s.guest.Get(t.Context(), types.NamespacedName{Name: "karpenter.nodepool.hypershift.io"}, &theirs))
}

// what could not be released is tried again, and nothing is called done before.
func TestA33_NoFailureOfAReleaseIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		s, done := releasing(t), 0
		steps := s.steps(s.handOverOf(f.Wrap(s.guest), f.Wrap(s.management), &done), "", nil)
		return func() error {
			err := steps()
			if (err == nil) != (done > 0) {
				t.Errorf("done %d times, error %v", done, err)
			}
			return err
		}
	})
}
