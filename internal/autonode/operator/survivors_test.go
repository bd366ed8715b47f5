package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// what small changes of broke without a test that noticed (make mutants).

// writing lets the guest change, or refuse, what is written of EC2NodeClasses.
func (s *scene) writing(admit func(*karpenterawsv1.EC2NodeClass) error) client.WithWatch {
	look := func(o client.Object) error {
		if class, is := o.(*karpenterawsv1.EC2NodeClass); is {
			return admit(class)
		}
		return nil
	}
	return interceptor.NewClient(s.guest, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := look(o); err != nil {
				return err
			}
			return c.Create(ctx, o, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			if err := look(o); err != nil {
				return err
			}
			return c.Update(ctx, o, options...)
		},
	})
}

// a class that is altered on its way, or whose change is refused, is not what was wanted, and its pools are
// closed.
func TestA06_AClassThatIsNotAsItWasWantedClosesItsPools(t *testing.T) {
	t.Parallel()
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "ec2nodeclasses"}, "big", errors.New("no"))
	for name, admit := range map[string]func(*karpenterawsv1.EC2NodeClass) error{
		"altered": func(c *karpenterawsv1.EC2NodeClass) error {
			c.Spec.Tags = map[string]string{"evil": "1"}
			return nil
		},
		"refused": func(*karpenterawsv1.EC2NodeClass) error { return refusal },
	} {
		s := guarding(t, ofClass("web", "big"), class("big"))
		s.step(s.classes, "big")
		s.step(s.pools, "web")
		registry := s.behind(s.writing(admit))
		changed := s.classWrapper("big")
		changed.Spec.Monitoring, changed.Generation = hypershiftv1.MonitoringDetailed, 2
		s.must(s.guest.Update(t.Context(), changed))
		s.step(s.classes, "big")
		s.step(s.pools, "web")
		s.managed("web", metav1.ConditionFalse, hypershiftv1beta1.ReasonNodeClassNotApplied)
		s.merged("web", in(instanceType, "a"), closing)
		said := messageOf(s.wrapper("web"), hypershiftv1beta1.ConditionTypeNodeClassManaged)
		want := "spec.template.spec.nodeClassRef: names node class big, whose OpenshiftEC2NodeClass says"
		if !strings.HasPrefix(said, want) {
			t.Errorf("%s: it says %q", name, said)
		}
		if n := controllertest.Count(t, registry, "autonode_altered_writes_total", "EC2NodeClass"); (n == 1) != (name == "altered") {
			t.Errorf("%s: %v altered writes are counted", name, n)
		}
	}
}

// a class that waits for something is no reason to close a pool, nor to look into an empty list.
func TestA06_AClassThatWaitsClosesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{ofClass("web", "big"), class("big")})
	s.kinds[0] = s.kinds[0].OnlyManaged(&s.kinds[1])
	s.behind(s.guest)
	s.learn(operator.Answer{})
	s.step(s.classes, "big")
	s.step(s.pools, "web")
	open := func() {
		t.Helper()
		if entries := s.nodePool("web").Spec.Template.Spec.Requirements; len(entries) != 0 {
			t.Errorf("the pool requires %+v", entries)
		}
	}
	open()
	s.bootstrap = nil
	s.learn(operator.Answer{Policy: policyOf(2)}) // it stands no more, and waits
	s.step(s.classes, "big")
	s.step(s.pools, "web")
	s.clock.Advance(5 * time.Second)
	s.step(s.pools, "web")
	s.managed("web", metav1.ConditionUnknown, operator.ReasonWaiting)
	open()
}

// a pool whose user closes it already is closed once; one that cannot be merged is not asked for its class.
func TestA06_WhatIsClosedAlready(t *testing.T) {
	t.Parallel()
	s := guarding(t, ofClass("web", "big", closing), ofClass("other", "big"), class("big"))
	s.step(s.classes, "big")
	s.step(s.pools, "web")
	s.step(s.pools, "other")
	s.must(s.guest.Delete(t.Context(), s.classWrapper("big")))
	s.step(s.pools, "web")
	s.merged("web", in(instanceType, "a"), closing)
	said := messageOf(s.wrapper("web"), hypershiftv1beta1.ConditionTypePolicyApplied)
	want := "spec.template.spec.nodeClassRef: names node class big, which no OpenshiftEC2NodeClass of this name"
	if !strings.HasPrefix(said, want) {
		t.Errorf("it says %q", said)
	}
	s.learn(operator.Answer{Policy: policyOf(2, in(instanceType, "a"), in(instanceType, "b"))}) // contradicts itself
	s.step(s.pools, "other")
	s.says("other", hypershiftv1beta1.ConditionTypePolicyApplied, metav1.ConditionFalse,
		hypershiftv1beta1.ReasonConflictingRequirements)
	s.merged("other", in(instanceType, "a"))
	wrapped := ofClass("x", "big")
	wrapped.Spec.Template.Spec.NodeClassRef.Group = hypershiftv1beta1.Group
	if got := operator.ClassOf(wrapped); got != "big" {
		t.Errorf("the class of a pool that names the wrapper is %q", got)
	}
}

// whoever listens is told when a wrapper is gone, also one whose finalizer was taken off.
func TestA03_TheEndOfAWrapperIsTold(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("big")}, policyOf(1))
	s.read()
	s.step(s.classes, "big")
	var told []string
	s.board.OnVerdict(func(kind, name string) { told = append(told, kind+" "+name) })
	s.step(s.classes, "big") // no news
	w := s.classWrapper("big")
	w.Finalizers = nil
	s.must(s.guest.Update(t.Context(), w))
	s.must(s.guest.Delete(t.Context(), w))
	s.step(s.classes, "big")
	s.step(s.classes, "big")
	if len(told) != 1 || told[0] != "OpenshiftEC2NodeClass big" {
		t.Errorf("told %q", told)
	}
}

// a repair is told by what the operator knows, whatever the status says; only another process goes by the
// status.
func TestA03_ARepairIsNotHiddenByTheStatus(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"known": false, "after a restart": true} {
		s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
		s.read()
		registry := s.behind(s.guest)
		s.step(s.pools, "web")
		if restart {
			s.board.Forget("OpenshiftNodePool", "web")
		}
		w := s.wrapper("web")
		w.Status.Conditions = nil
		s.must(s.guest.Status().Update(t.Context(), w))
		s.deletePool("web")
		s.step(s.pools, "web")
		if n := controllertest.Count(t, registry, "autonode_repairs_total", "NodePool"); (n == 0) != restart {
			t.Errorf("%s: %v repairs", name, n)
		}
	}
}

// a status that is changed on its way is written at once when there is something new to say.
func TestA03_AChangedStatusDoesNotHoldBackNews(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
	s.read()
	patches := 0
	s.behind(interceptor.NewClient(s.guest, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			options ...client.SubResourcePatchOption) error {
			patches++
			if err := c.SubResource(sub).Patch(ctx, o, p, options...); err != nil {
				return err
			}
			w := o.(*hypershiftv1beta1.OpenshiftNodePool)
			w.Status.ObservedPolicy = nil
			return c.SubResource(sub).Update(ctx, w)
		},
	}))
	s.step(s.pools, "web")
	s.step(s.pools, "web")
	if patches != 1 {
		t.Errorf("%d patches, want one", patches)
	}
	s.learn(operator.Answer{Policy: policyOf(2, in(instanceType, "b"))})
	if s.step(s.pools, "web"); patches != 2 {
		t.Errorf("%d patches after a new policy, want two", patches)
	}
}

// A-03, G16: of many altered statuses ten are named, in order; a wrapper that is going does not count.
func TestA03_TenAlteredStatusesAreNamed(t *testing.T) {
	t.Parallel()
	going := wrapper("going")
	going.Finalizers = []string{"example.com/held"}
	guest := []client.Object{going}
	for i := range 12 {
		guest = append(guest, wrapper(fmt.Sprintf("p%02d", 11-i)))
	}
	s := newScene(t, guest, policyOf(1))
	s.read()
	s.must(s.guest.Delete(t.Context(), going))
	s.behind(interceptor.NewClient(s.guest, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			options ...client.SubResourcePatchOption) error {
			if err := c.SubResource(sub).Patch(ctx, o, p, options...); err != nil {
				return err
			}
			w := o.(*hypershiftv1beta1.OpenshiftNodePool)
			w.Status.Conditions = []karpenterv1.Condition{}
			return c.SubResource(sub).Update(ctx, w)
		},
	}))
	for i := range 12 {
		s.step(s.pools, fmt.Sprintf("p%02d", i))
	}
	said := s.policySays(metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied)
	if !strings.Contains(said, "applied to 12 of 12") || !strings.Contains(said, "the status of 12 of them") ||
		!strings.HasSuffix(said, "OpenshiftNodePool p08, OpenshiftNodePool p09, and 2 more.") {
		t.Errorf("it says %q", said)
	}
}
