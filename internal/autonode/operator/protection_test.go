package operator_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

const poolBinding = "karpenter-binding.nodepool.hypershift.io"

// protector keeps the admission policies through server. Those for NodeClaims are unwanted.
func (s *scene) protector(server client.Client) *operator.ProtectionController {
	s.t.Helper()
	config := merge.AdmissionConfig{Operator: merge.DefaultOperator}
	wanted, err := merge.Admission(config)
	s.must(err)
	return operator.NewProtectionController(operator.ProtectionConfig{
		Guest: operator.GuestClient{Client: server}, Wanted: wanted, Unwanted: merge.Unwanted(config), Board: s.board,
		Wake: func(context.Context) {}, Events: s.tape, Metrics: s.metrics, Now: s.clock.Now, Log: logr.Discard(),
	})
}

// unwanted puts the admission policies into the guest that are switched off, as the operator's own.
func (s *scene) unwanted() {
	s.t.Helper()
	for _, p := range merge.Unwanted(merge.AdmissionConfig{Operator: merge.DefaultOperator}) {
		s.must(s.guest.Create(s.t.Context(), p.Policy.DeepCopy()))
		s.must(s.guest.Create(s.t.Context(), p.Binding.DeepCopy()))
	}
}

func (s *scene) binding() *admissionv1.ValidatingAdmissionPolicyBinding {
	s.t.Helper()
	var found admissionv1.ValidatingAdmissionPolicyBinding
	s.must(s.guest.Get(s.t.Context(), types.NamespacedName{Name: poolBinding}, &found))
	return &found
}

// weaken lets the binding of the NodePools' policy allow everything, with what else changes.
func (s *scene) weaken(changes ...func(*admissionv1.ValidatingAdmissionPolicyBinding)) {
	s.t.Helper()
	found := s.binding()
	found.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Audit}
	for _, change := range changes {
		change(found)
	}
	s.must(s.guest.Update(s.t.Context(), found))
}

// protect takes the step that writes the admission policies, and the one that believes them to be in force.
func (s *scene) protect(c *operator.ProtectionController) {
	s.t.Helper()
	s.clock.Advance(s.step(c, "").RequeueAfter)
	if s.step(c, ""); !s.board.Protected() {
		s.t.Fatal("the guest is not protected")
	}
}

// R38, G5: what of the admission policies cannot be read, written or deleted is told, and tried again.
func TestNoFailureToProtectIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		s := newUnprotectedScene(t, nil)
		s.unwanted()
		return s.steps(s.protector(f.Wrap(s.guest)), "", nil, func() { s.clock.Advance(time.Minute) },
			func() { s.weaken() })
	})
}

// G22: an admission policy counts as in force 2 s after it was written; one that is restored later holds nobody up.
func TestHowLongAProtectionIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newUnprotectedScene(t, nil)
	c := s.protector(s.guest)
	if again := s.step(c, "").RequeueAfter; again != 2*time.Second {
		t.Errorf("again after %s, want 2s", again)
	}
	s.clock.Advance(2 * time.Second)
	if again := s.step(c, "").RequeueAfter; again != 0 || !s.board.Protected() {
		t.Errorf("again after %s, protected %t; want it to be in force", again, s.board.Protected())
	}
	s.weaken()
	binding := "ValidatingAdmissionPolicyBinding " + poolBinding
	if again := s.step(c, "").RequeueAfter; again != 2*time.Second || !s.board.Protected() ||
		!slices.Equal(s.board.Missing(), []string{binding}) {
		t.Errorf("again after %s, protected %t, missing %q: a repair holds nobody up, and is not in force yet", again,
			s.board.Protected(), s.board.Missing())
	}
	s.clock.Advance(2 * time.Second)
	if again := s.step(c, "").RequeueAfter; again != 0 || len(s.board.Missing()) != 0 {
		t.Errorf("again after %s, missing %q", again, s.board.Missing())
	}
}

// G4, U-10: what is restored keeps what others put on it, is that very object, and is told of and counted; so is each
// write.
func TestAProtectionIsRestoredAroundWhatOthersAdded(t *testing.T) {
	t.Parallel()
	s := newUnprotectedScene(t, nil)
	s.unwanted()
	registry := s.behind(s.guest)
	var updated []types.UID
	c := s.protector(interceptor.NewClient(s.guest, interceptor.Funcs{
		Update: func(ctx context.Context, inner client.WithWatch, o client.Object,
			options ...client.UpdateOption) error {
			updated = append(updated, o.GetUID())
			return inner.Update(ctx, o, options...)
		},
	}))
	s.protect(c)
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}
	s.weaken(func(b *admissionv1.ValidatingAdmissionPolicyBinding) {
		b.UID, b.Labels["team"], b.Annotations = "uid-1", "a", map[string]string{"note": "b"}
		b.Finalizers, b.OwnerReferences = []string{"example.com/kept"}, []metav1.OwnerReference{owner}
	})
	s.step(c, "")
	got := s.binding()
	if got.Spec.ValidationActions[0] != admissionv1.Deny || !slices.Equal(updated, []types.UID{"uid-1"}) {
		t.Errorf("it says %v, updated %v", got.Spec.ValidationActions, updated)
	}
	if got.Labels["team"] != "a" || got.Labels[merge.ManagedByLabel] != merge.ManagedByValue ||
		got.Annotations["note"] != "b" ||
		!slices.Equal(got.Finalizers, []string{"example.com/kept"}) || len(got.OwnerReferences) != 1 {
		t.Errorf("what others added is not there: %+v", got.ObjectMeta)
	}
	want := "karpenter-binding.nodepool.hypershift.io Restored: ValidatingAdmissionPolicyBinding " + poolBinding +
		" had been changed or deleted and was restored"
	if said := s.tape.Said(); !slices.Equal(said, []string{want}) {
		t.Errorf("said %q, want %q", said, want)
	}
	for _, m := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"autonode_writes_total", []string{"create", "ValidatingAdmissionPolicy"}, 2},
		{"autonode_writes_total", []string{"create", "ValidatingAdmissionPolicyBinding"}, 2},
		{"autonode_writes_total", []string{"update", "ValidatingAdmissionPolicyBinding"}, 1},
		{"autonode_writes_total", []string{"update"}, 1},
		{"autonode_writes_total", []string{"delete", "ValidatingAdmissionPolicy"}, 1},
		{"autonode_writes_total", []string{"delete", "ValidatingAdmissionPolicyBinding"}, 1},
		{"autonode_repairs_total", []string{"ValidatingAdmissionPolicyBinding"}, 1},
		{"autonode_repairs_total", nil, 1},
	} {
		if n := controllertest.Count(t, registry, m.name, m.labels...); n != m.want {
			t.Errorf("%s %v is %v, want %v", m.name, m.labels, n, m.want)
		}
	}
}

// an admission policy that is being deleted is in force until it goes: it is not written, nor deleted again, nor
// told of. One that is weakened then is restored, or a finalizer would hold it so for good.
func TestAProtectionThatIsGoingIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newUnprotectedScene(t, nil)
	s.unwanted()
	hold := func(o client.Object) {
		o.SetFinalizers([]string{"example.com/kept"})
		s.must(s.guest.Update(t.Context(), o))
		s.must(s.guest.Delete(t.Context(), o))
	}
	off := merge.Unwanted(merge.AdmissionConfig{Operator: merge.DefaultOperator})[0]
	for _, o := range []client.Object{&off.Policy, &off.Binding} {
		s.must(s.guest.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		hold(o)
	}
	registry := s.behind(s.guest)
	c := s.protector(s.guest)
	s.protect(c)
	hold(s.binding())
	version := s.binding().ResourceVersion
	s.step(c, "")
	if s.binding().ResourceVersion != version || len(s.tape.Said()) != 0 {
		t.Errorf("it was written, or said %q", s.tape.Said())
	}
	s.weaken()
	s.step(c, "")
	if got := s.binding(); got.Spec.ValidationActions[0] != admissionv1.Deny || got.DeletionTimestamp == nil ||
		len(s.tape.Said()) != 1 {
		t.Errorf("it says %v, and said %q", got.Spec.ValidationActions, s.tape.Said())
	}
	if n := controllertest.Count(t, registry, "autonode_writes_total", "delete"); n != 0 {
		t.Errorf("%v deletions of what is going already", n)
	}
}

// G19: what a teardown takes away is not restored.
func TestAReleasedProtectionIsNotKept(t *testing.T) {
	t.Parallel()
	s := newUnprotectedScene(t, nil)
	c := s.protector(s.guest)
	s.protect(c)
	s.board.Release()
	s.must(s.guest.Delete(t.Context(), s.binding()))
	s.step(c, "")
	if err := s.guest.Get(t.Context(), types.NamespacedName{Name: poolBinding},
		&admissionv1.ValidatingAdmissionPolicyBinding{}); err == nil {
		t.Error("the binding is back")
	}
}
