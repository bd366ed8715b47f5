package operator_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// ofClass is a pool that refers to an EC2NodeClass.
func ofClass(pool, class string,
	requirements ...karpenterv1.NodeSelectorRequirementWithMinValues) *hypershiftv1beta1.OpenshiftNodePool {
	w := wrapper(pool, requirements...)
	w.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: karpenterawsv1.Group,
		Kind: karpenterawsv1.EC2NodeClassKind, Name: class}
	return w
}

// guarding returns a scene whose pools may use managed classes only.
func guarding(t *testing.T, guest ...client.Object) *scene {
	t.Helper()
	s := newScene(t, guest, policyOf(1, in(instanceType, "a")))
	s.kinds[0] = s.kinds[0].OnlyManaged(&s.kinds[1])
	s.read()
	s.behind(s.guest)
	return s
}

var closing = karpenterv1.NodeSelectorRequirementWithMinValues{Key: instanceType, Operator: "DoesNotExist"}

func (s *scene) managed(pool string, status metav1.ConditionStatus, reason string) {
	s.t.Helper()
	s.says(pool, hypershiftv1beta1.ConditionTypeNodeClassManaged, status, reason)
	if status == metav1.ConditionFalse {
		s.says(pool, hypershiftv1beta1.ConditionTypePolicyApplied, status, reason)
		s.says(pool, hypershiftv1beta1.ConditionTypeReady, status, reason)
	}
}

// a pool whose class has no wrapper is not created; an existing one is closed. Both follow the class.
func TestA06_APoolFollowsItsClass(t *testing.T) {
	t.Parallel()
	s := guarding(t, ofClass("new", "big"), ofClass("there", "big"), class("big"))
	s.step(s.classes, "big")
	s.step(s.pools, "there")
	s.managed("there", metav1.ConditionTrue, hypershiftv1beta1.ReasonManaged)
	s.merged("there", in(instanceType, "a"))

	big := s.classWrapper("big")
	s.must(s.guest.Delete(t.Context(), big)) // the finalizer holds it
	for _, step := range []string{"while it goes", "when it is gone"} {
		for _, pool := range []string{"new", "there"} {
			s.step(s.pools, pool)
			s.managed(pool, metav1.ConditionFalse, hypershiftv1beta1.ReasonNodeClassUnmanaged)
		}
		if s.nodePool("new") != nil {
			t.Errorf("%s: a pool of a class that nobody manages was made", step)
		}
		s.merged("there", in(instanceType, "a"), closing)
		s.step(s.classes, "big")
		s.step(s.classes, "big")
	}
	if said := s.policySays(metav1.ConditionFalse, hypershiftv1beta1.ReasonNodeClassUnmanaged); !strings.Contains(said,
		"OpenshiftNodePool new (NodeClassUnmanaged), OpenshiftNodePool there") {
		t.Errorf("the policy says %q", said)
	}

	s.must(s.guest.Create(t.Context(), class("big")))
	if again := s.step(s.pools, "new").RequeueAfter; again != 10*time.Second || s.nodePool("new") != nil {
		t.Errorf("the class is being made: again after %s, pool %v", again, s.nodePool("new"))
	}
	s.managed("new", metav1.ConditionUnknown, operator.ReasonWaiting)
	s.step(s.pools, "there")
	s.merged("there", in(instanceType, "a"), closing) // until the class is there
	s.step(s.classes, "big")
	for _, pool := range []string{"new", "there"} {
		s.step(s.pools, pool)
		s.managed(pool, metav1.ConditionTrue, hypershiftv1beta1.ReasonManaged)
		s.merged(pool, in(instanceType, "a"))
	}
	s.policySays(metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied)
}

// A-06, G12: a list that is full is closed all the same.
func TestA06_AFullPoolIsClosedToo(t *testing.T) {
	t.Parallel()
	many := make([]karpenterv1.NodeSelectorRequirementWithMinValues, merge.MaxRequirements-1)
	for i := range many {
		many[i] = in("example.com/label-"+string(rune('a'+i/26))+string(rune('a'+i%26)), "a")
	}
	s := guarding(t, ofClass("full", "big", many...), class("big"))
	s.step(s.classes, "big")
	s.step(s.pools, "full")
	s.must(s.guest.Delete(t.Context(), s.classWrapper("big")))
	s.step(s.pools, "full")
	entries := s.nodePool("full").Spec.Template.Spec.Requirements
	if len(entries) != merge.MaxRequirements || entries[len(entries)-1].Operator != "DoesNotExist" ||
		entries[len(entries)-2].Key != many[len(many)-2].Key {
		t.Errorf("%d entries, the last %+v", len(entries), entries[len(entries)-1])
	}
}

// while its class follows a new policy, a pool follows too, and says nothing new for 5 s: mostly the class is
// quicker.
func TestA06_APoolDoesNotWaitForItsClassWithThePolicy(t *testing.T) {
	t.Parallel()
	s := guarding(t, ofClass("web", "big"), class("big"))
	s.step(s.classes, "big")
	s.step(s.pools, "web")
	s.learn(operator.Answer{Policy: policyOf(2, in(instanceType, "b"))})
	clear(s.guestWrites)
	for range 2 {
		if again := s.step(s.pools, "web").RequeueAfter; again != 5*time.Second ||
			s.guestWrites["status OpenshiftNodePool"] != 0 {
			t.Errorf("again after %s, writes %v", again, s.guestWrites)
		}
	}
	s.merged("web", in(instanceType, "b"))
	s.clock.Advance(5 * time.Second)
	s.step(s.pools, "web")
	s.managed("web", metav1.ConditionUnknown, operator.ReasonWaiting)
	s.says("web", hypershiftv1beta1.ConditionTypePolicyApplied, metav1.ConditionUnknown, operator.ReasonWaiting)
	s.step(s.classes, "big")
	s.step(s.pools, "web")
	s.managed("web", metav1.ConditionTrue, hypershiftv1beta1.ReasonManaged)
	s.learn(operator.Answer{Policy: policyOf(3, in(instanceType, "b"))}) // the next wait has its own 5 s
	if again := s.step(s.pools, "web").RequeueAfter; again != 5*time.Second {
		t.Errorf("again after %s", again)
	}
}

// what a user gets wrong in a wrapper leaves the class as it was, and its pools open; for another policy it is
// not applied. One that is altered, or was touched since, is not what it was.
func TestA06_AClassThatStandsIsUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *scene)
		reason string
	}{
		"as it was": {func(*scene) {}, hypershiftv1beta1.ReasonManaged},
		"another policy": {func(s *scene) {
			s.learn(operator.Answer{Policy: policyOf(2, in(instanceType, "a"))})
		}, hypershiftv1beta1.ReasonNodeClassNotApplied},
		"touched since": {func(s *scene) {
			touched := s.madeClass("big")
			touched.Generation = 9
			s.must(s.guest.Update(s.t.Context(), touched))
		}, hypershiftv1beta1.ReasonNodeClassNotApplied},
	} {
		s := guarding(t, ofClass("web", "big"), class("big"))
		s.step(s.classes, "big")
		s.step(s.pools, "web")
		wrong := s.classWrapper("big")
		wrong.Generation = 2
		wrong.Spec.BlockDeviceMappings = []hypershiftv1.BlockDeviceMapping{
			{DeviceName: "/dev/sdb", EBS: &hypershiftv1.BlockDevice{VolumeSizeGiB: new(int64(1 << 20))}},
		}
		s.must(s.guest.Update(t.Context(), wrong))
		c.change(s)
		s.step(s.classes, "big")
		if said := s.classSays("big",
			hypershiftv1beta1.ConditionTypePolicyApplied); said.Status != metav1.ConditionFalse {
			t.Fatalf("%s: the class says %+v", name, said)
		}
		s.step(s.pools, "web")
		if c.reason == hypershiftv1beta1.ReasonManaged {
			s.managed("web", metav1.ConditionTrue, c.reason)
			s.merged("web", in(instanceType, "a"))
			continue
		}
		s.managed("web", metav1.ConditionFalse, c.reason)
		s.merged("web", in(instanceType, "a"), closing)
	}
}

// the cache is not trusted that a class has no wrapper: closing a pool replaces its nodes.
func TestA06_AWrapperThatTheCacheDoesNotShowIsThere(t *testing.T) {
	t.Parallel()
	s := guarding(t, ofClass("web", "big"), class("big"))
	s.step(s.classes, "big")
	s.step(s.pools, "web")
	cache := newStale(s.guest)
	cache.hide(s.classWrapper("big"))
	pools := operator.New(operator.Config{
		Kind: s.kinds[0], Guest: operator.GuestClient{Client: cache}, Live: s.guest, Board: s.board, Events: s.tape,
		Metrics: s.metrics, Now: s.clock.Now,
	})
	s.step(pools, "web")
	s.managed("web", metav1.ConditionTrue, hypershiftv1beta1.ReasonManaged)
	s.merged("web", in(instanceType, "a"))
}

// A-06, G25: classes of KWOK have no wrapper and are managed; where there are no wrappers at all, no EC2NodeClass is.
func TestA06_ClassesOfOtherPlatforms(t *testing.T) {
	t.Parallel()
	simulated := schema.GroupKind{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass"}
	kwok := ofClass("kwok", "default")
	kwok.Spec.Template.Spec.NodeClassRef.Group, kwok.Spec.Template.Spec.NodeClassRef.Kind = simulated.Group,
		simulated.Kind
	s := newScene(t, []client.Object{kwok, wrapper("aws")}, policyOf(1))
	s.kinds[0] = operator.NodePools(merge.NodePoolSettings{NodeClasses: []schema.GroupKind{simulated}}).OnlyManaged(
		nil)
	s.read()
	s.behind(s.guest)
	s.step(s.pools, "kwok")
	s.managed("kwok", metav1.ConditionTrue, hypershiftv1beta1.ReasonManaged)
	s.step(s.pools, "aws")
	s.managed("aws", metav1.ConditionFalse, hypershiftv1beta1.ReasonNodeClassUnmanaged)
	for pool, want := range map[*hypershiftv1beta1.OpenshiftNodePool]string{kwok: "", wrapper("x"): "default",
		ofClass("x", "big"): "big"} {
		if got := operator.ClassOf(pool); got != want {
			t.Errorf("the class of %s is %q, want %q", pool.Name, got, want)
		}
	}
}

// what of a class cannot be read is told, and tried again.
func TestA06_NoFailureToLookAtAClassIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		s := guarding(t, ofClass("web", "big"), class("big"))
		s.step(s.classes, "big")
		s.step(s.pools, "web")
		w := s.classWrapper("big")
		w.Finalizers = nil
		s.must(s.guest.Update(t.Context(), w))
		s.must(s.guest.Delete(t.Context(), w))
		s.behind(f.Wrap(s.guest))
		return s.steps(s.pools, "web", nil)
	})
}
