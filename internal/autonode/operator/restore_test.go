package operator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

func (s *scene) updates() int { return s.guestWrites["update NodePool"] }

// what the guest's API server fills in is not written again and again: once after a start, to see that it
// stays.
func TestWhatTheGuestFillsInIsNotWrittenAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web", in("team", "a"))}, policyOf(1, in(instanceType, "a")))
	s.read()
	guest := s.admitted(func(pool *karpenterv1.NodePool) {
		if pool.Spec.Weight == nil {
			pool.Spec.Weight = new(int32(5))
		}
	})
	for start, want := range []int{0, 1} {
		clear(s.guestWrites)
		s.behind(guest)
		for range 3 {
			if again := s.step(s.pools, "web").RequeueAfter; again != 20*time.Second {
				t.Errorf("again after %s, want 20s", again)
			}
		}
		if s.updates() != want {
			t.Errorf("start %d: %d updates, want %d", start, s.updates(), want)
		}
		s.says("web", hypershiftv1beta1.ConditionTypePolicyApplied, metav1.ConditionTrue,
			hypershiftv1beta1.ReasonApplied)
		s.says("web", hypershiftv1beta1.ConditionTypeSpecAltered, metav1.ConditionTrue,
			hypershiftv1beta1.ReasonAlteredOnWrite)
	}
	s.clock.Advance(20 * time.Second) // what fills in may have gone
	if s.step(s.pools, "web"); s.updates() != 2 {
		t.Errorf("%d updates after a while, want one more", s.updates()-1)
	}
	if weight := s.nodePool("web").Spec.Weight; weight == nil || *weight != 5 {
		t.Errorf("the weight is %v, want what was filled in", weight)
	}
	// Another wish is written, though nothing of it is the policy's.
	w := s.wrapper("web")
	w.Spec.Weight = new(int32(7))
	s.must(s.guest.Update(t.Context(), w))
	s.step(s.pools, "web")
	if weight := s.nodePool("web").Spec.Weight; weight == nil || *weight != 7 {
		t.Errorf("the weight is %v, want the wrapper's", weight)
	}
	if said := messageOf(s.wrapper("web"), hypershiftv1beta1.ConditionTypeSpecAltered); said != "" {
		t.Errorf("SpecAltered says %q of what is stored as written", said)
	}
}

// A NodePool that comes again under the name is another one, of which nothing is known.
func TestAnotherNodePoolOfTheNameIsWritten(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
	s.read()
	guest := s.admitted(asWritten)
	s.behind(guest)
	s.step(s.pools, "web")
	again := s.nodePool("web")
	s.deletePool("web")
	again.ResourceVersion, again.Spec.Weight = "", new(int32(9))
	s.must(guest.Create(t.Context(), again))
	if s.step(s.pools, "web"); s.nodePool("web").Spec.Weight != nil {
		t.Error("the other one's weight stays")
	}
}

// G13, X-11: if admission in the guest changes what the policy decides, the wrapper says so, and the write is retried
// every 20 s.
func TestWhatAdmissionChangesOfThePolicyIsTold(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
	s.read()
	meddling := true
	s.behind(s.admitted(func(pool *karpenterv1.NodePool) {
		if meddling {
			pool.Spec.Template.Spec.Requirements[0].Values = []string{"b"}
		}
	}))
	for try := range 3 {
		if again := s.step(s.pools, "web").RequeueAfter; again != 20*time.Second || s.updates() != try {
			t.Errorf("try %d: again after %s, %d updates", try, again, s.updates())
		}
		for _, kind := range []string{hypershiftv1beta1.ConditionTypePolicyApplied,
			hypershiftv1beta1.ConditionTypeReady} {
			s.says("web", kind, metav1.ConditionFalse, hypershiftv1beta1.ReasonAlteredOnWrite)
			if said := messageOf(s.wrapper("web"), kind); !strings.Contains(said,
				"stores the NodePool with other settings than were written, in spec.template.spec.requirements[0].values[0]: ") {
				t.Errorf("try %d: %s says %q", try, kind, said)
			}
		}
	}
	meddling = false
	if again := s.step(s.pools, "web").RequeueAfter; again != 0 {
		t.Errorf("again after %s", again)
	}
	s.merged("web", in(instanceType, "a"))
	s.says("web", hypershiftv1beta1.ConditionTypePolicyApplied, metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied)
}

// R23, G4: what belongs to the operator is put back, also its signs; what others add stays. A change of what the
// NodePool is to do is told and counted, a label that came off is not.
func TestWhatOthersChangeIsPutBack(t *testing.T) {
	t.Parallel()
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}
	for name, c := range map[string]struct {
		change func(pool *karpenterv1.NodePool)
		writes int
		told   float64
	}{
		"the spec": {func(p *karpenterv1.NodePool) { p.Spec.Weight, p.Generation = new(int32(9)), 2 }, 1, 1},
		"the policy": {func(p *karpenterv1.NodePool) { p.Spec.Template.Spec.Requirements, p.Generation = nil, 2 },
			1, 1},
		"a label":       {func(p *karpenterv1.NodePool) { delete(p.Labels, merge.ManagedByLabel) }, 1, 0},
		"an annotation": {func(p *karpenterv1.NodePool) { p.Annotations = nil }, 1, 0},
		"the owner":     {func(p *karpenterv1.NodePool) { p.OwnerReferences = nil }, 1, 0},
		"an old owner":  {func(p *karpenterv1.NodePool) { p.OwnerReferences[0].UID = "old" }, 1, 0},
		"a label of its own": {func(p *karpenterv1.NodePool) {
			p.Labels["mine"], p.Annotations["mine"] = "x", "y"
			p.OwnerReferences = append([]metav1.OwnerReference{other}, p.OwnerReferences...)
		}, 0, 0},
		"another controller": {func(p *karpenterv1.NodePool) {
			taken := other
			taken.Controller, p.OwnerReferences[0].Controller = new(true), new(false)
			p.OwnerReferences = append(p.OwnerReferences, taken)
		}, 1, 0},
		"an owner that controls nothing": {func(p *karpenterv1.NodePool) {
			held := other
			held.Controller = new(false)
			p.OwnerReferences = append([]metav1.OwnerReference{held}, p.OwnerReferences...)
		}, 0, 0},
	} {
		w := wrapper("web")
		w.Annotations = map[string]string{"note": "a"}
		s := newScene(t, []client.Object{w}, policyOf(1, in(instanceType, "a")))
		s.read()
		registry := s.behind(s.admitted(asWritten))
		s.step(s.pools, "web")
		s.change("web", c.change)
		changed := s.nodePool("web")
		clear(s.guestWrites)
		s.step(s.pools, "web")
		got, repairs := s.nodePool("web"), controllertest.Count(t, registry, "autonode_repairs_total", "NodePool")
		if s.updates() != c.writes || repairs != c.told || float64(len(s.tape.Said())) != c.told {
			t.Errorf("%s: %d updates, %v repairs, said %q; want %d and %v", name, s.updates(), repairs, s.tape.Said(),
				c.writes, c.told)
		}
		if c.told > 0 && !strings.Contains(s.tape.Said()[0],
			"web "+operator.ReasonRestored+": NodePool web had been changed by somebody else") {
			t.Errorf("%s: said %q", name, s.tape.Said())
		}
		s.merged("web", in(instanceType, "a"))
		if got.Spec.Weight != nil || got.Labels[merge.ManagedByLabel] != merge.ManagedByValue ||
			got.Annotations["note"] != "a" {
			t.Errorf("%s: it is %+v", name, got)
		}
		if c.writes == 0 && (got.ResourceVersion != changed.ResourceVersion ||
			len(got.OwnerReferences) != len(changed.OwnerReferences)) {
			t.Errorf("%s: what others added did not stay: %+v", name, got.ObjectMeta)
		}
		if c.writes == 1 && len(got.OwnerReferences) != 1 {
			t.Errorf("%s: the owners are %v, want ours alone", name, got.OwnerReferences)
		}
		if last := got.OwnerReferences[len(got.OwnerReferences)-1]; last.Kind != "OpenshiftNodePool" ||
			last.UID != "uid-web" || !*last.Controller {
			t.Errorf("%s: the owners are %v", name, got.OwnerReferences)
		}
	}
}

// An API server that counts no generations does not hide what others change.
func TestWhatOthersChangeIsPutBackWithoutGenerations(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
	s.read()
	s.step(s.pools, "web")
	s.change("web", func(p *karpenterv1.NodePool) { p.Spec.Weight = new(int32(9)) })
	if s.step(s.pools, "web"); s.nodePool("web").Spec.Weight != nil {
		t.Error("the weight stays")
	}
}

// A node class that asks for more of its owners keeps them all: those of other programs that control nothing.
func TestTheOwnersOfOthersStayWhenOursIsPutBack(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1))
	s.read()
	s.step(s.pools, "web")
	s.change("web", func(p *karpenterv1.NodePool) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"},
			{APIVersion: "v1", Kind: "ConfigMap", Name: "y", UID: "y", Controller: new(false)}}
	})
	s.step(s.pools, "web")
	if owners := s.nodePool("web").OwnerReferences; len(owners) != 3 || owners[0].Name != "x" ||
		owners[1].Name != "y" || owners[2].UID != "uid-web" {
		t.Errorf("the owners are %v", owners)
	}
}

// R23: that somebody deleted the NodePool is told when the wrapper had been applied as it is now, with the policy as
// it is now: else the operator has a change of its own to write.
func TestWhenADeletionCountsAsSomebodyElses(t *testing.T) {
	t.Parallel()
	first, second := policyOf(1, in(instanceType, "a")), policyOf(2, in(instanceType, "a", "b"))
	reborn := policyOf(1, in(instanceType, "a"))
	reborn.UID = "uid-2"
	for name, c := range map[string]struct {
		before, after *hypershiftv1beta1.AutoNodePolicy
		edited        bool  // the wrapper
		refused       error // of the NodePool
		told          bool
	}{
		"as it was":           {before: first, after: first, told: true},
		"no policy":           {told: true},
		"a policy came":       {after: first},
		"the policy went":     {before: first},
		"the policy changed":  {before: first, after: second},
		"another policy":      {before: first, after: reborn},
		"the wrapper changed": {before: first, after: first, edited: true},
		"it cannot be written": {before: first, after: first,
			refused: apierrors.NewForbidden(schema.GroupResource{Resource: "nodepools"}, "web", errors.New("no"))},
	} {
		s := newScene(t, []client.Object{wrapper("web")})
		s.learn(operator.Answer{Policy: c.before})
		registry := s.behind(interceptor.NewClient(s.admitted(asWritten), interceptor.Funcs{
			Create: func(ctx context.Context, inner client.WithWatch, o client.Object,
				options ...client.CreateOption) error {
				if c.refused != nil && s.wrapper("web").Status.Conditions != nil {
					return c.refused
				}
				return inner.Create(ctx, o, options...)
			},
		}))
		s.step(s.pools, "web")
		s.learn(operator.Answer{Policy: c.after})
		s.deletePool("web")
		if c.edited {
			w := s.wrapper("web")
			w.Generation = 2
			s.must(s.guest.Update(t.Context(), w))
		}
		s.step(s.pools, "web")
		if n := controllertest.Count(t, registry, "autonode_repairs_total", "NodePool"); (n == 1) != c.told ||
			(len(s.tape.Said()) == 1) != c.told {
			t.Errorf("%s: %v repairs, said %q; want it told: %t", name, n, s.tape.Said(), c.told)
		}
		if (s.nodePool("web") == nil) != (c.refused != nil) {
			t.Errorf("%s: NodePool %v", name, s.nodePool("web"))
		}
	}
}
