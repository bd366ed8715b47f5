package joiner

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/kube"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok/plug"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// stage is the whole controller over an API server in memory: the watches are played by tell, the queues by run.
type stage struct {
	kept   *decisions
	t      *testing.T
	server client.WithWatch
	clock  *controllertest.Clock
	parts  Parts
	store  *world.Store
	woken  []string
	delays []time.Duration // of planning's waking
	inputs inputs
	noted  []input // all that was planned with, the oldest first
}

func newStage(t *testing.T, objects ...client.Object) *stage {
	t.Helper()
	identify := interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object,
		opts ...client.CreateOption) error {
		if o.GetUID() == "" {
			o.SetUID(types.UID("uid-" + o.GetName())) // as a real API server does
		}
		return c.Create(ctx, o, opts...)
	}}
	s := &stage{t: t, server: controllertest.NewServer(t).WithInterceptorFuncs(identify).Build(),
		clock: controllertest.NewClock()}
	if err := kwokv1alpha1.AddToScheme(s.server.Scheme()); err != nil {
		t.Fatal(err)
	}
	inventory, err := kwok.GenericInventory()
	if err != nil {
		t.Fatal(err)
	}
	store := world.New(world.Config{Now: s.clock.Now})
	s.store = store
	machines, err := kwok.New(kwok.Config{Cluster: plug.NewCluster(s.server, s.server, "kube-system"),
		Inventory: inventory, Now: s.clock.Now, Correct: store.Corrected})
	if err != nil {
		t.Fatal(err)
	}
	config := DefaultConfig()
	s.kept = newDecisions(config, s.server, s.server, logr.Discard())
	s.parts = Compose(config.Settings(), Deps{
		Client: s.server, Live: s.server, Store: store, Fleet: fleet.New(machines),
		Plugged: []plugin.Parts{plug.PartsOf(machines, s.clock.Now)}, Events: &controllertest.Tape{},
		Registerer: prometheus.NewRegistry(), Ready: func() bool { return true }, Now: s.clock.Now,
		Log: logr.Discard(),
		Planned: func(question string, snapshot *cluster.Snapshot, terms engine.Terms, p plan.Plan) {
			s.inputs.noted(question, snapshot, terms, p)
			s.noted = append(s.noted, s.inputs.last)
		},
		Decided: s.kept.decided,
		Wake: func(controller string, request reconcile.Request, after time.Duration) {
			if controller == Provisioning {
				s.delays = append(s.delays, after)
			}
			s.woken = append(s.woken, strings.TrimSpace(controller+" "+request.Name))
		},
	})
	for _, object := range objects {
		if err := s.server.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// tell shows the feed all that the API server has.
func (s *stage) tell() {
	s.t.Helper()
	for _, list := range []client.ObjectList{&karpenterv1.NodePoolList{}, &karpenterv1.NodeClaimList{},
		&corev1.NodeList{}, &corev1.PodList{}} {
		if err := s.server.List(s.t.Context(), list); err != nil {
			s.t.Fatal(err)
		}
		switch list := list.(type) {
		case *karpenterv1.NodePoolList:
			for i := range list.Items {
				s.parts.Feed.Apply(&list.Items[i])
			}
		case *karpenterv1.NodeClaimList:
			for i := range list.Items {
				s.parts.Feed.Apply(&list.Items[i])
			}
		case *corev1.NodeList:
			for i := range list.Items {
				s.parts.Feed.Apply(&list.Items[i])
			}
		case *corev1.PodList:
			for i := range list.Items {
				s.parts.Feed.Apply(&list.Items[i])
			}
		}
	}
}

// run calls one controller.
func (s *stage) run(name, request string) reconcile.Result {
	s.t.Helper()
	i := slices.IndexFunc(s.parts.Controllers, func(c kube.Controller) bool { return c.Name == name })
	result, err := s.parts.Controllers[i].Reconciler.Reconcile(s.t.Context(),
		reconcile.Request{NamespacedName: types.NamespacedName{Name: request}})
	if err != nil {
		s.t.Fatalf("%s %s: %v", name, request, err)
	}
	return result
}

func (s *stage) only() *karpenterv1.NodeClaim {
	s.t.Helper()
	var list karpenterv1.NodeClaimList
	if err := s.server.List(s.t.Context(), &list); err != nil || len(list.Items) != 1 {
		s.t.Fatalf("%d claims, error %v: want one", len(list.Items), err)
	}
	return &list.Items[0]
}

func pending(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
		}},
	}
}

func manifests() []client.Object {
	return []client.Object{
		&kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		&karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "pool"},
			Spec: karpenterv1.NodePoolSpec{
				Template: karpenterv1.NodeClaimTemplate{Spec: karpenterv1.NodeClaimTemplateSpec{
					NodeClassRef: &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass",
						Name: "default"},
				}},
			}},
		pending("web"),
	}
}

// provision makes the pool ready, and plans for the pods that wait.
func (s *stage) provision() {
	s.run(Pools, "default")
	s.tell()
	s.clock.Advance(time.Second)
	s.run(Provisioning, "")
}

// The flow of architecture 4.5 from a pending pod to a node and back, by steps alone: no goroutine, no wait.
func TestFromAPendingPodToANodeAndBack(t *testing.T) {
	t.Parallel()
	s := newStage(t, manifests()...)
	s.provision()
	claim := s.only()
	s.run(Claims, claim.Name)
	claim = s.only()
	if claim.Status.ProviderID != "kwok://"+claim.Name || claim.Labels[corev1.LabelTopologyZone] == "" {
		t.Fatalf("claim %+v is not launched", claim.Status)
	}
	s.clock.Advance(time.Minute)
	s.run(Claims, claim.Name)
	var node corev1.Node
	if err := s.server.Get(t.Context(), types.NamespacedName{Name: claim.Name}, &node); err != nil ||
		node.Labels[karpenterv1.NodeRegisteredLabelKey] != "true" {
		t.Fatalf("node %v, error %v: want it registered", node.Labels, err)
	}
	if err := s.server.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	s.run(Claims, claim.Name)
	s.run(Nodes, claim.Name)
	s.run(Nodes, claim.Name) // the first one waits for schedulers to see its taint
	s.run(Claims, claim.Name)
	if err := s.server.Get(t.Context(), types.NamespacedName{Name: claim.Name},
		&karpenterv1.NodeClaim{}); !apierrors.IsNotFound(err) {
		t.Fatalf("error %v: want the claim gone", err)
	}
}

// P-40: the controller of claims takes a step at the start, before there is any claim: what is made after that no
// process before can have launched.
func TestTheControllerOfClaimsBeginsAtTheStart(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	at := slices.IndexFunc(s.parts.Controllers, func(c kube.Controller) bool { return c.Name == Claims })
	if at < 0 || !s.parts.Controllers[at].Start {
		t.Fatal("it waits for the first claim")
	}
	if _, err := s.parts.Controllers[at].Reconciler.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Error(err)
	}
}

// P-25, P-31: who is woken by what; the store is told first.
func TestTheFeedWakesWhomItConcerns(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	take := func() []string { woken := s.woken; s.woken = nil; return woken }
	s.parts.Feed.Apply(pending("web"))
	if got := take(); !slices.Contains(got, Provisioning) {
		t.Errorf("a pending pod wakes %v", got)
	}
	failed := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c"}}
	s.parts.Feed.Apply(failed)
	take()
	s.parts.Feed.Remove(failed)
	if got := take(); !slices.Contains(got, Provisioning) || !slices.Contains(got, Disruption) {
		t.Errorf("a claim that failed wakes %v", got)
	}
	if result := s.run(Provisioning, ""); result.RequeueAfter <= time.Second {
		t.Errorf("planning waits %s for a batch although a claim has failed", result.RequeueAfter)
	}
	claim := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c1"}, Status: karpenterv1.NodeClaimStatus{
		NodeName: "n1",
	}}
	if err := s.server.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if err := s.server.Status().Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	bound := pending("web")
	bound.Spec.NodeName = "n1"
	s.parts.Feed.Apply(bound)
	if got := take(); !slices.Contains(got, Claims+" c1") {
		t.Errorf("a pod that came to a node wakes %v, want its claim", got)
	}
}

// P-01, P-25: a pod that kube-scheduler has not tried wakes planning later, since it may be bound in a moment. Once
// another one of its queue is passed over, planning is woken at once, and for such pods too. The plan has all of them.
func TestAPodThatWasNotTriedWakesPlanningLater(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	idle := DefaultConfig().BatchIdleDuration
	untried := func(name string, priority int32) *corev1.Pod {
		pod := pending(name)
		pod.Status.Conditions, pod.Spec.Priority = nil, &priority
		return pod
	}
	gated := untried("gated", 0)
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}}
	for _, row := range []struct {
		pod     *corev1.Pod
		after   time.Duration
		pending int
	}{
		{untried("a", 0), idle, 0}, {gated, 0, 0}, {pending("b"), 0, 2}, {untried("c", 0), 0, 3},
		{untried("d", 7), idle, 3},
	} {
		s.delays = nil
		s.parts.Feed.Apply(row.pod)
		if want := []time.Duration{row.after}; !slices.Equal(s.delays, want) {
			t.Errorf("%s wakes planning after %v, want %v", row.pod.Name, s.delays, want)
		}
		if got := len(s.store.Snapshot().Pending); got != row.pending {
			t.Errorf("after %s %d pods are planned for, want %d", row.pod.Name, got, row.pending)
		}
	}
}

func TestInParallelCallsEachOnce(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 9, 100} {
		calls := make([]int, n)
		inParallel(n, func(i int) { calls[i]++ })
		if slices.ContainsFunc(calls, func(c int) bool { return c != 1 }) {
			t.Errorf("of %d: %v", n, calls)
		}
	}
}
