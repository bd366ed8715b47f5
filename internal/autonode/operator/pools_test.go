package operator_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

const instanceType = corev1.LabelInstanceTypeStable

func (s *scene) says(name, kind string, status metav1.ConditionStatus, reason string) {
	s.t.Helper()
	said, _ := condition.Get(s.wrapper(name).Status.Conditions, kind)
	if said.Status != status || said.Reason != reason {
		s.t.Errorf("%s says %s=%s %s (%s), want %s %s", name, kind, said.Status, said.Reason, said.Message, status,
			reason)
	}
}

func (s *scene) merged(name string, want ...karpenterv1.NodeSelectorRequirementWithMinValues) {
	s.t.Helper()
	pool := s.nodePool(name)
	if pool == nil {
		s.t.Fatalf("there is no NodePool %s", name)
	}
	if got := pool.Spec.Template.Spec.Requirements; !reflect.DeepEqual(got, want) {
		s.t.Errorf("NodePool %s requires %v, want %v", name, got, want)
	}
}

// R9, R10, R24: the wrapper gets its finalizer, the NodePool the policy's entries first, and a second step does
// nothing.
func TestAStepMakesTheNodePoolAndTheNextOneNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web", in("team", "a"))}, policyOf(1, in(instanceType, "m5.large")))
	s.read()
	s.step(s.pools, "web")
	s.merged("web", in(instanceType, "m5.large"), in("team", "a"))
	s.says("web", hypershiftv1beta1.ConditionTypePolicyApplied, metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied)
	s.says("web", hypershiftv1beta1.ConditionTypeReady, metav1.ConditionUnknown, operator.ReasonNotReported)
	if got := s.wrapper("web"); !slices.Contains(got.Finalizers, operator.PoolFinalizer) ||
		got.Status.ObservedPolicy == nil || got.Status.ObservedPolicy.Generation != 1 {
		t.Errorf("finalizers %v, observed policy %v", got.Finalizers, got.Status.ObservedPolicy)
	}
	before := len(s.guestWrites)
	s.step(s.pools, "web")
	if want := map[string]int{"create NodePool": 1, "status OpenshiftNodePool": 1}; !reflect.DeepEqual(s.guestWrites,
		want) || before != len(want) {
		t.Errorf("the writes are %v, want %v", s.guestWrites, want)
	}
}

// B-15, R19: a change of the policy is one write of the NodePool and one of the wrapper's status.
func TestAChangeOfThePolicyIsOneWrite(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web", in("team", "a"))}, policyOf(1, in(instanceType, "a")))
	s.read()
	s.step(s.pools, "web")
	clear(s.guestWrites)
	s.board.Set(operator.Reading{}.Next(operator.Answer{Policy: policyOf(2, in(instanceType, "a", "b"))},
		s.clock.Now(), false))
	s.step(s.pools, "web")
	s.step(s.pools, "web")
	s.merged("web", in(instanceType, "a", "b"), in("team", "a"))
	if want := map[string]int{"update NodePool": 1, "status OpenshiftNodePool": 1}; !reflect.DeepEqual(s.guestWrites,
		want) {
		t.Errorf("the writes are %v, want %v", s.guestWrites, want)
	}
}

// G22: nothing is written before the guest is protected.
func TestNothingIsWrittenBeforeTheGuestIsProtected(t *testing.T) {
	t.Parallel()
	s := newUnprotectedScene(t, []client.Object{wrapper("web")}, policyOf(1))
	s.read()
	s.step(s.pools, "web")
	if s.nodePool("web") != nil || len(s.guestWrites) > 0 {
		t.Errorf("the writes are %v, want none", s.guestWrites)
	}
}

// G14, G15: while the policy is unknown or invalid, what was applied last stays, and new wrappers wait.
func TestWhatWasAppliedLastStays(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer operator.Answer
		status metav1.ConditionStatus
		reason string
	}{
		"cannot be read": {operator.Answer{Err: errBusy}, metav1.ConditionUnknown,
			operator.ReasonPolicyUnknown},
		"refused for a moment": {operator.Answer{Err: errForbidden}, metav1.ConditionUnknown,
			operator.ReasonPolicyUnknown},
		"contradicts itself": {operator.Answer{Policy: policyOf(2, in(instanceType, "a"), in(instanceType, "b"))},
			metav1.ConditionFalse, hypershiftv1beta1.ReasonConflictingRequirements},
		"has a restricted name": {operator.Answer{Policy: policyOf(2, in("karpenter.sh/nodepool", "a"))},
			metav1.ConditionFalse, hypershiftv1beta1.ReasonInvalidRequirements},
	} {
		s := newScene(t, []client.Object{wrapper("web", in("team", "a")), wrapper("new")},
			policyOf(1, in(instanceType, "a")))
		s.read()
		s.step(s.pools, "web")
		s.board.Set(s.board.Reading().Next(test.answer, s.clock.Now(), false))
		s.step(s.pools, "web")
		s.step(s.pools, "new")
		s.merged("web", in(instanceType, "a"), in("team", "a"))
		if s.nodePool("new") != nil {
			t.Errorf("%s: the new pool was written", name)
		}
		s.says("new", hypershiftv1beta1.ConditionTypePolicyApplied, test.status, test.reason)
	}
}

// R45: a policy that may not be read for 30 s counts as none, and is merged as soon as it can be read again.
func TestWithoutTheRightToReadThereIsNoPolicyAfterAWhile(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web", in("team", "a"))}, policyOf(1, in(instanceType, "a")))
	s.board.Set(s.board.Reading().Next(operator.Answer{Err: errForbidden}, s.clock.Now(), false))
	s.step(s.pools, "web")
	if s.nodePool("web") != nil {
		t.Fatal("it was written at once")
	}
	s.clock.Advance(operator.ConfirmAfter)
	s.board.Set(s.board.Reading().Next(operator.Answer{Err: errForbidden}, s.clock.Now(), false))
	s.step(s.pools, "web")
	s.merged("web", in("team", "a"))
	s.says("web", hypershiftv1beta1.ConditionTypePolicyApplied, metav1.ConditionFalse,
		hypershiftv1beta1.ReasonPolicyUnreadable)
	s.says("web", hypershiftv1beta1.ConditionTypeReady, metav1.ConditionUnknown, operator.ReasonNotReported)
	if said := s.tape.Said(); len(said) != 1 || !strings.Contains(said[0], hypershiftv1beta1.ReasonPolicyUnreadable) {
		t.Errorf("said %q, want an event", said)
	}
	s.read()
	s.step(s.pools, "web")
	s.merged("web", in(instanceType, "a"), in("team", "a"))
}

// G9: a pool that asks for what is not allowed is written, and says so on itself and on the NodePool.
func TestAPoolWithNothingLeftSaysSo(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web", in(instanceType, "b"))}, policyOf(1, in(instanceType, "a")))
	s.read()
	s.step(s.pools, "web")
	s.merged("web", in(instanceType, "a"), in(instanceType, "b"))
	s.says("web", hypershiftv1beta1.ConditionTypeRequirementsCompatible, metav1.ConditionFalse,
		hypershiftv1beta1.ReasonNoCompatibleInstanceTypes)
	s.says("web", hypershiftv1beta1.ConditionTypeReady, metav1.ConditionFalse,
		hypershiftv1beta1.ReasonNoCompatibleInstanceTypes)
	s.says("web", hypershiftv1beta1.ConditionTypePolicyApplied, metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied)
	// Karpenter's own condition does not hide that, not even while the policy cannot be read.
	pool := s.nodePool("web")
	pool.Status.Conditions = []karpenterv1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready",
		LastTransitionTime: metav1.NewTime(s.clock.Now())}}
	s.must(s.guest.Status().Update(t.Context(), pool))
	said := s.tape.Said()
	for _, answer := range []operator.Answer{{Policy: s.board.Reading().Policy}, {Err: errBusy}} {
		s.board.Set(s.board.Reading().Next(answer, s.clock.Now(), false))
		s.step(s.pools, "web")
		s.says("web", hypershiftv1beta1.ConditionTypeReady, metav1.ConditionFalse,
			hypershiftv1beta1.ReasonNoCompatibleInstanceTypes)
		clear(s.guestWrites)
		s.clock.Advance(time.Minute)
		if s.step(s.pools, "web"); len(s.guestWrites) > 0 {
			t.Errorf("the writes are %v, want none while nothing changes", s.guestWrites)
		}
	}
	if len(said) != 2 || !strings.Contains(said[0], "NoCompatibleInstanceTypes") {
		t.Errorf("said %q, want an event on wrapper and NodePool", said)
	}
}

// R24: deleting a wrapper deletes the NodePool, and the wrapper goes when that is gone.
func TestTheWrapperGoesLast(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1))
	s.read()
	s.step(s.pools, "web")
	pool := s.nodePool("web")
	pool.Finalizers = []string{"example.com/held"}
	s.must(s.guest.Update(t.Context(), pool))
	s.must(s.guest.Delete(t.Context(), s.wrapper("web")))
	s.step(s.pools, "web")
	s.step(s.pools, "web")
	if s.wrapper("web") == nil || s.nodePool("web").DeletionTimestamp == nil || s.guestWrites["delete NodePool"] != 1 {
		t.Fatalf("wrapper %v, writes %v: want both to wait", s.wrapper("web"), s.guestWrites)
	}
	pool = s.nodePool("web")
	pool.Finalizers = nil
	s.must(s.guest.Update(t.Context(), pool))
	s.step(s.pools, "web")
	if s.wrapper("web") != nil || s.nodePool("web") != nil {
		t.Error("want both gone")
	}
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// R25, G18: what lost its wrapper is deleted when it is the operator's own; what others made is left alone, and
// adopted when a wrapper of its name comes.
func TestOrphansAreDeletedAndStrangersAdopted(t *testing.T) {
	t.Parallel()
	orphan := &karpenterv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{
			Name: "orphan", Labels: map[string]string{merge.ManagedByLabel: merge.ManagedByValue},
		},
	}
	owned := &karpenterv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "karpenter.hypershift.openshift.io/v1beta1", Kind: "OpenshiftNodePool", Name: "owned",
				UID: "gone"}}}}
	stranger := &karpenterv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{
			Name: "stranger", Annotations: map[string]string{"karpenter.sh/nodepool-hash": "1"},
		},
	}
	s := newScene(t, []client.Object{orphan, owned, stranger}, policyOf(1, in(instanceType, "a")))
	s.read()
	for _, name := range []string{"orphan", "owned", "stranger"} {
		s.step(s.pools, name)
	}
	if s.nodePool("orphan") != nil || s.nodePool("owned") != nil || s.nodePool("stranger") == nil {
		t.Fatalf("the writes are %v, want the stranger's pool to stay alone", s.guestWrites)
	}
	if said := s.tape.Said(); len(said) != 1 || !strings.HasPrefix(said[0], "stranger Unmanaged") {
		t.Errorf("said %q", said)
	}
	s.must(s.guest.Create(t.Context(), wrapper("stranger")))
	s.step(s.pools, "stranger")
	s.merged("stranger", in(instanceType, "a"))
	adopted := s.nodePool("stranger")
	if adopted.Annotations["karpenter.sh/nodepool-hash"] != "1" || adopted.Labels[merge.ManagedByLabel] == "" ||
		len(adopted.OwnerReferences) != 1 {
		t.Errorf("the adopted pool has %v", adopted.ObjectMeta)
	}
}

// R26: the wrapper shows what the NodePool says, and loses what it no longer says.
func TestTheWrapperShowsTheNodePoolsStatus(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1))
	s.read()
	s.step(s.pools, "web")
	pool := s.nodePool("web")
	said := karpenterv1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready",
		LastTransitionTime: metav1.NewTime(s.clock.Now().Add(-time.Hour))}
	other := said
	other.Type = "NodeClassReady"
	pool.Status = karpenterv1.NodePoolStatus{Conditions: []karpenterv1.Condition{said, other}, Nodes: new(int64(3))}
	s.must(s.guest.Status().Update(t.Context(), pool))
	s.step(s.pools, "web")
	s.says("web", "Ready", metav1.ConditionTrue, "Ready")
	s.says("web", "NodeClassReady", metav1.ConditionTrue, "Ready")
	clear(s.guestWrites)
	s.clock.Advance(time.Minute)
	if s.step(s.pools, "web"); len(s.guestWrites) > 0 {
		t.Errorf("the writes are %v, want none while nothing changes", s.guestWrites)
	}
	if got := s.wrapper("web").Status; got.Nodes == nil || *got.Nodes != 3 || len(got.Conditions) != 4 {
		t.Errorf("the status is %v", got)
	}
	pool = s.nodePool("web")
	pool.Status.Conditions = pool.Status.Conditions[:1]
	s.must(s.guest.Status().Update(t.Context(), pool))
	s.step(s.pools, "web")
	if got := s.wrapper("web").Status.Conditions; len(got) != 3 {
		t.Errorf("the conditions are %v", got)
	}
}
