package operator_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

func class(name string) *hypershiftv1.OpenshiftEC2NodeClass {
	return &hypershiftv1.OpenshiftEC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec:       hypershiftv1.OpenshiftEC2NodeClassSpec{Monitoring: hypershiftv1.MonitoringBasic},
	}
}

func (s *scene) stored() *hypershiftv1beta1.AutoNodePolicy {
	s.t.Helper()
	policy, _, err := s.managementClient().Policy(s.t.Context())
	s.must(err)
	return policy
}

func (s *scene) policySays(status metav1.ConditionStatus, reason string) string {
	s.t.Helper()
	s.step(s.policy, "")
	ready, _ := condition.Get(s.stored().Status.Conditions, hypershiftv1beta1.ConditionTypeReady)
	if ready.Status != status || ready.Reason != reason {
		s.t.Errorf("the policy says Ready=%s %s (%s), want %s %s", ready.Status, ready.Reason, ready.Message, status,
			reason)
	}
	s.read() // what was written is read back
	return ready.Message
}

// R42, R43, G16: Ready follows the wrappers, and is written once.
func TestReadySumsUpTheWrappers(t *testing.T) {
	t.Parallel()
	many := make([]karpenterv1.NodeSelectorRequirementWithMinValues, 100)
	for i := range many {
		many[i] = in("example.com/label-"+string(rune('a'+i/26))+string(rune('a'+i%26)), "a")
	}
	s := newScene(t, nil, policyOf(4, in(instanceType, "a")))
	s.read()
	s.policySays(metav1.ConditionTrue, hypershiftv1beta1.ReasonNoTargets)
	s.must(s.guest.Create(t.Context(), wrapper("web")))
	s.must(s.guest.Create(t.Context(), class("big")))
	s.policySays(metav1.ConditionUnknown, hypershiftv1beta1.ReasonProgressing)
	s.step(s.pools, "web")
	s.policySays(metav1.ConditionUnknown, hypershiftv1beta1.ReasonProgressing)
	s.step(s.classes, "big")
	s.policySays(metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied)
	version := s.stored().ResourceVersion
	if s.policySays(metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied); s.stored().ResourceVersion != version {
		t.Error("the same was written again")
	}
	s.must(s.guest.Create(t.Context(), wrapper("full", many...)))
	s.step(s.pools, "full")
	message := s.policySays(metav1.ConditionFalse, hypershiftv1beta1.ReasonTooManyRequirements)
	if !strings.Contains(message, "full") {
		t.Errorf("the message does not name the pool: %s", message)
	}
}

// G29: a status that is made from an old policy is not written.
func TestAStatusOfAnOldPolicyIsAConflict(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil, policyOf(1))
	s.read()
	changed := s.stored()
	changed.Labels = map[string]string{"changed": "true"}
	s.must(s.management.Update(t.Context(), changed))
	if _, err := s.policy.Reconcile(t.Context(), request("")); err == nil || len(s.stored().Status.Conditions) > 0 {
		t.Errorf("error %v, conditions %v: want a conflict", err, s.stored().Status.Conditions)
	}
}

// R5: policies of another name are none.
func TestOnlyThePolicyNamedDefaultCounts(t *testing.T) {
	t.Parallel()
	other := policyOf(1, in(instanceType, "a"))
	other.Name = "other"
	elsewhere := policyOf(1, in(instanceType, "a"))
	elsewhere.Namespace = "hcp-b"
	s := newScene(t, nil, other, elsewhere)
	s.read()
	if reading := s.board.Reading(); reading.State != operator.StateRead || reading.Policy != nil {
		t.Errorf("it read %v", reading.Policy)
	}
}

// R28, R31, section 4 1.3: the root volume, what nodes start with, and waiting for it.
func TestANodeClassWaitsForWhatNodesStartWith(t *testing.T) {
	t.Parallel()
	policy := policyOf(1)
	policy.Spec.EC2NodeClassDefaults.RootVolume = &hypershiftv1beta1.RootVolume{IOPS: new(int64(4000))}
	s := newScene(t, []client.Object{class("big")}, policy)
	bootstrap := s.bootstrap
	s.bootstrap = nil
	s.read()
	if result := s.step(s.classes, "big"); result.RequeueAfter == 0 {
		t.Error("it does not ask to be called again")
	}
	var made karpenterawsv1.EC2NodeClass
	if err := s.guest.Get(t.Context(), types.NamespacedName{Name: "big"}, &made); err == nil {
		t.Fatal("it was written without user data")
	}
	s.unread = errForbidden
	result := s.step(s.classes, "big")
	var waiting hypershiftv1.OpenshiftEC2NodeClass
	s.must(s.guest.Get(t.Context(), types.NamespacedName{Name: "big"}, &waiting))
	said, _ := condition.Get(waiting.Status.Conditions, hypershiftv1beta1.ConditionTypePolicyApplied)
	if said.Reason != operator.ReasonWaiting || strings.Contains(said.Message, "forbidden") ||
		result.RequeueAfter == 0 {
		t.Errorf(
			"it says %v and looks again after %s, want it to wait without telling what the management cluster said",
			said, result.RequeueAfter)
	}
	s.bootstrap, s.unread = bootstrap, nil
	s.step(s.classes, "big")
	s.must(s.guest.Get(t.Context(), types.NamespacedName{Name: "big"}, &made))
	if root := made.Spec.BlockDeviceMappings; len(root) != 1 || root[0].EBS.VolumeSize.String() != "75Gi" ||
		*root[0].EBS.IOPS != 4000 || *made.Spec.UserData != "boot" {
		t.Errorf("the spec is %+v", made.Spec)
	}
}

// Section 4 1.3: the Secret of a node class is found by label and annotation, and the token's is not it.
func TestBootstrapComesFromTheSecretOfTheClass(t *testing.T) {
	t.Parallel()
	secret := func(name, pool string, labels map[string]string) *corev1.Secret {
		labels["hypershift.openshift.io/managed-by-karpenter"] = "true"
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels,
			Annotations: map[string]string{"hypershift.openshift.io/nodePool": pool}},
			Data: map[string][]byte{"value": []byte(name)}}
	}
	s := newScene(t, nil,
		secret("a-token", "clusters/big-karpenter",
			map[string]string{"hypershift.openshift.io/ignition-config": "true"}),
		secret("user-data-big", "clusters/big-karpenter", map[string]string{"hypershift.openshift.io/ami": "ami-1",
			"hypershift.openshift.io/ami-arm64": "ami-2"}),
		secret("user-data-other", "clusters/other-karpenter",
			map[string]string{"hypershift.openshift.io/ami": "ami-3"}))
	look := operator.BootstrapFromSecrets(s.managementClient(), s.clock.Now)
	if found, err := look(t.Context(), "big", ""); err != nil || found == nil || found.UserData != "user-data-big" ||
		strings.Join(found.AMIs, " ") != "ami-1 ami-2" {
		t.Errorf("found %v, error %v", found, err)
	}
	if found, err := look(t.Context(), "none", ""); err != nil || found != nil {
		t.Errorf("found %v, error %v", found, err)
	}
}

func protections(t *testing.T) []merge.Protection {
	t.Helper()
	list, err := merge.Admission(merge.AdmissionConfig{Operator: merge.DefaultOperator})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// R38, G4, G22: the admission policies are installed, given time to come into force, and restored with a report.
func TestTheGuestIsProtectedAndStaysSo(t *testing.T) {
	t.Parallel()
	s := newUnprotectedScene(t, nil)
	woken := 0
	c := operator.NewProtectionController(operator.ProtectionConfig{
		Guest: operator.GuestClient{Client: s.guest}, Wanted: protections(t), Board: s.board,
		Wake:   func(context.Context) { woken++ },
		Events: s.tape, Metrics: s.metrics, Now: s.clock.Now, Log: logr.Discard(),
	})
	result := s.step(c, "")
	if result.RequeueAfter == 0 || s.board.Protected() {
		t.Fatal("it counts as in force at once")
	}
	s.clock.Advance(result.RequeueAfter)
	s.step(c, "")
	if !s.board.Protected() || woken != 1 || len(s.tape.Said()) > 0 {
		t.Fatalf("protected %t, woken %d times, said %q", s.board.Protected(), woken, s.tape.Said())
	}
	name := types.NamespacedName{Name: "karpenter-binding.nodepool.hypershift.io"}
	var binding admissionv1.ValidatingAdmissionPolicyBinding
	s.must(s.guest.Get(t.Context(), name, &binding))
	binding.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Audit}
	s.must(s.guest.Update(t.Context(), &binding))
	s.step(c, "")
	s.must(s.guest.Get(t.Context(), name, &binding))
	if binding.Spec.ValidationActions[0] != admissionv1.Deny || len(s.tape.Said()) != 1 {
		t.Errorf("the binding says %v, said %q", binding.Spec.ValidationActions, s.tape.Said())
	}
}

// G5: a protection that is switched off goes, and what somebody else called the same stays.
func TestAProtectionThatIsSwitchedOffGoes(t *testing.T) {
	t.Parallel()
	s := newUnprotectedScene(t, nil)
	off := merge.AdmissionConfig{Operator: merge.DefaultOperator}
	on := off
	on.NodeClaims = merge.NodeClaimsByContent
	left := func(config merge.AdmissionConfig) int {
		t.Helper()
		wanted, err := merge.Admission(config)
		s.must(err)
		s.step(operator.NewProtectionController(operator.ProtectionConfig{
			Guest: operator.GuestClient{Client: s.guest}, Wanted: wanted, Unwanted: merge.Unwanted(config),
			Board: s.board, Wake: func(context.Context) {},
			Events: s.tape, Metrics: s.metrics, Now: s.clock.Now, Log: logr.Discard(),
		}), "")
		var policies admissionv1.ValidatingAdmissionPolicyList
		var bindings admissionv1.ValidatingAdmissionPolicyBindingList
		s.must(s.guest.List(t.Context(), &policies))
		s.must(s.guest.List(t.Context(), &bindings))
		if len(policies.Items) != len(bindings.Items) {
			t.Errorf("%d policies, %d bindings", len(policies.Items), len(bindings.Items))
		}
		return len(policies.Items)
	}
	if with, without := left(on), left(off); with != 3 || without != 2 {
		t.Fatalf("%d policies with NodeClaims, %d without; want 3 and 2", with, without)
	}
	foreign := merge.Unwanted(off)[0]
	foreign.Policy.Labels, foreign.Binding.Labels = nil, nil
	s.must(s.guest.Create(t.Context(), &foreign.Policy))
	s.must(s.guest.Create(t.Context(), &foreign.Binding))
	if got := left(off); got != 3 {
		t.Errorf("%d policies are left, want 3 with the one of somebody else", got)
	}
}

// G19: a teardown deletes wrappers, waits for what was made from them, and takes the admission policies away last.
func TestATeardownDeletesWrappersFirst(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web"), class("big")}, policyOf(1))
	s.read()
	s.step(s.pools, "web")
	s.step(s.classes, "big")
	for _, protection := range protections(t) {
		s.must(s.guest.Create(t.Context(), &protection.Policy))
		s.must(s.guest.Create(t.Context(), &protection.Binding))
	}
	done := errors.New("not done")
	teardown := operator.NewTeardown(operator.TeardownConfig{
		Guest: operator.GuestClient{Client: s.guest}, Kinds: s.kinds, Protections: protections(t), Board: s.board,
		Done: func() { done = nil }, Log: logr.Discard(),
	})
	s.step(teardown, "")
	var held hypershiftv1.OpenshiftEC2NodeClass
	s.must(s.guest.Get(t.Context(), types.NamespacedName{Name: "big"}, &held))
	if s.wrapper("web").DeletionTimestamp == nil || held.DeletionTimestamp != nil || s.board.Released() {
		t.Error("want the pool to go first, and the rest to wait")
	}
	for range 10 {
		s.step(teardown, "")
		s.step(s.pools, "web")
		s.step(s.classes, "big")
	}
	var policies admissionv1.ValidatingAdmissionPolicyList
	s.must(s.guest.List(t.Context(), &policies))
	if done != nil || s.wrapper("web") != nil || s.nodePool("web") != nil || len(policies.Items) > 0 ||
		!s.board.Released() {
		t.Errorf("%v; wrapper %v, %d admission policies left", done, s.wrapper("web"), len(policies.Items))
	}
}
