package operator_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// all words of --own must be known, and a word for several parts must be alone.
func TestA30_TheWordsOfOwning(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"Full": "", "Alongside": "", "NodePools,Admission/nodepools": "", "DefaultClass": "",
		"": "is empty", "full": `has "full"`, "Admission": `has "Admission"`, "Full,NodePools": "want Full alone",
	} {
		list := strings.FieldsFunc(words, func(r rune) bool { return r == ',' })
		owning, err := operator.NewOwning(list)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", words, err, want)
		}
		if err == nil && !slices.Contains(list, operator.OwnFull) && owning.Has(operator.PartClassRules) {
			t.Errorf("%q owns the admission policy of EC2NodeClasses", words)
		}
	}
}

// alongside returns a scene whose node classes another operator makes.
func alongside(t *testing.T, policy *hypershiftv1beta1.AutoNodePolicy, guest ...client.Object) *scene {
	t.Helper()
	s := newScene(t, guest, policy)
	s.kinds[1].ByOther = true
	s.kinds[0] = s.kinds[0].OnlyManaged(&s.kinds[1])
	s.read()
	s.pools = s.controller(s.kinds[0])
	s.policy = operator.NewPolicyController(operator.PolicyConfig{
		Management: s.managementClient(), Guest: operator.GuestClient{Client: s.guest}, Kinds: s.kinds[:1],
		Board: s.board, ClassesOfOthers: true,
		Metrics: s.metrics, Now: s.clock.Now, Log: logr.Discard(),
	})
	return s
}

func othersClass(name, size string) *karpenterawsv1.EC2NodeClass {
	return &karpenterawsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-of-theirs"},
		Spec: karpenterawsv1.EC2NodeClassSpec{
			InstanceProfile: new("nodes"), BlockDeviceMappings: []karpenterawsv1.BlockDeviceMapping{{
				DeviceName: new("/dev/xvda"), RootVolume: new(true),
				EBS: &karpenterawsv1.BlockDevice{VolumeSize: new(resource.MustParse(size))},
			}}}}
}

// a pool waits for the class that another operator makes, and for its wrapper, and closes without it. Neither is
// written.
func TestA30_PoolsUseTheClassesOfAnotherOperator(t *testing.T) {
	t.Parallel()
	s := alongside(t, policyOf(1, in(instanceType, "a")), ofClass("web", "big"))
	s.step(s.pools, "web")
	s.managed("web", metav1.ConditionFalse, hypershiftv1beta1.ReasonNodeClassUnmanaged)
	s.must(s.guest.Create(t.Context(), class("big")))
	s.step(s.pools, "web")
	s.managed("web", metav1.ConditionUnknown, operator.ReasonWaiting)
	if s.nodePool("web") != nil {
		t.Error("the pool was made before its class")
	}
	s.must(s.guest.Create(t.Context(), othersClass("big", "120Gi")))
	s.step(s.pools, "web")
	s.managed("web", metav1.ConditionTrue, hypershiftv1beta1.ReasonManaged)
	s.merged("web", in(instanceType, "a"))
	s.policySays(metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied)
	if wrapper := s.classWrapper("big"); len(wrapper.Finalizers) > 0 || len(wrapper.Status.Conditions) > 0 {
		t.Errorf("the wrapper was written: finalizers %v, conditions %v", wrapper.Finalizers,
			wrapper.Status.Conditions)
	}
	s.must(s.guest.Delete(t.Context(), class("big")))
	s.step(s.pools, "web")
	s.managed("web", metav1.ConditionFalse, hypershiftv1beta1.ReasonNodeClassUnmanaged)
	s.merged("web", in(instanceType, "a"), closing)
}

// what the policy asks of node classes is not applied while another operator writes them: the policy is not
// Ready, and Conforming says what is there.
func TestA30_ARootVolumeThatIsNotOwned(t *testing.T) {
	t.Parallel()
	policy := policyOf(1, in(instanceType, "a"))
	size := resource.MustParse("90Gi")
	policy.Spec.EC2NodeClassDefaults.RootVolume = &hypershiftv1beta1.RootVolume{VolumeSize: &size}
	s := alongside(t, policy, ofClass("web", "big"), class("big"), othersClass("big", "120Gi"),
		othersClass("stray", "90Gi"))
	s.step(s.pools, "web")
	if said := s.policySays(metav1.ConditionFalse,
		hypershiftv1beta1.ReasonRootVolumeNotOwned); !strings.Contains(said, "spec.ec2NodeClassDefaults.rootVolume: "+
		"take it away") ||
		!strings.Contains(said, "applied to 1 of 1") {
		t.Errorf("the policy says %q", said)
	}
	look := s.looking(s.guest)
	look.ConformanceController = operator.NewConformanceController(operator.ConformanceConfig{
		Guest: operator.GuestClient{Client: s.guest}, Live: s.guest, Classes: true, Profile: "nodes",
		Settings: conformance.DefaultSettings(),
		Others:   s.kinds[1:], Board: s.board, Wake: func() {}, Events: s.tape, Metrics: s.metrics, Now: s.clock.Now,
		Log: logr.Discard(),
	})
	s.step(look, "")
	s.conforming(metav1.ConditionFalse, conformance.ReasonNotConforming, "1 NotOwned (Service)", "EC2NodeClass big")
	s.must(s.guest.Update(t.Context(), func() client.Object {
		mended := s.madeClass("big")
		mended.Spec = othersClass("big", "90Gi").Spec
		return mended
	}()))
	s.step(look, "")
	s.conforming(metav1.ConditionTrue, conformance.ReasonConforms)

	policy = s.stored()
	policy.Spec.EC2NodeClassDefaults.RootVolume = &hypershiftv1beta1.RootVolume{} // asks for nothing
	policy.Generation++
	s.must(s.management.Update(t.Context(), policy))
	s.read()
	s.step(s.pools, "web")
	s.policySays(metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied)
}

// the admission policies of another operator are looked at, and never written. What they lack is told; nothing
// waits.
func TestA30_TheAdmissionPoliciesOfOthersAreLookedAt(t *testing.T) {
	t.Parallel()
	s := newUnprotectedScene(t, nil, policyOf(1, in(instanceType, "a")))
	s.read()
	all, err := merge.Admission(merge.AdmissionConfig{Operator: merge.DefaultOperator,
		NodeClaims: merge.NodeClaimsByContent})
	s.must(err)
	owning, err := operator.NewOwning([]string{operator.OwnAlongside})
	s.must(err)
	own, others := owning.Split(all)
	if len(own) != 2 || len(others) != 1 || others[0].Policy.Name != "karpenter.ec2nodeclass.hypershift.io" {
		t.Fatalf("%d are owned, those of others are %v", len(own), others)
	}
	protector := operator.NewProtectionController(operator.ProtectionConfig{
		Guest: operator.GuestClient{Client: s.guest}, Wanted: own, Others: others, Board: s.board,
		Wake: func(context.Context) {}, Events: s.tape, Metrics: s.metrics, Now: s.clock.Now, Log: logr.Discard(),
	})
	says := func(what string, status metav1.ConditionStatus, parts ...string) {
		t.Helper()
		s.step(protector, "")
		s.step(s.policy, "")
		said, _ := condition.Get(s.stored().Status.Conditions, hypershiftv1beta1.ConditionTypeProtected)
		lacks := slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(said.Message, part) })
		if said.Status != status || lacks || condition.IsTrue(s.stored().Status.Conditions,
			hypershiftv1beta1.ConditionTypeProtectedOnce) != (what != "none") {
			t.Errorf("%s: Protected is %s %s %q", what, said.Status, said.Reason, said.Message)
		}
		s.read()
	}
	s.protect(protector)
	const policyName, bindingName = "ValidatingAdmissionPolicy karpenter.ec2nodeclass.hypershift.io", "Binding " +
		"karpenter-binding.ec2nodeclass.hypershift.io"
	says("none", metav1.ConditionFalse, policyName, bindingName)
	theirs := others[0].Policy.DeepCopy()
	theirs.Spec.Validations = []admissionv1.Validation{{Expression: "false"}}
	s.must(s.guest.Create(t.Context(), theirs))
	s.must(s.guest.Create(t.Context(), others[0].Binding.DeepCopy()))
	says("theirs", metav1.ConditionTrue)
	for what, weaken := range map[string]func(*admissionv1.ValidatingAdmissionPolicySpec){
		"it lets pass what it cannot " +
			"judge": func(s *admissionv1.ValidatingAdmissionPolicySpec) { s.FailurePolicy = new(admissionv1.Ignore) },
		"it says nothing": func(s *admissionv1.ValidatingAdmissionPolicySpec) { s.Validations = nil },
		"it sees no deletions": func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.MatchConstraints.ResourceRules[0].Operations = []admissionv1.OperationType{admissionv1.Create,
				admissionv1.Update}
		},
		"it sees another kind": func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.MatchConstraints.ResourceRules[0].Resources = []string{"nodepools"}
		},
	} {
		weak := theirs.DeepCopy()
		s.must(s.guest.Get(t.Context(), client.ObjectKeyFromObject(theirs), weak))
		weaken(&weak.Spec)
		s.must(s.guest.Update(t.Context(), weak))
		says(what, metav1.ConditionFalse, policyName)
		weak.Spec = theirs.Spec
		s.must(s.guest.Update(t.Context(), weak))
	}
	for what, weaken := range map[string]func(*admissionv1.ValidatingAdmissionPolicyBindingSpec){
		"it warns": func(s *admissionv1.ValidatingAdmissionPolicyBindingSpec) {
			s.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn}
		},
		"it is for some objects": func(s *admissionv1.ValidatingAdmissionPolicyBindingSpec) {
			s.MatchResources = &admissionv1.MatchResources{}
		},
		"it takes parameters": func(s *admissionv1.ValidatingAdmissionPolicyBindingSpec) {
			s.ParamRef = &admissionv1.ParamRef{Name: "none"}
		},
		"it binds another": func(s *admissionv1.ValidatingAdmissionPolicyBindingSpec) { s.PolicyName = "another" },
	} {
		weak := others[0].Binding.DeepCopy()
		s.must(s.guest.Get(t.Context(), client.ObjectKeyFromObject(weak), weak))
		weaken(&weak.Spec)
		s.must(s.guest.Update(t.Context(), weak))
		says(what, metav1.ConditionFalse, bindingName)
		weak.Spec = others[0].Binding.Spec
		s.must(s.guest.Update(t.Context(), weak))
	}
	says("whole again", metav1.ConditionTrue)
	if restored := s.restored(); restored != 0 {
		t.Errorf("%d were restored", restored)
	}
}

// requirements are not applied where another operator writes the pools; a policy without any is ready.
func TestA30_RequirementsThatAreNotOwned(t *testing.T) {
	t.Parallel()
	for reason, policy := range map[string]*hypershiftv1beta1.AutoNodePolicy{
		hypershiftv1beta1.ReasonRequirementsNotOwned: policyOf(1, in(instanceType, "a")),
		hypershiftv1beta1.ReasonNoTargets:            policyOf(1),
	} {
		s := newScene(t, nil, policy)
		s.read()
		s.policy = operator.NewPolicyController(operator.PolicyConfig{
			Management: s.managementClient(), Guest: operator.GuestClient{Client: s.guest}, Kinds: s.kinds[1:],
			Board:         s.board,
			PoolsOfOthers: true, Metrics: s.metrics, Now: s.clock.Now, Log: logr.Discard(),
		})
		status := metav1.ConditionTrue
		if reason == hypershiftv1beta1.ReasonRequirementsNotOwned {
			status = metav1.ConditionFalse
		}
		s.policySays(status, reason)
	}
}
