package operator_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// counted counts the writes to a server.
func counted(server client.WithWatch, writes *int) client.WithWatch {
	return interceptor.NewClient(server, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			*writes++
			return c.Update(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			options ...client.PatchOption) error {
			*writes++
			return c.Patch(ctx, o, p, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			options ...client.SubResourcePatchOption) error {
			*writes++
			return c.SubResource(sub).Patch(ctx, o, p, options...)
		},
	})
}

// a hand-over that is begun again finishes what is left, and writes nothing of what is done.
func TestA33_AReleaseThatIsBegunAgain(t *testing.T) {
	t.Parallel()
	s, done := releasing(t), 0
	labelled := s.classWrapper("big") // as the default class is
	labelled.Labels = map[string]string{merge.ManagedByLabel: merge.ManagedByValue, "team": "a"}
	s.must(s.guest.Update(t.Context(), labelled))
	s.step(s.handOver(s.guest, &done), "")
	left := s.classWrapper("big")
	if !maps.Equal(left.Labels, map[string]string{"team": "a"}) ||
		!slices.Equal(left.Finalizers, labelled.Finalizers) {
		t.Errorf("the class's wrapper has the labels %v and the finalizers %v", left.Labels, left.Finalizers)
	}
	writes := 0
	again := s.handOverOf(counted(s.guest, &writes), counted(s.management, &writes), &done)
	if s.step(again, ""); writes != 0 || done != 2 {
		t.Errorf("%d writes of what is done, done %d times", writes, done)
	}
	policy := s.stored()
	condition.Set(&policy.Status.Conditions, 1, condition.True(hypershiftv1beta1.ConditionTypeReady, "Applied", ""),
		s.clock.Now())
	s.must(s.management.Status().Update(t.Context(), policy))
	s.step(again, "")
	said, _ := condition.Get(s.stored().Status.Conditions, hypershiftv1beta1.ConditionTypeReady)
	if said.Reason != hypershiftv1beta1.ReasonReleased || writes != 1 {
		t.Errorf("Ready says %s after %d writes, want what was left to be written", said.Reason, writes)
	}
}

// labels and owners of others stay on a NodePool, and an owner goes whose label somebody has taken off already.
func TestA33_AReleaseKeepsTheSignsOfOthers(t *testing.T) {
	t.Parallel()
	s, done := releasing(t), 0
	others := []metav1.OwnerReference{
		{APIVersion: "example.com/v1", Kind: "OpenshiftNodePool", Name: "web", UID: "1"},
		{APIVersion: hypershiftv1beta1.Group + "/v1", Kind: "Other", Name: "web", UID: "2"},
	}
	s.change("web", func(pool *karpenterv1.NodePool) {
		pool.Labels = map[string]string{"team": "a"}
		pool.OwnerReferences = append(pool.OwnerReferences, others...)
	})
	registry := s.behind(s.guest)
	s.step(s.handOver(s.guest, &done), "")
	pool := s.nodePool("web")
	if !maps.Equal(pool.Labels, map[string]string{"team": "a"}) || !slices.Equal(pool.OwnerReferences, others) {
		t.Errorf("the NodePool has the labels %v and the owners %v", pool.Labels, pool.OwnerReferences)
	}
	if n := controllertest.Count(t, registry, "autonode_writes_total", "update", "NodePool"); n != 1 {
		t.Errorf("%v updates are counted, want one", n)
	}
}

// a hosted cluster without a policy, or whose policy may not be read, or goes meanwhile, is handed over too.
func TestA33_AReleaseWithoutAPolicy(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Resource: "autonodepolicies"}
	for what, funcs := range map[string]interceptor.Funcs{
		"none": {List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return nil
		}},
		"refused": {List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return apierrors.NewForbidden(resource, "", errors.New("no"))
		}},
		"gone": {SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch,
			...client.SubResourcePatchOption) error {
			return apierrors.NewNotFound(resource, "default")
		}},
	} {
		s, done := releasing(t), 0
		s.step(s.handOverOf(s.guest, interceptor.NewClient(s.management, funcs), &done), "")
		if done != 1 || len(s.nodePool("web").OwnerReferences) > 0 {
			t.Errorf("%s: done %d times, the NodePool has the owners %v", what, done,
				s.nodePool("web").OwnerReferences)
		}
	}
}
