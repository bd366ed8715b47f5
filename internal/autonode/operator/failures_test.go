package operator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// behind puts what stands between the operator and the guest's API server in its place, with metrics that can be read.
func (s *scene) behind(server client.WithWatch) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	s.metrics = operator.NewMetrics(registry)
	make := func(kind operator.Kind) *operator.Controller {
		return operator.New(operator.Config{
			Kind: kind, Guest: operator.GuestClient{Client: server}, Live: server, Board: s.board, Events: s.tape,
			Metrics: s.metrics, Now: s.clock.Now, Log: logr.Discard(),
		})
	}
	s.pools, s.classes = make(s.kinds[0]), make(s.kinds[1])
	return registry
}

func (s *scene) steps(r reconcile.Reconciler, name string, world ...func()) func() error {
	return func() error {
		for _, happens := range world {
			if happens != nil {
				happens()
			}
			if _, err := r.Reconcile(s.t.Context(), request(name)); err != nil {
				return err
			}
		}
		return nil
	}
}

// R9, R19, R24: whatever of the wrapper or of its product cannot be read or written is tried again: made, changed,
// repaired and taken down.
func TestNoFailureOfTheGuestIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		s := newScene(t, []client.Object{wrapper("web", in("team", "a"))}, policyOf(1, in(instanceType, "a")))
		s.read()
		s.behind(f.Wrap(s.guest))
		return s.steps(s.pools, "web",
			nil,
			func() {
				s.board.Set(operator.Reading{}.Next(operator.Answer{Policy: policyOf(2, in(instanceType, "a", "b"))},
					s.clock.Now(), false))
			},
			func() {
				if err := s.guest.Delete(t.Context(), s.nodePool("web")); err != nil {
					t.Fatal(err)
				}
			},
			func() {
				if err := s.guest.Delete(t.Context(), s.wrapper("web")); err != nil {
					t.Fatal(err)
				}
			},
			nil, nil)
	})
}

// G16: a refusal of the guest's API server is reported on the wrapper, with its words and its kind, and is no error
// that is retried again and again. A request without an answer is.
func TestARefusalStandsOnTheWrapper(t *testing.T) {
	t.Parallel()
	kind, resource := schema.GroupKind{Group: karpenterv1.Group, Kind: "NodePool"},
		schema.GroupResource{Group: karpenterv1.Group, Resource: "nodepools"}
	for name, c := range map[string]struct {
		answer error
		reason string
		says   string
	}{
		"invalid": {apierrors.NewInvalid(kind, "web", nil), operator.ReasonRefusedInvalid,
			"does not accept the NodePool"},
		"bad request": {apierrors.NewBadRequest("no such field"), operator.ReasonRefusedInvalid, "no such field"},
		"forbidden": {apierrors.NewForbidden(resource, "web", errors.New("by a policy")), operator.ReasonRefused,
			"by a policy"},
		"no such API": {apierrors.NewNotFound(resource, "web"), operator.ReasonRefused, "cannot be written"},
		"no answer":   {apierrors.NewInternalError(errors.New("etcd is slow")), "", ""},
	} {
		for _, verb := range []string{"create", "update"} {
			s := newScene(t, []client.Object{wrapper("web", in("team", "a"))}, policyOf(1, in(instanceType, "a")))
			s.read()
			if verb == "update" {
				s.step(s.pools, "web")
				s.board.Set(operator.Reading{}.Next(operator.Answer{Policy: policyOf(2, in(instanceType, "a", "b"))},
					s.clock.Now(), false))
			}
			refuse := func(o client.Object) error {
				if _, is := o.(*karpenterv1.NodePool); is {
					return c.answer
				}
				return nil
			}
			registry := s.behind(interceptor.NewClient(s.guest, interceptor.Funcs{
				Create: func(ctx context.Context, inner client.WithWatch, o client.Object,
					options ...client.CreateOption) error {
					if err := refuse(o); err != nil {
						return err
					}
					return inner.Create(ctx, o, options...)
				},
				Update: func(ctx context.Context, inner client.WithWatch, o client.Object,
					options ...client.UpdateOption) error {
					if err := refuse(o); err != nil {
						return err
					}
					return inner.Update(ctx, o, options...)
				},
			}))
			_, err := s.pools.Reconcile(t.Context(), request("web"))
			if c.reason == "" {
				if err == nil {
					t.Errorf("%s, %s: no error, though nobody knows whether it was written", name, verb)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s, %s: error %v, want the refusal on the wrapper", name, verb, err)
			}
			s.says("web", hypershiftv1beta1.ConditionTypePolicyApplied, metav1.ConditionFalse, c.reason)
			if got := messageOf(s.wrapper("web"), hypershiftv1beta1.ConditionTypePolicyApplied); !strings.Contains(got,
				c.says) {
				t.Errorf("%s, %s: %q does not say %q", name, verb, got, c.says)
			}
			if n := controllertest.Count(t, registry, "autonode_writes_total", verb); n != 1 {
				t.Errorf("%s: %v writes are counted as %s, want 1", name, n, verb)
			}
		}
	}
}

func messageOf(w *hypershiftv1beta1.OpenshiftNodePool, kind string) string {
	for _, c := range w.Status.Conditions {
		if c.Type == kind {
			return c.Message
		}
	}
	return ""
}

// R23: what somebody else changed or deleted is restored, once, and reported and counted as such. The operator's own
// writes, for another policy or another wrapper, are not.
func TestARepairIsToldAndCounted(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web", in("team", "a"))}, policyOf(1, in(instanceType, "a")))
	s.read()
	registry := s.behind(s.guest)
	repairs := func() float64 { return controllertest.Count(t, registry, "autonode_repairs_total", "NodePool") }
	s.step(s.pools, "web")
	s.board.Set(operator.Reading{}.Next(operator.Answer{Policy: policyOf(2, in(instanceType, "a", "b"))},
		s.clock.Now(), false))
	s.step(s.pools, "web")
	if n := repairs(); n != 0 || len(s.tape.Said()) != 0 {
		t.Errorf("%v repairs, said %q: the operator wrote all of it itself", n, s.tape.Said())
	}
	if err := s.guest.Delete(t.Context(), s.nodePool("web")); err != nil {
		t.Fatal(err)
	}
	s.step(s.pools, "web")
	if n := repairs(); n != 1 || !strings.Contains(strings.Join(s.tape.Said(), "\n"), "web "+operator.ReasonRestored+
		": NodePool web had been deleted") {
		t.Errorf("%v repairs, said %q: want the deletion told", n, s.tape.Said())
	}
	s.merged("web", in(instanceType, "a", "b"), in("team", "a"))
}

// A NodePool that another step has made meanwhile, which the cache does not show, is waited for.
func TestAnObjectTheCacheDoesNotShowIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{wrapper("web")}, policyOf(1, in(instanceType, "a")))
	s.read()
	s.behind(interceptor.NewClient(s.guest, interceptor.Funcs{
		Create: func(ctx context.Context, inner client.WithWatch, o client.Object,
			options ...client.CreateOption) error {
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "nodepools"}, o.GetName())
		},
	}))
	result, err := s.pools.Reconcile(t.Context(), request("web"))
	if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > 10*time.Second {
		t.Errorf("again after %s (%v), want it soon", result.RequeueAfter, err)
	}
}
