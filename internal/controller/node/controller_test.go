package node_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/node"
	"github.com/joiner-autoscaler/joiner/internal/kube/unseen"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// cloud has one machine; it takes so many calls of Terminate until it is gone.
type cloud struct {
	controllertest.Everything
	left  int
	inUse func() bool // of the last Terminate
}

func (c *cloud) Terminate(ctx context.Context, id string, inUse func() bool) (fleet.Fate, error) {
	c.left--
	c.inUse = inUse
	return c.Find(ctx, id)
}

func (c *cloud) Find(context.Context, string) (fleet.Fate, error) {
	if c.left < 0 {
		return fleet.Gone, nil
	}
	return fleet.Unproved, nil
}

type rig struct {
	server  client.WithWatch
	cloud   *cloud
	tape    *controllertest.Tape
	clock   *controllertest.Clock
	step    *node.Controller
	evicted []string
	refuse  map[string]bool // pods whose eviction the API server refuses
	unseen  *unseen.Objects // nil unless a test sets it
}

func newRig(t *testing.T, objects ...client.Object) *rig {
	t.Helper()
	r := &rig{cloud: &cloud{}, tape: &controllertest.Tape{}, clock: controllertest.NewClock(),
		refuse: map[string]bool{}}
	hooks := interceptor.Funcs{SubResourceCreate: func(ctx context.Context, c client.Client, sub string,
		o, _ client.Object, _ ...client.SubResourceCreateOption) error {
		r.evicted = append(r.evicted, o.GetName())
		if r.refuse[o.GetName()] {
			refusal := apierrors.NewTooManyRequests(
				"Cannot evict pod as it would violate the pod's disruption budget.", 0)
			refusal.ErrStatus.Details.Causes = []metav1.StatusCause{
				{Type: policyv1.DisruptionBudgetCause, Message: "it needs more healthy pods"},
			}
			return refusal
		}
		return c.Delete(ctx, o)
	}}
	r.server = controllertest.NewServer(t, objects...).WithInterceptorFuncs(hooks).Build()
	r.fleet(r.cloud)
	return r
}

// fleet makes the controller ask f.
func (r *rig) fleet(f node.Fleet) {
	r.step = node.New(node.Config{
		Client: r.server, Live: r.server, Fleet: f, Events: r.tape, Unseen: r.unseen,
		Metrics: metrics.New(prometheus.NewRegistry()), Now: r.clock.Now, Log: logr.Discard(),
	})
}

func (r *rig) reconcile(t *testing.T) reconcile.Result {
	t.Helper()
	result, err := r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "n1"}})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (r *rig) gone(t *testing.T) bool {
	t.Helper()
	return apierrors.IsNotFound(r.server.Get(t.Context(), types.NamespacedName{Name: "n1"}, &corev1.Node{}))
}

func (r *rig) condition(t *testing.T, kind string) karpenterv1.Condition {
	t.Helper()
	var claim karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "c1"}, &claim); err != nil {
		t.Fatal(err)
	}
	found, _ := condition.Get(claim.Status.Conditions, kind)
	return found
}

func dying() (*corev1.Node, *karpenterv1.NodeClaim) {
	now := metav1.NewTime(controllertest.Start())
	finalizers := []string{karpenterv1.TerminationFinalizer}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1", Finalizers: finalizers, DeletionTimestamp: &now},
		Spec:       corev1.NodeSpec{ProviderID: "kwok://n1"},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	claim := &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "c1", Finalizers: finalizers, DeletionTimestamp: &now},
		Status:     karpenterv1.NodeClaimStatus{ProviderID: "kwok://n1", NodeName: "n1"},
	}
	return n, claim
}

// taint makes a node one that has been tainted for a while.
func taint(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: karpenterv1.DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name),
			Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{NodeName: "n1"},
	}
}

// ready returns a pod that runs and is ready.
func ready(name string) *corev1.Pod {
	p := pod(name)
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

// P-40: a provider that waits with the end of a drained node's machine hears of a pod that comes meanwhile, until the
// deadline of the drain.
func TestP40_APodThatComesToADrainedNode(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	due := controllertest.Start().Add(time.Hour)
	claim.Annotations = map[string]string{
		karpenterv1.NodeClaimTerminationTimestampAnnotationKey: due.Format(time.RFC3339),
	}
	taint(n)
	r := newRig(t, n, claim)
	r.cloud.left = 1
	r.clock.Advance(5 * time.Second)
	r.reconcile(t)
	if r.cloud.inUse == nil || r.cloud.inUse() {
		t.Fatal("an empty node is in use, or nobody can ask")
	}
	late, done, daemon := pod("late"), pod("done"), pod("daemon")
	done.Status.Phase = corev1.PodSucceeded
	daemon.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "agent", Controller: new(true)},
	}
	daemon.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	for _, each := range []struct {
		pod  *corev1.Pod
		want bool
	}{{done, false}, {daemon, false}, {late, true}} {
		if err := r.server.Create(t.Context(), each.pod); err != nil {
			t.Fatal(err)
		}
		if got := r.cloud.inUse(); got != each.want {
			t.Errorf("with pod %s the node is in use: %t, want %t", each.pod.Name, got, each.want)
		}
	}
	r.clock.Advance(time.Hour)
	if r.cloud.inUse() {
		t.Error("past its deadline the node is in use")
	}
}

// P-40: taint and label, drain, instance, finalizer; each step can be seen on the objects.
func TestANodeIsDrainedEndedAndLetGo(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	r := newRig(t, n, claim, pod("a"), pod("b"))
	r.cloud.left = 1
	if result := r.reconcile(t); result.RequeueAfter == 0 || r.gone(t) {
		t.Fatal("the first step must evict and ask to be called again")
	}
	if !slices.Equal(r.evicted, []string{"a", "b"}) {
		t.Fatalf("evicted %v, want a and b", r.evicted)
	}
	var fresh corev1.Node
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "n1"}, &fresh); err != nil {
		t.Fatal(err)
	}
	if len(fresh.Spec.Taints) != 1 || fresh.Spec.Taints[0].Key != karpenterv1.DisruptedTaintKey ||
		fresh.Labels[karpenterv1.ExcludeBalancersLabelKey] != "karpenter" {
		t.Fatalf("taints %v, labels %v: want it cordoned", fresh.Spec.Taints, fresh.Labels)
	}
	r.clock.Advance(5 * time.Second)
	r.reconcile(t) // the instance is terminating
	if r.gone(t) || r.condition(t, karpenterv1.ConditionTypeDrained).Status != "True" ||
		r.condition(t, karpenterv1.ConditionTypeInstanceTerminating).Status != "True" {
		t.Fatal("while the instance is terminating the node stays, and the claim says so")
	}
	if r.reconcile(t); !r.gone(t) {
		t.Fatal("the instance is gone, the node must go")
	}
}

// B-12: a drain that goes on is not written down pod by pod.
func TestADrainThatGoesOnIsWrittenOnce(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	slow := pod("slow")
	slow.Finalizers = []string{"example.com/slow"} // it stays for a while once it is evicted
	r := newRig(t, n, claim, pod("a"), slow)
	result := r.reconcile(t)
	if got := r.condition(t, karpenterv1.ConditionTypeDrained); got.Type != "" ||
		result.RequeueAfter != 2*time.Second {
		t.Errorf("a drain that has just begun is written down: %+v; looks again after %s", got, result.RequeueAfter)
	}
	r.clock.Advance(2 * time.Second)
	r.reconcile(t)
	first := r.condition(t, karpenterv1.ConditionTypeDrained)
	r.reconcile(t)
	if now := r.condition(t, karpenterv1.ConditionTypeDrained); now != first || first.Reason != "Draining" {
		t.Errorf("condition Drained was %+v and is %+v, want it as it was while pods go", first, now)
	}
}

// P-42: the claim says which pod and which PDB, and that waiting will not help.
func TestABlockedDrainNamesPodAndBudget(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-pdb"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{ExpectedPods: 2, DesiredHealthy: 2, CurrentHealthy: 2},
	}
	r := newRig(t, n, claim, ready("a"), ready("b"), budget)
	r.refuse["a"] = true
	r.reconcile(t)
	if !slices.Equal(r.evicted, []string{"a"}) {
		t.Fatalf("asked for %v: a refusal by a budget holds for its other ready pods in that step", r.evicted)
	}
	drained := r.condition(t, karpenterv1.ConditionTypeDrained)
	for _, part := range []string{"default/a", "web-pdb", "can never allow"} {
		if drained.Status != "False" || !strings.Contains(drained.Message, part) {
			t.Errorf("condition Drained=%s %q, want it to say %q", drained.Status, drained.Message, part)
		}
	}
	if said := r.tape.Said(); len(said) == 0 || !strings.Contains(said[0], "n1 FailedDraining") {
		t.Errorf("said %q, want FailedDraining on the node", said)
	}
}

// A node deleted by hand takes its claim along.
func TestADeletedNodeDeletesItsClaim(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	claim.DeletionTimestamp = nil
	r := newRig(t, n, claim, pod("a"))
	r.reconcile(t)
	var fresh karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "c1"}, &fresh); err != nil ||
		fresh.DeletionTimestamp == nil {
		t.Fatalf("claim %v, error %v: want it deleted", fresh.DeletionTimestamp, err)
	}
}

// P-40: not one whose finalizer somebody took off. It would be gone at once, and leave its machine.
func TestADeletedNodeWaitsForTheFinalizerOfItsClaim(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	claim.DeletionTimestamp, claim.Finalizers = nil, nil
	r := newRig(t, n, claim, pod("a"))
	_, err := r.step.Reconcile(t.Context(),
		reconcile.Request{NamespacedName: types.NamespacedName{Name: "n1"}})
	if err == nil || !strings.Contains(err.Error(), "ending deleted node n1: deleting NodeClaim c1: somebody took") {
		t.Errorf("error %v, want one that names both", err)
	}
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "c1"}, claim); err != nil {
		t.Errorf("the claim is gone: %v", err)
	}
}

func TestANodeThatIsNotOursOrNotDeletedIsLeftAlone(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	n.DeletionTimestamp = nil
	r := newRig(t, n, claim, pod("a"))
	if r.reconcile(t); len(r.evicted) != 0 {
		t.Fatal("a node that is not deleted must not be drained")
	}
}

// A node that is not ready and has lost its instance has nobody left who could end its pods.
func TestALostInstanceIsNotDrained(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	n.Status.Conditions[0].Status = corev1.ConditionUnknown
	r := newRig(t, n, claim, pod("a"))
	r.cloud.left = -1
	if r.reconcile(t); !r.gone(t) || len(r.evicted) != 0 {
		t.Fatalf("gone %t, evicted %v: want the node let go without a drain", r.gone(t), r.evicted)
	}
}

// P-40: volumes are waited for, but not those of pods that stay; P-41: nor beyond the deadline.
func TestVolumesAreWaitedForUntilTheDeadline(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	claim.Spec.TerminationGracePeriod = &karpenterv1.Duration{Duration: time.Minute}
	volume, stays := "pv-1", "pv-2"
	attachment := func(name string, pv *string) *storagev1.VolumeAttachment {
		return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: storagev1.VolumeAttachmentSpec{NodeName: "n1", Source: storagev1.VolumeAttachmentSource{
				PersistentVolumeName: pv,
			}}}
	}
	keeper := pod("keeper")
	keeper.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	keeper.Spec.Volumes = []corev1.Volume{
		{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
			ClaimName: "kept",
		}}},
	}
	pvc := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: stays}}
	r := newRig(t, n, claim, attachment("a1", &volume), attachment("a2", &stays), keeper, pvc)
	r.reconcile(t)
	if got := r.condition(t, karpenterv1.ConditionTypeVolumesDetached); r.gone(t) || got.Status != "False" ||
		!strings.Contains(got.Message, "pv-1") || strings.Contains(got.Message, "pv-2") {
		t.Fatalf("gone %t, VolumesDetached=%s %q: want it to wait for pv-1 only", r.gone(t), got.Status, got.Message)
	}
	r.clock.Advance(2 * time.Minute)
	if r.reconcile(t); !r.gone(t) {
		t.Fatal("the deadline ends the wait for volumes")
	}
}
