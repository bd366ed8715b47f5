package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// only an EC2NodeClass has a wrapper: by its kind and by its group.
func TestA06_OnlyEC2NodeClassesHaveWrappers(t *testing.T) {
	t.Parallel()
	kinds := []schema.GroupKind{{Group: "example.com", Kind: karpenterawsv1.EC2NodeClassKind},
		{Group: karpenterawsv1.Group, Kind: "OtherNodeClass"}}
	for _, kind := range kinds {
		w := ofClass("web", "default")
		w.Spec.Template.Spec.NodeClassRef.Group, w.Spec.Template.Spec.NodeClassRef.Kind = kind.Group, kind.Kind
		s := newScene(t, []client.Object{w}, policyOf(1))
		s.kinds[0] = operator.NodePools(merge.NodePoolSettings{NodeClasses: kinds}).OnlyManaged(&s.kinds[1])
		s.read()
		s.behind(s.guest)
		if s.step(s.pools, "web"); s.nodePool("web") == nil {
			t.Errorf("a pool of a %s is not made: %s", kind,
				messageOf(s.wrapper("web"), hypershiftv1beta1.ConditionTypePolicyApplied))
		}
	}
}

// for an existing pool, the API server is asked whether a class has no wrapper; for a missing pool, the cache,
// since no nodes depend on it.
func TestA06_TheAPIServerIsAskedForPoolsThatExist(t *testing.T) {
	t.Parallel()
	s := guarding(t, ofClass("new", "big"), ofClass("there", "big"), class("big"))
	s.step(s.classes, "big")
	s.step(s.pools, "there")
	cache := newStale(s.guest)
	cache.hide(s.classWrapper("big"))
	asked := 0
	live := interceptor.NewClient(s.guest, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if _, is := o.(*hypershiftv1.OpenshiftEC2NodeClass); is {
				asked++
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	pools := operator.New(operator.Config{
		Kind: s.kinds[0], Guest: operator.GuestClient{Client: cache}, Live: live, Board: s.board, Events: s.tape,
		Metrics: s.metrics, Now: s.clock.Now, Log: logr.Discard(),
	})
	for _, test := range []struct {
		pool  string
		asked int
	}{{"new", 0}, {"there", 1}} {
		if s.step(pools, test.pool); asked != test.asked {
			t.Errorf("%s: asked %d times, want %d", test.pool, asked, test.asked)
		}
	}
}

// a pool that waits says what for: its own operator, or another one that makes the class.
func TestA30_WhatAPoolWaitsFor(t *testing.T) {
	t.Parallel()
	const notMade = "node class big is not made yet"
	const notInLine = "node class big is not in line with the provider's policy yet"
	leaving := plane("one", func(spec map[string]any, _ map[string]string) { delete(spec, "autoNode") })
	for what, test := range map[string]struct {
		scene func() *scene
		want  string
	}{
		"own": {func() *scene { return guarding(t, ofClass("web", "big"), class("big")) }, notInLine},
		"another's": {func() *scene {
			return alongside(t, policyOf(1, in(instanceType, "a")), ofClass("web", "big"), class("big"))
		}, notMade},
		"left alone": {func() *scene {
			s := guarding(t, ofClass("web", "big"), class("big"))
			s.board.SetHosted(read(leaving))
			return s
		}, notMade},
	} {
		s := test.scene()
		s.step(s.pools, "web")
		s.managed("web", metav1.ConditionUnknown, operator.ReasonWaiting)
		if said := messageOf(s.wrapper("web"), hypershiftv1beta1.ConditionTypeNodeClassManaged); said != test.want {
			t.Errorf("%s: it says %q, want %q", what, said, test.want)
		}
	}
}

// a class of another operator that is going is not used any more; a pool that is there waits, and stays open.
func TestA30_AClassOfAnotherThatIsGoing(t *testing.T) {
	t.Parallel()
	theirs := othersClass("big", "90Gi")
	theirs.Finalizers = []string{"karpenter.k8s.aws/termination"}
	s := alongside(t, policyOf(1, in(instanceType, "a")), ofClass("new", "big"), ofClass("there", "big"), class("big"),
		theirs)
	s.step(s.pools, "there")
	s.must(s.guest.Delete(t.Context(), theirs))
	s.step(s.pools, "there")
	s.clock.Advance(5 * time.Second)
	for _, pool := range []string{"new", "there"} {
		s.step(s.pools, pool)
		s.managed(pool, metav1.ConditionUnknown, operator.ReasonWaiting)
	}
	s.merged("there", in(instanceType, "a"))
	if s.nodePool("new") != nil {
		t.Error("a pool was made of a class that is going")
	}
}

// if another operator's class cannot be read, that is reported and retried.
func TestA30_NoFailureToLookAtAClassOfAnotherIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		s := alongside(t, policyOf(1, in(instanceType, "a")), ofClass("web", "big"), class("big"),
			othersClass("big", "90Gi"))
		s.behind(f.Wrap(s.guest))
		return s.steps(s.pools, "web", nil, func() {
			s.change("web", func(pool *karpenterv1.NodePool) { pool.Labels = nil })
		})
	})
}
