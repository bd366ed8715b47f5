package operator_test

import (
	"context"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// B-15: a step whose cache shows the wrapper and the NodePool as before the last step continues from what that step
// wrote. It writes nothing again, and causes no conflict.
func TestAStepGoesOnFromItsOwnWrites(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
	s.read()
	patches := 0
	cache := newStale(interceptor.NewClient(s.admitted(asWritten), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			options ...client.PatchOption) error {
			patches++
			return c.Patch(ctx, o, p, options...)
		},
	}))
	s.behind(cache)
	quiet := func(when string) {
		t.Helper()
		clear(s.guestWrites)
		patches = 0
		if again := s.step(s.pools, "web").RequeueAfter; again != 0 || len(s.guestWrites) != 0 || patches != 0 {
			t.Errorf("%s: again after %s, the writes are %v and %d patches; want none", when, again, s.guestWrites,
				patches)
		}
	}
	cache.freeze(s.wrapper("web")) // without finalizer and status
	s.step(s.pools, "web")
	quiet("after it was made")
	made := s.nodePool("web")
	cache.freeze(made)
	s.learn(operator.Answer{Policy: policyOf(2, in(instanceType, "a", "b"))})
	s.step(s.pools, "web")
	quiet("after it was changed")
	s.merged("web", in(instanceType, "a", "b"))
	cache.hide(made)
	if again := s.step(s.pools, "web").RequeueAfter; again != 100*time.Millisecond {
		t.Errorf("the cache has lost the NodePool: again after %s, want 100ms", again)
	}
}

// R25: only the API server is trusted that a wrapper is gone: its nodes would go with the NodePool.
func TestAWrapperThatTheCacheDoesNotShowIsNotGone(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1))
	s.read()
	s.step(s.pools, "web")
	cache := newStale(s.guest)
	cache.hide(s.wrapper("web"))
	pools := operator.New(operator.Config{
		Kind: s.kinds[0], Guest: operator.GuestClient{Client: cache}, Live: s.guest, Board: s.board, Events: s.tape,
		Metrics: s.metrics, Now: s.clock.Now,
	})
	if again := s.step(pools, "web").RequeueAfter; again != 100*time.Millisecond || s.nodePool("web") == nil {
		t.Errorf("again after %s, NodePool %v; want it to stay", again, s.nodePool("web"))
	}
	if s.step(pools, "other").RequeueAfter != 0 {
		t.Error("a name that nothing has is looked at again")
	}
}

// A wrapper that goes while its status is written is no failure.
func TestAWrapperThatGoesMeanwhileIsNoFailure(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1))
	s.read()
	s.behind(interceptor.NewClient(s.guest, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch,
			...client.SubResourcePatchOption) error {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "openshiftnodepools"}, "web")
		},
	}))
	s.step(s.pools, "web")
}

// G18, R24, R25: what goes with its wrapper, or after it: what carries the operator's signs, what it has written
// since its start, and what the wrapper says it was applied to. Another's NodePool of that name stays.
func TestWhoseNodePoolGoesWithItsWrapper(t *testing.T) {
	t.Parallel()
	strip := func(p *karpenterv1.NodePool) { p.Labels, p.OwnerReferences = nil, nil }
	owner := func(group, kind string) func(*karpenterv1.NodePool) {
		return func(p *karpenterv1.NodePool) {
			strip(p)
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: group + "/v1beta1", Kind: kind, Name: "web",
				UID: "uid-web"}}
		}
	}
	const ours = "karpenter.hypershift.openshift.io"
	for name, c := range map[string]struct {
		change   func(p *karpenterv1.NodePool)
		restart  bool // of the operator
		refused  bool // the wrapper says that it could not be applied
		silent   bool // the wrapper says nothing
		retired  bool // it goes with the wrapper
		orphaned bool // it goes after the wrapper
	}{
		"with all signs": {change: func(*karpenterv1.NodePool) {}, restart: true, silent: true,
			retired: true, orphaned: true},
		"with its label": {change: func(p *karpenterv1.NodePool) { p.OwnerReferences = nil },
			restart: true, silent: true, retired: true, orphaned: true},
		"with its owner": {change: owner(ours, "OpenshiftNodePool"), restart: true, silent: true,
			retired: true, orphaned: true},
		"with the label of another": {
			change: func(p *karpenterv1.NodePool) {
				strip(p)
				p.Labels = map[string]string{merge.ManagedByLabel: "me"}
			}, restart: true, silent: true,
		},
		"with the owner of another kind": {change: owner(ours, "OpenshiftEC2NodeClass"), restart: true, silent: true},
		"with the owner of another group": {change: owner("example.com", "OpenshiftNodePool"), restart: true,
			silent: true},
		"without signs":                       {change: strip, retired: true, orphaned: true},
		"without signs, after a restart":      {change: strip, restart: true, retired: true},
		"without signs, never applied":        {change: strip, restart: true, silent: true},
		"without signs, refused at last":      {change: strip, restart: true, refused: true},
		"without signs, refused, known still": {change: strip, refused: true, retired: true, orphaned: true},
	} {
		for _, orphan := range []bool{false, true} {
			s := newScene(t, []client.Object{wrapper("web")}, policyOf(1))
			s.read()
			server := s.admitted(asWritten)
			s.behind(server)
			s.step(s.pools, "web")
			s.change("web", c.change)
			if c.restart {
				s.behind(server)
			}
			w := s.wrapper("web")
			if c.silent {
				w.Status.Conditions = nil
			}
			if c.refused {
				for i := range w.Status.Conditions {
					w.Status.Conditions[i].Status = metav1.ConditionFalse
				}
			}
			s.must(s.guest.Status().Update(t.Context(), w))
			want := c.retired
			if orphan { // somebody takes the finalizer off
				w.Finalizers, want = nil, c.orphaned
				s.must(s.guest.Update(t.Context(), w))
			}
			s.deleteWrapper("web")
			s.step(s.pools, "web")
			s.step(s.pools, "web")
			if gone := s.nodePool("web") == nil; gone != want || s.wrapper("web") != nil {
				t.Errorf("%s, orphan %t: the NodePool is gone: %t, want %t; the wrapper is %v, want it gone", name,
					orphan, gone, want, s.wrapper("web"))
			}
		}
	}
}

// U-10, R25: what goes after its wrapper is that very NodePool, counts as deleted, and is deleted once, however long
// it takes. What could not be asked or done is tried again.
func TestAnOrphanIsDeletedOnce(t *testing.T) {
	t.Parallel()
	orphan := func() *karpenterv1.NodePool {
		return &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u",
			Finalizers: []string{"example.com/held"},
			Labels:     map[string]string{merge.ManagedByLabel: merge.ManagedByValue}}}
	}
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		s := newScene(t, []client.Object{orphan()})
		s.behind(f.Wrap(s.guest))
		return s.steps(s.pools, "web", nil)
	})
	s := newScene(t, []client.Object{orphan()})
	var deleted []types.UID
	registry := s.behind(interceptor.NewClient(s.guest, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			var asked client.DeleteOptions
			asked.ApplyOptions(options)
			if asked.Preconditions != nil && asked.Preconditions.UID != nil {
				deleted = append(deleted, *asked.Preconditions.UID)
			}
			return c.Delete(ctx, o, options...)
		},
	}))
	for range 3 {
		s.step(s.pools, "web")
	}
	if n := controllertest.Count(t, registry, "autonode_writes_total", "NodePool", "delete"); n != 1 ||
		!slices.Equal(deleted, []types.UID{"u"}) {
		t.Errorf("%v deletions are counted, and these UIDs deleted: %v; want one, with its UID", n, deleted)
	}
}

// R25: another process adopts the NodePool for a wrapper that was just made, while the request to delete it is under
// way. It stays. Mutant: the request does not say which state of the NodePool it is about.
func TestR25_ANodePoolThatIsAdoptedMeanwhileIsNotDeleted(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
	s.read()
	s.step(s.pools, "web")
	w := s.wrapper("web")
	w.Finalizers = nil
	s.must(s.guest.Update(t.Context(), w))
	s.deleteWrapper("web")
	s.behind(interceptor.NewClient(s.guest, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if anew := wrapper("web"); s.wrapper("web") == nil {
				anew.UID = "uid-anew"
				s.must(s.guest.Create(ctx, anew))
				s.change("web", func(p *karpenterv1.NodePool) { p.OwnerReferences[0].UID = anew.UID })
			}
			return c.Delete(ctx, o, options...)
		},
	}))
	again := s.step(s.pools, "web").RequeueAfter
	if p := s.nodePool("web"); p == nil || p.DeletionTimestamp != nil || again != 100*time.Millisecond {
		t.Errorf("again after %s, pool %v", again, p)
	}
}
