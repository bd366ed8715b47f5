package operator_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// forgetting is a guest that stores the status of wrappers without conditions.
func (s *scene) forgetting() client.WithWatch { return forgetting(s.guest) }

func forgetting(server client.WithWatch) client.WithWatch {
	return interceptor.NewClient(server, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			options ...client.SubResourcePatchOption) error {
			if err := c.SubResource(sub).Patch(ctx, o, p, options...); err != nil {
				return err
			}
			switch w := o.(type) {
			case *hypershiftv1beta1.OpenshiftNodePool:
				w.Status.Conditions = nil
			case *hypershiftv1.OpenshiftEC2NodeClass:
				w.Status.Conditions = nil
			}
			return c.SubResource(sub).Update(ctx, o)
		},
	})
}

// of two reasons to requeue, the sooner one counts: to read again what nodes start with or retry a refused
// NodePool, and to write an altered status again.
func TestA03_TheSoonerReasonToComeBackCounts(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web"), class("big")}, policyOf(1))
	s.read()
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "nodepools"}, "web", errors.New("no"))
	s.behind(forgetting(s.refusing(refused)))
	s.unread = errors.New("down")
	for _, test := range []struct {
		later              time.Duration
		pools, classesWant time.Duration
	}{{0, 20 * time.Second, 10 * time.Second}, {15 * time.Second, 5 * time.Second, 5 * time.Second}} {
		s.clock.Advance(test.later)
		if again := s.step(s.pools, "web").RequeueAfter; again != test.pools {
			t.Errorf("%s later: the pool again after %s, want %s", test.later, again, test.pools)
		}
		if again := s.step(s.classes, "big").RequeueAfter; again != test.classesWant {
			t.Errorf("%s later: the class again after %s, want %s", test.later, again, test.classesWant)
		}
	}
}

// when the operator writes its label again it leaves what the guest fills in as it is stored. A write
// counts as altered where something is filled in, and only there.
func TestX11_ALabelIsWrittenWithoutWhatIsFilledIn(t *testing.T) {
	t.Parallel()
	for _, fills := range []bool{true, false} {
		s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
		s.read()
		var sent []*int32
		registry := s.behind(s.admitted(func(pool *karpenterv1.NodePool) {
			if sent = append(sent, pool.Spec.Weight); fills && pool.Spec.Weight == nil {
				pool.Spec.Weight = new(int32(5))
			}
		}))
		s.step(s.pools, "web")
		s.change("web", func(pool *karpenterv1.NodePool) { pool.Labels = nil })
		s.step(s.pools, "web")
		if s.nodePool("web").Labels[merge.ManagedByLabel] == "" || len(sent) != 2 || (sent[1] != nil) != fills {
			t.Errorf("filled in: %t; the weights that were sent are %v", fills, sent)
		}
		if n := controllertest.Count(t, registry, "autonode_altered_writes_total", "NodePool"); (n > 0) != fills {
			t.Errorf("filled in: %t; %v altered writes are counted", fills, n)
		}
	}
}

// A-03, R23: another process tells of a repair by the status that an earlier one has written.
func TestA03_ARepairIsToldAfterARestart(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
	s.read()
	s.step(s.pools, "web")
	s.board.Forget("OpenshiftNodePool", "web")
	registry := s.behind(s.guest)
	s.deletePool("web")
	s.step(s.pools, "web")
	if n := controllertest.Count(t, registry, "autonode_repairs_total", "NodePool"); n != 1 {
		t.Errorf("%v repairs are counted, want one", n)
	}
}

// what was found out about a node class does not count any more once node classes are left alone: another
// operator writes it meanwhile.
func TestA32_WhatWasFoundOutOfAClassIsForgotten(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("big")}, policyOf(1))
	s.kinds[1].Shared = true
	s.read()
	s.behind(s.guest)
	s.step(s.classes, "big")
	if _, found := s.board.Verdict("OpenshiftEC2NodeClass", s.classWrapper("big")); !found {
		t.Fatal("nothing was found out")
	}
	s.board.SetHosted(read(plane("one", func(spec map[string]any, _ map[string]string) { delete(spec, "autoNode") })))
	s.step(s.classes, "big")
	if v, found := s.board.Verdict("OpenshiftEC2NodeClass", s.classWrapper("big")); found {
		t.Errorf("it still counts that %+v", v)
	}
}

// a node class whose wrapper is gone is not the operator's any more for those who name it.
func TestA21_AClassWhoseWrapperIsGoneIsForgotten(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("big"), ofClass("web", "big")}, policyOf(1, in(instanceType, "a")))
	s.read()
	look := s.looking(s.guest)
	s.step(look, "")
	s.step(s.classes, "big")
	s.step(s.pools, "web")
	s.must(s.guest.Delete(t.Context(), s.classWrapper("big")))
	for range 3 { // the product goes, the wrapper goes, and that it is gone is seen
		s.step(s.classes, "big")
	}
	s.clock.Advance(2 * time.Minute)
	s.step(look, "")
	if n := look.objects("NodePool", string(conformance.NotConforming),
		string(conformance.NodeClassUnmanaged)); n != 1 {
		t.Errorf("%v pools name a class that is not the operator's, want one: %q", n, s.tape.Said())
	}
}

// what nodes start with while a version is not resolved is known for each class.
func TestA08_EachClassStartsAsItDidBefore(t *testing.T) {
	t.Parallel()
	s := released(t, true, "", class("big"), class("other"))
	s.step(s.classes, "big")
	s.step(s.classes, "other")
	s.asks("4.22.0", "4.21.0")
	s.bootstrap = &merge.Bootstrap{UserData: "half a release", AMIs: []string{"ami-2"}}
	s.starts("asked for another", "False", hypershiftv1beta1.ReasonVersionNotResolved, "True", "boot")
}

// Why certificates cannot be approved for a while is told in words.
func TestThatACloudCannotBeAskedForNamesIsTold(t *testing.T) {
	t.Parallel()
	a := newApprovals(t, launchedClaim("web-1"), kubeletRequest(t, "ours", "web-1"))
	a.names = func(context.Context, []string) (map[string]string, error) { return nil, errors.New("throttled") }
	const want = "asking the cloud for the names of instances: throttled"
	if _, err := a.step(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	a.approved("ours", false)
}

// a NodePool that is on its way while its cluster goes is not deleted again.
func TestA32_ANodePoolThatIsGoingIsNotDeletedAgain(t *testing.T) {
	t.Parallel()
	held := &karpenterv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: "alone", Finalizers: []string{"example.com/held"}},
	}
	s := newScene(t, []client.Object{held})
	going := plane("one")
	going.SetDeletionTimestamp(new(metav1.Now()))
	s.board.SetHosted(read(going))
	c := operator.NewDismantling(operator.TeardownConfig{
		Guest: operator.GuestClient{Client: s.guest}, Kinds: s.kinds, Board: s.board, Log: logr.Discard(),
	})
	for range 2 {
		s.step(c, "")
	}
	if n := s.guestWrites["delete NodePool"]; n != 1 {
		t.Errorf("deleted %d times", n)
	}
}

// R38, G5: an admission policy that cannot be restored is named as missing, once, as long as that fails.
func TestWhatCannotBeRestoredIsMissing(t *testing.T) {
	t.Parallel()
	s := newUnprotectedScene(t, nil)
	fails := false
	c := s.protector(interceptor.NewClient(s.guest, interceptor.Funcs{
		Update: func(ctx context.Context, inner client.WithWatch, o client.Object,
			options ...client.UpdateOption) error {
			if fails {
				return apierrors.NewInternalError(errors.New("etcd is slow"))
			}
			return inner.Update(ctx, o, options...)
		},
	}))
	s.protect(c)
	s.weaken()
	fails = true
	want := []string{"ValidatingAdmissionPolicyBinding " + poolBinding}
	for range 2 {
		_, err := c.Reconcile(t.Context(), request(""))
		if err == nil || !slices.Equal(s.board.Missing(), want) {
			t.Errorf("error %v, missing %q, want %q", err, s.board.Missing(), want)
		}
	}
}
