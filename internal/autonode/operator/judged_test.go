package operator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// outside makes a claim of pool web that asks for instance type b.
func (s *scene) outside(name string) {
	s.t.Helper()
	claim := handMade(name)
	claim.CreationTimestamp = metav1.NewTime(s.clock.Now())
	claim.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{in(instanceType, "b")}
	claim.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: "web", UID: s.nodePool("web").UID,
	}}
	s.must(s.guest.Create(s.t.Context(), claim))
}

// judging is a guest with a pool and its class, which a controller has looked at once, at the time of that answer.
func judging(t *testing.T, answer operator.Answer) (*scene, *looker) {
	t.Helper()
	s := newScene(t, []client.Object{class("default"), wrapper("web", in(instanceType, "a", "b"))})
	s.learn(answer)
	c := s.looking(s.guest)
	s.step(c, "")
	s.step(s.classes, "default")
	s.step(s.pools, "web")
	return s, c
}

// claims outside of a policy count as being replaced for a day after its generation was first seen, be it a new
// generation, another policy in its place, or the first policy. There are no events about them.
func TestA21_SinceWhenAPolicyIsInForce(t *testing.T) {
	t.Parallel()
	another := policyOf(2, in(instanceType, "a"))
	another.UID = "another"
	former := policyOf(2, in(instanceType, "a"))
	for name, before := range map[string]operator.Answer{
		"a new generation": {Policy: policyOf(1, in(instanceType, "a", "b"))},
		"another policy":   {Policy: former},
		"the first policy": {},
	} {
		s, c := judging(t, before)
		s.clock.Advance(time.Hour)
		s.outside("old")
		s.must(s.guest.Create(t.Context(), handMade("rogue")))
		s.clock.Advance(time.Hour)
		s.learn(operator.Answer{Policy: another})
		s.step(s.pools, "web")
		for _, step := range []struct {
			wait  time.Duration
			state string
			told  int
		}{{0, "Replacing", 1}, {24*time.Hour - time.Second, "Replacing", 2}, {time.Second, "NotConforming", 3}} {
			s.clock.Advance(step.wait)
			s.step(c, "")
			if n := c.objects("NodeClaim", step.state, "PolicyChanged", "Provider"); n != 1 {
				t.Errorf("%s, %s later: %v claims are %s", name, step.wait, n, step.state)
			}
			if n := s.told(operator.ReasonNotConforming); n != step.told {
				t.Errorf("%s, %s later: %d events, want %d", name, step.wait, n, step.told)
			}
		}
	}
}

// A-21, G15: where the policy may not be read, nothing is judged by the last one. Where none was known to be, and then
// nothing can be read, everything is looked at all the same.
func TestA21_WithoutAPolicyNothingIsOutside(t *testing.T) {
	t.Parallel()
	for name, c := range map[string][]operator.Reading{
		"it may not be read":            {{State: operator.StatePermissive}},
		"it may not be read any more":   {{State: operator.StatePermissive}, {State: operator.StateDenied}},
		"there is none":                 {{State: operator.StateRead}},
		"none, and then no answer":      {{State: operator.StateRead}, {State: operator.StateUnavailable}},
		"the gate is off":               {{State: operator.StateDisabled}},
		"none, and then not allowed to": {{State: operator.StateRead}, {State: operator.StateDenied}},
	} {
		s, look := judging(t, operator.Answer{Policy: policyOf(1, in(instanceType, "a"))})
		s.outside("outside")
		s.clock.Advance(2 * time.Minute)
		for _, reading := range c {
			s.board.Set(reading)
			s.step(look, "")
		}
		if found := look.claims(); found != "Conforms  " {
			t.Errorf("%s: the claim is %q", name, found)
		}
		s.must(s.guest.Create(t.Context(), handMade("rogue")))
		if s.step(look, ""); look.claims() != "NotConforming HandMade Tenant" {
			t.Errorf("%s: a claim that came later is %q", name, look.claims())
		}
	}
}

// what cannot be judged now is looked at again within a minute.
func TestA19_WhatCannotBeJudgedIsLookedAtSoon(t *testing.T) {
	t.Parallel()
	s, c := judging(t, operator.Answer{Policy: policyOf(1, in(instanceType, "a"))})
	s.clock.Advance(2 * time.Minute)
	for generation, want := range map[int64]time.Duration{1: 5 * time.Minute, 2: time.Minute} {
		entries := []karpenterv1.NodeSelectorRequirementWithMinValues{in(instanceType, "a"), in(instanceType, "b")}
		s.learn(operator.Answer{Policy: policyOf(generation, entries[:generation]...)})
		if again := s.step(c, "").RequeueAfter; again != want {
			t.Errorf("generation %d: again after %s, want %s", generation, again, want)
		}
	}
}

// while the protection of the guest has a gap, that is found, ours or another operator's. It is told by
// the policy's condition, and about no object; what else is found is told as ever.
func TestA21_AGapInTheProtectionIsFound(t *testing.T) {
	t.Parallel()
	for name, gap := range map[string]func(*scene){
		"ours": func(s *scene) { s.board.SetMissing([]string{"a policy"}) },
		"another operator's": func(s *scene) {
			all, err := merge.Admission(merge.AdmissionConfig{Operator: merge.DefaultOperator})
			s.must(err)
			s.step(operator.NewProtectionController(operator.ProtectionConfig{
				Guest: operator.GuestClient{Client: s.guest}, Others: all[:1], Board: s.board,
				Wake:   func(context.Context) {},
				Events: s.tape, Metrics: s.metrics, Now: s.clock.Now, Log: logr.Discard(),
			}), "")
		},
	} {
		s, c := judging(t, operator.Answer{Policy: policyOf(1, in(instanceType, "a"))})
		s.must(s.guest.Create(t.Context(), handMade("rogue")))
		s.clock.Advance(2 * time.Minute)
		for _, want := range []float64{0, 1} {
			s.step(c, "")
			if n := c.objects("AutoNodePolicy", "NotConforming", "ProtectionMissing", "Service"); n != want {
				t.Errorf("%s: it is found %v times, want %v", name, n, want)
			}
			gap(s)
			s.clock.Advance(time.Hour)
		}
		if n := s.told(operator.ReasonNotConforming); n != 2 {
			t.Errorf("%s: %d events, want 2 about the claim", name, n)
		}
	}
}

// a product without a wrapper is foreign if it is younger than the protection, and inherited if it
// is older. Each gets an event. While it is unknown since when the guest is protected, nobody is blamed.
func TestA21_WhatHasNoWrapperIsForeignOrInherited(t *testing.T) {
	t.Parallel()
	since := controllertest.NewClock().Now().Truncate(time.Second)
	for status, want := range map[metav1.ConditionStatus]map[string]string{
		metav1.ConditionTrue: {"young": "Foreign: delete it, or make an OpenshiftNodePool",
			"old": "Legacy: spec.template."},
		metav1.ConditionFalse: {"young": "Unknown: spec.template.", "old": "Unknown: spec.template."},
	} {
		policy := policyOf(1, in(instanceType, "a"))
		condition.Set(&policy.Status.Conditions, 1, condition.Value{Type: hypershiftv1beta1.ConditionTypeProtectedOnce,
			Status: status}, since)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "poses",
			Labels: map[string]string{karpenterv1.NodePoolLabelKey: "web"}}}
		old, young := madeAt("old", since.Add(10*time.Second))[0], madeAt("young", since.Add(11*time.Second))[0]
		s := newScene(t, []client.Object{old, young, node}, policy)
		s.read()
		c := s.looking(s.guest)
		s.step(c, "")
		s.clock.Advance(2 * time.Minute)
		s.step(c, "")
		said := strings.Join(s.tape.Said(), "\n")
		for name, text := range want {
			if !strings.Contains(said, name+" NotConforming: "+text) {
				t.Errorf("ProtectedOnce %s: pool %s is not told of with %q:\n%s", status, name, text, said)
			}
		}
		if foreign := strings.Contains(said, "Foreign: "); foreign != (status == metav1.ConditionTrue) {
			t.Errorf("ProtectedOnce %s: foreign is told: %t", status, foreign)
		}
		if !strings.Contains(said, "poses NotConforming: ") {
			t.Errorf("nobody tells of the node:\n%s", said)
		}
	}
}

// withoutWrappersOfClasses is the guest, of which the wrappers of node classes cannot be listed when there is an
// error.
func (s *scene) withoutWrappersOfClasses(failure func() error) client.WithWatch {
	type listed = client.ObjectList
	return interceptor.NewClient(s.guest, interceptor.Funcs{
		List: func(ctx context.Context, server client.WithWatch, list listed, options ...client.ListOption) error {
			if _, is := list.(*hypershiftv1.OpenshiftEC2NodeClassList); is && failure() != nil {
				return failure()
			}
			return server.List(ctx, list, options...)
		},
	})
}

// what a HostedControlPlane says of node classes counts where the guest has them; classes that are not left
// alone are the operator's.
func TestA32_WhoseClassesAreJudged(t *testing.T) {
	t.Parallel()
	leaving := read(plane("one", func(spec map[string]any, _ map[string]string) { delete(spec, "autoNode") }))
	for name, c := range map[string]struct {
		reading operator.HostedReading
		classes bool
		changed float64 // classes that are not as the operator wrote them
	}{
		"the operator's":           {read(plane("one")), true, 1},
		"left alone":               {leaving, true, 0},
		"there are none":           {read(plane("one")), false, 0},
		"none to leave to anybody": {leaving, false, 0},
	} {
		s, _ := judging(t, operator.Answer{Policy: policyOf(1, in(instanceType, "a"))})
		s.board.SetHosted(c.reading)
		made := s.madeClass("default")
		made.Spec.Tags = map[string]string{"a": "b"}
		s.must(s.guest.Update(t.Context(), made))
		guest := s.withoutWrappersOfClasses(func() error {
			if c.classes {
				return nil
			}
			return errors.New("no matches for kind")
		})
		look := s.looking(s.guest, func(config *operator.ConformanceConfig) {
			config.Guest, config.Classes = operator.GuestClient{Client: guest}, c.classes
		})
		s.step(look, "")
		s.clock.Advance(2 * time.Minute)
		s.step(look, "")
		if n := look.objects("EC2NodeClass", "NotConforming", "WrittenByOther", "Tenant"); n != c.changed {
			t.Errorf("%s: %v classes are changed, want %v", name, n, c.changed)
		}
	}
}

// whatever else another operator writes, a node class with a wrapper is its business. Wrappers that cannot be
// listed are told.
func TestA30_WhoseBusinessAnothersClassIs(t *testing.T) {
	t.Parallel()
	policy := policyOf(1, in(instanceType, "a"))
	size := resource.MustParse("90Gi")
	policy.Spec.EC2NodeClassDefaults.RootVolume = &hypershiftv1beta1.RootVolume{VolumeSize: &size}
	for _, order := range [][]int{{0, 1}, {1, 0}, {1}} {
		s := newScene(t, []client.Object{class("big"), othersClass("big", "120Gi")}, policy.DeepCopy())
		s.read()
		failing := error(nil)
		guest := s.withoutWrappersOfClasses(func() error { return failing })
		look := s.looking(s.guest, func(config *operator.ConformanceConfig) {
			config.Guest = operator.GuestClient{Client: guest}
			for _, i := range order {
				config.Others = append(config.Others, s.kinds[i])
			}
		})
		s.step(look, "")
		if n := look.objects("EC2NodeClass", "NotConforming", string(conformance.NotOwned), "Service"); n != 1 {
			t.Errorf("kinds %v: %v classes are another operator's", order, n)
		}
		failing = errors.New("not now")
		_, err := look.Reconcile(t.Context(), request(""))
		if err == nil || !strings.Contains(err.Error(), "listing OpenshiftEC2NodeClass") || !errors.Is(err, failing) {
			t.Errorf("kinds %v: error %v", order, err)
		}
	}
}
