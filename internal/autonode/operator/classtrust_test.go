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

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

var classesResource = schema.GroupResource{Group: karpenterawsv1.Group, Resource: "ec2nodeclasses"}

// failedWrites are answers that a policy or webhook of the guest's admin can give, and what a slow server says.
func failedWrites() map[string]error {
	return map[string]error{
		"too large":    apierrors.NewRequestEntityTooLargeError("no"),
		"unauthorized": apierrors.NewUnauthorized("no"),
		"webhook":      apierrors.NewInternalError(errors.New("failed calling webhook")),
		"busy":         apierrors.NewTooManyRequests("no", 1),
		"conflict":     apierrors.NewConflict(classesResource, "big", errors.New("no")),
		"no status":    errors.New("unexpected EOF"),
	}
}

// otherDisk lets the guest's admin change the class past the admission policies.
func (s *scene) otherDisk(name string) {
	s.t.Helper()
	changed := s.madeClass(name)
	changed.Generation++
	changed.Spec.BlockDeviceMappings[0].EBS.Encrypted = new(false)
	s.must(s.guest.Update(s.t.Context(), changed))
}

// tries steps the class until writes have failed for longer than a moment. It returns how often the step failed.
func (s *scene) tries(name string) (failed int) {
	s.t.Helper()
	for range 3 {
		if _, err := s.classes.Reconcile(s.t.Context(), request(name)); err != nil {
			failed++
		}
		s.clock.Advance(4 * time.Second)
	}
	return failed
}

// a changed class that cannot be restored has its pools closed, whatever the status of the refusal. A first
// failure closes nothing: it may pass. Once the class is restored the pools are open again.
func TestA06_AClassThatCannotBeRestoredClosesItsPools(t *testing.T) {
	t.Parallel()
	for name, answer := range failedWrites() {
		s := guarding(t, ofClass("web", "big"), class("big"))
		s.step(s.classes, "big")
		s.step(s.pools, "web")
		refused := true
		s.behind(s.writing(func(*karpenterawsv1.EC2NodeClass) error {
			if refused {
				return answer
			}
			return nil
		}))
		s.otherDisk("big")
		if _, err := s.classes.Reconcile(t.Context(), request("big")); err == nil {
			t.Errorf("%s: no error after the first failure", name)
		}
		s.step(s.pools, "web")
		s.merged("web", in(instanceType, "a"))
		if failed := s.tries("big"); failed != 2 {
			t.Errorf("%s: %d failures were taken for passing ones", name, failed)
		}
		said := s.classSays("big", hypershiftv1beta1.ConditionTypePolicyApplied)
		if said.Status != metav1.ConditionFalse || said.Reason != operator.ReasonRefused ||
			!strings.Contains(said.Message, answer.Error()) {
			t.Errorf("%s: the class says %+v", name, said)
		}
		s.step(s.pools, "web")
		s.managed("web", metav1.ConditionFalse, hypershiftv1beta1.ReasonNodeClassNotApplied)
		s.merged("web", in(instanceType, "a"), closing)
		s.policySays(metav1.ConditionFalse, hypershiftv1beta1.ReasonNodeClassNotApplied)

		refused = false
		s.step(s.classes, "big")
		s.step(s.pools, "web")
		s.merged("web", in(instanceType, "a"))
		refused = true
		s.otherDisk("big")
		if _, err := s.classes.Reconcile(t.Context(), request("big")); err == nil {
			t.Errorf("%s: a failure long after the others is not taken for a passing one", name)
		}
	}
}

// failures that last are no reason to close pools if the API server shows the class as wanted, or shows nothing.
func TestA06_AClassThatIsInLineKeepsItsPoolsOpen(t *testing.T) {
	t.Parallel()
	for name, unread := range map[string]bool{"the cache lags": false, "the API server is away": true} {
		s := guarding(t, ofClass("web", "big"), class("big"))
		s.step(s.classes, "big")
		s.step(s.pools, "web")
		cache := newStale(s.writing(func(*karpenterawsv1.EC2NodeClass) error {
			return apierrors.NewConflict(classesResource, "big", errors.New("changed"))
		}))
		good := s.madeClass("big")
		s.otherDisk("big")
		cache.freeze(s.madeClass("big"))
		if !unread {
			good.ResourceVersion = s.madeClass("big").ResourceVersion
			s.must(s.guest.Update(t.Context(), good))
		}
		live := interceptor.NewClient(s.guest, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch,
			list client.ObjectList, options ...client.ListOption) error {
			if unread {
				return errors.New("no route to host")
			}
			return c.List(ctx, list, options...)
		}})
		s.classes = operator.New(operator.Config{Kind: s.kinds[1], Guest: operator.GuestClient{Client: cache},
			Live: live, Board: s.board, Events: s.tape, Metrics: s.metrics, Now: s.clock.Now})
		if failed := s.tries("big"); failed != 3 {
			t.Errorf("%s: %d of 3 steps failed", name, failed)
		}
		s.step(s.pools, "web")
		s.merged("web", in(instanceType, "a"))
	}
}

// A-06, R23: a class is restored even if the guest does not take the finalizer of its wrapper. If it takes neither,
// the pools are closed.
func TestA06_ARefusedFinalizerDoesNotKeepAChangedClass(t *testing.T) {
	t.Parallel()
	for _, restored := range []bool{true, false} {
		s := guarding(t, ofClass("web", "big"), class("big"))
		s.step(s.classes, "big")
		s.step(s.pools, "web")
		bare := s.classWrapper("big")
		bare.Finalizers = nil
		s.must(s.guest.Update(t.Context(), bare))
		s.otherDisk("big")
		no := apierrors.NewForbidden(schema.GroupResource{}, "big", errors.New("no"))
		s.behind(interceptor.NewClient(s.writing(func(*karpenterawsv1.EC2NodeClass) error {
			if restored {
				return nil
			}
			return no
		}), interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			options ...client.PatchOption) error {
			if _, is := o.(*hypershiftv1.OpenshiftEC2NodeClass); is {
				return no
			}
			return c.Patch(ctx, o, p, options...)
		}}))
		if _, err := s.classes.Reconcile(t.Context(), request("big")); err == nil {
			t.Errorf("restored %t: nobody says that the finalizer is refused", restored)
		}
		if encrypted := *s.madeClass("big").Spec.BlockDeviceMappings[0].EBS.Encrypted; encrypted != restored {
			t.Errorf("encrypted is %t, want %t", encrypted, restored)
		}
		if s.step(s.pools, "web"); restored {
			s.merged("web", in(instanceType, "a"))
		} else {
			s.merged("web", in(instanceType, "a"), closing)
		}
	}
}

// foreignClass is an EC2NodeClass that the guest's admin made by impersonation.
func foreignClass(name string) *karpenterawsv1.EC2NodeClass {
	return &karpenterawsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-foreign", Generation: 1},
		Spec: karpenterawsv1.EC2NodeClassSpec{AMISelectorTerms: []karpenterawsv1.AMISelectorTerm{{ID: "ami-evil"}}}}
}

// unresolved returns a scene with an open pool of class big. Class x is the guest admin's own, and its wrapper waits
// for a version that nobody resolves.
func unresolved(t *testing.T) *scene {
	t.Helper()
	x := class("x")
	x.Spec.Version = "4.99.0"
	s := released(t, true, "", ofClass("web", "big"), class("big"), x, foreignClass("x"))
	s.kinds[0] = s.kinds[0].OnlyManaged(&s.kinds[1])
	s.learn(operator.Answer{Policy: policyOf(1, in(instanceType, "a"))})
	s.behind(s.guest)
	s.step(s.classes, "big")
	s.step(s.classes, "x")
	s.step(s.pools, "web")
	s.merged("web", in(instanceType, "a"))
	return s
}

// refers changes the class of a pool, in its wrapper or in the NodePool itself.
func (s *scene) refers(pool, class string) {
	s.t.Helper()
	w := s.wrapper(pool)
	w.Generation++
	w.Spec.Template.Spec.NodeClassRef.Name = class
	s.must(s.guest.Update(s.t.Context(), w))
}

// an existing pool does not follow a new reference to a class that never was in line, also if the guest's admin
// writes it into the NodePool, or opens that, by impersonation. Its own class opens it again.
func TestA06_APoolDoesNotFollowAReferenceToAClassThatWaits(t *testing.T) {
	t.Parallel()
	forged := func(p *karpenterv1.NodePool) {
		p.Generation++
		p.Spec.Template.Spec.NodeClassRef.Name = "x"
		p.Spec.Template.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{in(instanceType, "a")}
	}
	s := unresolved(t)
	s.refers("web", "x")
	for _, when := range []string{"at once", "opened by hand"} {
		s.step(s.pools, "web")
		s.merged("web", in(instanceType, "a"), closing)
		s.clock.Advance(5 * time.Second)
		s.step(s.pools, "web")
		s.managed("web", metav1.ConditionUnknown, operator.ReasonWaiting)
		said := messageOf(s.wrapper("web"), hypershiftv1beta1.ConditionTypeNodeClassManaged)
		if !strings.HasSuffix(said, "until then the pool launches nothing") {
			t.Errorf("%s: it says %q", when, said)
		}
		s.change("web", forged)
	}
	s.refers("web", "big")
	s.step(s.pools, "web")
	s.merged("web", in(instanceType, "a"))

	s.change("web", forged)
	s.refers("web", "x")
	s.step(s.pools, "web")
	s.merged("web", in(instanceType, "a"), closing)
}

// a wrapper that is younger than the process does not make an existing NodePool's class a trusted one. After a
// restart those that are there already are left open, since nothing is known yet.
func TestA06_WhichPoolsAreLeftOpenAfterAStart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		younger bool
		want    []karpenterv1.NodeSelectorRequirementWithMinValues
	}{
		"there before": {false, []karpenterv1.NodeSelectorRequirementWithMinValues{in(instanceType, "a")}},
		"made since":   {true, []karpenterv1.NodeSelectorRequirementWithMinValues{in(instanceType, "a"), closing}},
	} {
		s := unresolved(t)
		s.protect(s.protector(s.guest))
		adopting := ofClass("own", "x")
		adopting.CreationTimestamp = metav1.NewTime(s.clock.Now().Add(-time.Hour))
		if test.younger {
			adopting.CreationTimestamp = metav1.NewTime(s.clock.Now().Add(time.Minute))
		}
		own := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "own", Generation: 1}}
		own.Spec.Template.Spec.NodeClassRef = adopting.Spec.Template.Spec.NodeClassRef
		s.must(s.guest.Create(t.Context(), own))
		s.must(s.guest.Create(t.Context(), adopting))
		s.step(s.pools, "own")
		t.Log(name)
		s.merged("own", test.want...)
	}
}

// if somebody changes a class that waits for its version since a restart, its pools are closed, also if it
// is deleted and made anew. When it can be made again they are open.
func TestA06_AClassThatChangesWhileItWaitsClosesItsPools(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *scene){
		"changed": func(s *scene) { s.otherDisk("big") },
		"made anew": func(s *scene) {
			s.must(s.guest.Delete(s.t.Context(), s.madeClass("big")))
			s.step(s.classes, "big")
			s.must(s.guest.Create(s.t.Context(), foreignClass("big")))
		},
	} {
		s := unresolved(t)
		s.asks("4.99.0", "")
		s.kinds[1] = released(t, true, "").kinds[1] // as a new process, which remembers nothing
		s.kinds[0] = s.kinds[0].OnlyManaged(&s.kinds[1])
		s.behind(s.guest)
		for range 2 {
			s.step(s.classes, "big")
			s.step(s.pools, "web")
			s.merged("web", in(instanceType, "a"))
		}
		change(s)
		for range 2 {
			s.step(s.classes, "big")
			s.step(s.pools, "web")
			s.managed("web", metav1.ConditionFalse, hypershiftv1beta1.ReasonNodeClassNotApplied)
			s.merged("web", in(instanceType, "a"), closing)
		}
		if said := s.classSays("big", hypershiftv1beta1.ConditionTypePolicyApplied); !strings.Contains(said.Message,
			"version 4.99.0 of spec.version is not resolved yet; somebody else has changed the EC2NodeClass meanwhile") {
			t.Errorf("%s: the class says %q", name, said.Message)
		}
		s.asks("4.99.0", "4.99.0")
		s.step(s.classes, "big")
		s.step(s.pools, "web")
		s.merged("web", in(instanceType, "a"))
	}
}
