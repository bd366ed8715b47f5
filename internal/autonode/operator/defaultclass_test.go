package operator_test

import (
	"context"
	"reflect"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

func (s *scene) defaults(server client.Client) *operator.DefaultClassController {
	return operator.NewDefaultClassController(operator.DefaultClassConfig{
		Guest: operator.GuestClient{Client: server}, InfraID: "infra", Board: s.board, Metrics: s.metrics,
	})
}

func (s *scene) defaultClass() *hypershiftv1.OpenshiftEC2NodeClass {
	s.t.Helper()
	var found hypershiftv1.OpenshiftEC2NodeClass
	if err := s.guest.Get(s.t.Context(), types.NamespacedName{Name: "default"}, &found); err != nil {
		return nil
	}
	return &found
}

// G20, G22: a cluster has a node class named default that finds subnets and security groups by the cluster's own
// tags. It is made once the guest is protected, and only where there is none.
func TestThereIsADefaultNodeClass(t *testing.T) {
	t.Parallel()
	s := newUnprotectedScene(t, nil)
	registry := s.behind(s.guest)
	s.step(s.defaults(s.guest), "")
	if s.defaultClass() != nil {
		t.Fatal("it was made before the guest is protected")
	}
	s.board.Protect()
	s.step(s.defaults(s.guest), "")
	made := s.defaultClass()
	if made == nil {
		t.Fatal("it was not made")
	}
	want := hypershiftv1.OpenshiftEC2NodeClassSpec{
		SubnetSelectorTerms: []hypershiftv1.SubnetSelectorTerm{{Tags: map[string]string{
			"kubernetes.io/role/internal-elb": "1", "kubernetes.io/cluster/infra": "*",
		}}},
		SecurityGroupSelectorTerms: []hypershiftv1.SecurityGroupSelectorTerm{
			{Tags: map[string]string{"karpenter.sh/discovery": "infra"}},
		},
	}
	if !reflect.DeepEqual(made.Spec, want) || made.Labels[merge.ManagedByLabel] != merge.ManagedByValue {
		t.Errorf("made %+v with the labels %v", made.Spec, made.Labels)
	}
	made.Spec.SecurityGroupSelectorTerms[0].Tags["karpenter.sh/discovery"] = "mine"
	s.must(s.guest.Update(t.Context(), made))
	s.step(s.defaults(s.guest), "")
	if got := s.defaultClass().Spec.SecurityGroupSelectorTerms[0].Tags["karpenter.sh/discovery"]; got != "mine" {
		t.Errorf("it finds security groups of %s: what users changed was written over", got)
	}
	if n := controllertest.Count(t, registry, "autonode_writes_total", "create", "OpenshiftEC2NodeClass"); n != 1 {
		t.Errorf("%v writes are counted, want 1", n)
	}
}

// G20: what fails is tried again; a class that somebody else has just made is not a failure.
func TestNoFailureToMakeTheDefaultClassIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		s := newScene(t, nil)
		return s.steps(s.defaults(f.Wrap(s.guest)), "", nil)
	})
	s := newScene(t, nil)
	s.step(s.defaults(interceptor.NewClient(s.guest, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "openshiftec2nodeclasses"}, "default")
		},
	})), "")
}
