package operator_test

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

const namespace = "hcp-a"

// scene is both clusters in memory, with the writes to each counted, and the operator's controllers over them.
type scene struct {
	t                 *testing.T
	guest, management client.WithWatch
	guestWrites       map[string]int // "create NodePool"; only those that matter for what is counted
	board             *operator.Board
	tape              *controllertest.Tape
	metrics           operator.Metrics
	clock             *controllertest.Clock
	kinds             []operator.Kind
	pools, classes    *operator.Controller
	policy            *operator.PolicyController
	bootstrap         *merge.Bootstrap // what nodes start with; nil for not there yet
	unread            error            // of reading that
}

// newScene returns clusters of which the guest is protected already.
func newScene(t *testing.T, guest []client.Object, management ...client.Object) *scene {
	t.Helper()
	s := newUnprotectedScene(t, guest, management...)
	s.board.Protect()
	return s
}

func newUnprotectedScene(t *testing.T, guest []client.Object, management ...client.Object) *scene {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, admissionv1.AddToScheme, karpenterv1.AddToScheme, karpenterawsv1.AddToScheme,
		hypershiftv1.AddToScheme, hypershiftv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := &scene{
		t: t, guestWrites: map[string]int{}, board: operator.NewBoard(), tape: &controllertest.Tape{},
		clock:     controllertest.NewClock(),
		metrics:   operator.NewMetrics(prometheus.NewRegistry()),
		bootstrap: &merge.Bootstrap{UserData: "boot", AMIs: []string{"ami-1"}},
	}
	named := func(o client.Object) []string { return []string{o.GetName()} }
	s.guest = fake.NewClientBuilder().WithScheme(scheme).WithObjects(guest...).
		WithIndex(&karpenterv1.NodePool{}, "metadata.name", named).
		WithIndex(&karpenterawsv1.EC2NodeClass{}, "metadata.name", named).
		WithStatusSubresource(&hypershiftv1beta1.OpenshiftNodePool{}, &hypershiftv1.OpenshiftEC2NodeClass{},
			&karpenterv1.NodePool{}, &karpenterawsv1.EC2NodeClass{}).
		WithInterceptorFuncs(s.counting()).Build()
	s.management = fake.NewClientBuilder().WithScheme(scheme).WithObjects(management...).WithStatusSubresource(
		&hypershiftv1beta1.AutoNodePolicy{}).
		WithIndex(&hypershiftv1beta1.AutoNodePolicy{}, "metadata.name", named).Build()
	s.kinds = []operator.Kind{operator.NodePools(merge.NodePoolSettings{}), operator.EC2NodeClasses(operator.AWSConfig{
		Infra: merge.Infra{InfraID: "infra", InstanceProfile: "nodes"}, RootVolume: merge.DefaultRootVolume(),
		Bootstrap: func(context.Context, string, string) (*merge.Bootstrap, error) { return s.bootstrap, s.unread },
	})}
	s.pools, s.classes = s.controller(s.kinds[0]), s.controller(s.kinds[1])
	s.policy = operator.NewPolicyController(operator.PolicyConfig{
		Management: s.managementClient(), Guest: operator.GuestClient{Client: s.guest}, Kinds: s.kinds, Board: s.board,
		Metrics: s.metrics, Now: s.clock.Now, Log: logr.Discard(),
	})
	return s
}

func (s *scene) managementClient() operator.ManagementClient {
	return operator.ManagementClientOf(s.management, namespace)
}

func (s *scene) controller(kind operator.Kind) *operator.Controller { return s.lagging(kind, s.guest) }

// lagging returns a controller of another process, whose cache may show another state than the API server has.
func (s *scene) lagging(kind operator.Kind, cache client.Client) *operator.Controller {
	return operator.New(operator.Config{
		Kind: kind, Guest: operator.GuestClient{Client: cache}, Live: s.guest, Board: s.board, Events: s.tape,
		Metrics: s.metrics, Now: s.clock.Now, Log: logr.Discard(),
	})
}

// counting counts the writes by verb and Go type.
func (s *scene) counting() interceptor.Funcs {
	count := func(verb string, object client.Object) {
		switch object.(type) {
		case *karpenterv1.NodePool:
			s.guestWrites[verb+" NodePool"]++
		case *hypershiftv1beta1.OpenshiftNodePool:
			s.guestWrites[verb+" OpenshiftNodePool"]++
		}
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			count("create", o)
			return c.Create(ctx, o, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			count("update", o)
			return c.Update(ctx, o, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			count("delete", o)
			return c.Delete(ctx, o, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch,
			options ...client.SubResourcePatchOption) error {
			count("status", o)
			return c.SubResource(sub).Patch(ctx, o, patch, options...)
		},
	}
}

// read lets the board know what the management cluster has now.
func (s *scene) read() {
	s.t.Helper()
	policy, _, err := s.managementClient().Policy(s.t.Context())
	s.board.Set(s.board.Reading().Next(operator.Answer{Policy: policy, Err: err}, s.clock.Now(), false))
}

func (s *scene) step(r reconcile.Reconciler, name string) reconcile.Result {
	s.t.Helper()
	result, err := r.Reconcile(s.t.Context(), request(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return result
}

func (s *scene) nodePool(name string) *karpenterv1.NodePool {
	s.t.Helper()
	var pool karpenterv1.NodePool
	if err := s.guest.Get(s.t.Context(), types.NamespacedName{Name: name}, &pool); err != nil {
		if client.IgnoreNotFound(err) != nil {
			s.t.Fatal(err)
		}
		return nil
	}
	return &pool
}

func (s *scene) wrapper(name string) *hypershiftv1beta1.OpenshiftNodePool {
	s.t.Helper()
	var pool hypershiftv1beta1.OpenshiftNodePool
	if err := s.guest.Get(s.t.Context(), types.NamespacedName{Name: name}, &pool); err != nil {
		if client.IgnoreNotFound(err) != nil {
			s.t.Fatal(err)
		}
		return nil
	}
	return &pool
}

func in(key string, values ...string) karpenterv1.NodeSelectorRequirementWithMinValues {
	return karpenterv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn,
		Values: values}
}

func wrapper(name string,
	requirements ...karpenterv1.NodeSelectorRequirementWithMinValues) *hypershiftv1beta1.OpenshiftNodePool {
	return &hypershiftv1beta1.OpenshiftNodePool{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec: hypershiftv1beta1.OpenshiftNodePoolSpec{Template: hypershiftv1beta1.OpenshiftNodeClaimTemplate{
			Spec: hypershiftv1beta1.OpenshiftNodeClaimTemplateSpec{Requirements: requirements},
		}},
	}
}

func policyOf(generation int64,
	requirements ...karpenterv1.NodeSelectorRequirementWithMinValues) *hypershiftv1beta1.AutoNodePolicy {
	return &hypershiftv1beta1.AutoNodePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: operator.PolicyName, UID: "uid-policy",
			Generation: generation},
		Spec: hypershiftv1beta1.AutoNodePolicySpec{NodePoolDefaults: hypershiftv1beta1.NodePoolDefaults{
			Requirements: requirements,
		}},
	}
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}
