package disruption_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/disruption"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// rig is the real store and the real applier over an API server in memory; sync is the watch.
type rig struct {
	server   client.WithWatch
	store    *world.Store
	clock    *controllertest.Clock
	tape     *controllertest.Tape
	step     *disruption.Controller
	registry *prometheus.Registry
	off      world.Off // what the next process leaves out
	patch    func() error
}

func newRig(t *testing.T, objects ...client.Object) *rig {
	t.Helper()
	r := &rig{server: controllertest.NewServer(t, objects...).Build(), clock: controllertest.NewClock(),
		tape: &controllertest.Tape{}}
	r.clock.Advance(time.Hour)
	r.restart()
	r.sync(t)
	return r
}

// restart is a new process: only the API objects are left.
func (r *rig) restart() {
	r.store = world.New(world.Config{Now: r.clock.Now, Off: r.off})
	r.over(r.server)
}

// over connects the controller to that API server and keeps its store. change changes its configuration.
func (r *rig) over(server client.WithWatch, change ...func(*disruption.Config)) {
	applier := apply.New(apply.Config{Client: server, Live: server, Store: r.store, Fleet: controllertest.Everything{},
		Now: r.clock.Now, Log: logr.Discard()})
	r.registry = prometheus.NewRegistry()
	set := metrics.New(r.registry)
	config := disruption.Config{
		Client: server, Live: server, Picture: r.store, Applier: applier, Fleet: controllertest.Everything{},
		Events: r.tape, Metrics: set, Namespace: "kube-system",
		Ready: func() bool { return true }, Leave: func([]*cluster.Pod) {}, Now: r.clock.Now, Log: logr.Discard(),
	}
	for _, c := range change {
		c(&config)
	}
	r.step = disruption.New(config)
}

func (r *rig) sync(t *testing.T) {
	t.Helper()
	for _, list := range []client.ObjectList{&karpenterv1.NodePoolList{}, &karpenterv1.NodeClaimList{},
		&corev1.NodeList{}, &corev1.PodList{}} {
		if err := r.server.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, object := range items(list) {
			if err := r.store.Apply(object); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func items(list client.ObjectList) []client.Object {
	var objects []client.Object
	switch list := list.(type) {
	case *karpenterv1.NodePoolList:
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	case *karpenterv1.NodeClaimList:
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	case *corev1.NodeList:
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	case *corev1.PodList:
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	}
	return objects
}

func (r *rig) reconcile(t *testing.T) reconcile.Result {
	t.Helper()
	result, err := r.step.Reconcile(t.Context(), reconcile.Request{})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// claims counts the claims that are not deleted.
func (r *rig) claims(t *testing.T) (all, marked int) {
	t.Helper()
	var list karpenterv1.NodeClaimList
	if err := r.server.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Items {
		if c.DeletionTimestamp != nil {
			continue // its controller does the rest
		}
		if all++; condition.IsTrue(c.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason) {
			marked++
		}
	}
	return all, marked
}

func (r *rig) tainted(t *testing.T, name string) bool {
	t.Helper()
	var n corev1.Node
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, &n); err != nil {
		t.Fatal(err)
	}
	return len(n.Spec.Taints) > 0
}

func newPool(budget string) *karpenterv1.NodePool {
	after := 30 * time.Second
	return &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "p"},
		Spec: karpenterv1.NodePoolSpec{
			Template: karpenterv1.NodeClaimTemplate{Spec: karpenterv1.NodeClaimTemplateSpec{
				NodeClassRef: &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass",
					Name: "default"},
			}},
			Disruption: karpenterv1.Disruption{
				ConsolidateAfter:    karpenterv1.NillableDuration{Duration: &after},
				ConsolidationPolicy: karpenterv1.ConsolidationPolicyWhenEmpty,
				Budgets:             []karpenterv1.Budget{{Nodes: intstr.FromString(budget)}},
			},
		}}
}

// machine is an initialized node with its claim, quiet for most of an hour.
func machine(name string) (*corev1.Node, *karpenterv1.NodeClaim) {
	labels := map[string]string{karpenterv1.NodePoolLabelKey: "default", karpenterv1.NodeRegisteredLabelKey: "true",
		karpenterv1.NodeInitializedLabelKey: "true"}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("n-" + name), Labels: labels},
		Spec:       corev1.NodeSpec{ProviderID: "kwok://" + name},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	claim := &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("c-" + name),
			Finalizers: []string{karpenterv1.TerminationFinalizer},
			Labels:     map[string]string{karpenterv1.NodePoolLabelKey: "default"}},
		Spec: karpenterv1.NodeClaimSpec{NodeClassRef: &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh",
			Kind: "KWOKNodeClass", Name: "default"}},
		Status: karpenterv1.NodeClaimStatus{NodeName: name, ProviderID: "kwok://" + name},
	}
	for _, kind := range []string{karpenterv1.ConditionTypeLaunched, karpenterv1.ConditionTypeRegistered,
		karpenterv1.ConditionTypeInitialized} {
		condition.Set(&claim.Status.Conditions, 0, condition.True(kind, kind, ""), controllertest.Start())
	}
	return n, claim
}

func fleet(budget string, names ...string) []client.Object {
	objects := []client.Object{newPool(budget)}
	for _, name := range names {
		n, claim := machine(name)
		objects = append(objects, n, claim)
	}
	return objects
}

func podOn(node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "p"},
		Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
}

// D-10: one step writes the intent, a later one, which sees it, deletes.
func TestAnEmptyNodeIsMarkedAndThenRemoved(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleet("100%", "a", "b")...)
	if err := r.server.Create(t.Context(), podOn("b")); err != nil {
		t.Fatal(err)
	}
	r.sync(t)
	r.reconcile(t)
	if all, marked := r.claims(t); all != 2 || marked != 1 || !r.tainted(t, "a") || r.tainted(t, "b") {
		t.Fatalf("%d claims, %d marked: want the empty one marked and none deleted", all, marked)
	}
	r.sync(t)
	r.reconcile(t)
	if all, _ := r.claims(t); all != 1 {
		t.Fatalf("%d claims, want the empty one deleted", all)
	}
}

// D-09: a pod that came in between cancels that removal only.
func TestAPodThatCameMeanwhileCancels(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleet("100%", "a", "b")...)
	r.reconcile(t)
	if err := r.server.Create(t.Context(), podOn("a")); err != nil {
		t.Fatal(err)
	}
	r.sync(t)
	r.reconcile(t)
	all, marked := r.claims(t)
	if all != 1 || marked != 0 || r.tainted(t, "a") {
		t.Fatalf("%d claims, %d marked: want a untouched again and b deleted", all, marked)
	}
	if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, "a DisruptionCancelled") {
		t.Fatalf("said %s", said)
	}
}

// D-08: the budget counts what is under way too, and the pool reports what it blocks.
func TestTheBudgetIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleet("1", "a", "b", "c")...)
	r.reconcile(t)
	r.reconcile(t) // on an old picture: the watch has not shown the intent yet
	if _, marked := r.claims(t); marked != 1 {
		t.Fatalf("%d marked, want one at a time", marked)
	}
	if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, "default DisruptionBlocked: BudgetUsedUp: "+
		"the budgets of NodePool default allow 1 at a time for the reason Empty, and 1 are going") ||
		!strings.Contains(said, " Empty nodes that stay: 2.") {
		t.Fatalf("said %s", said)
	}
}

// Intents beyond the budget are taken back, whether from two controllers or from before the budget shrank.
func TestIntentsBeyondTheBudgetAreTakenBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleet("100%", "a", "b", "c")...)
	r.reconcile(t)
	var pool karpenterv1.NodePool
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, &pool); err != nil {
		t.Fatal(err)
	}
	pool.Spec.Disruption.Budgets[0].Nodes = intstr.FromString("1")
	if err := r.server.Update(t.Context(), &pool); err != nil {
		t.Fatal(err)
	}
	r.sync(t)
	r.reconcile(t)
	if all, marked := r.claims(t); all != 2 || marked != 0 {
		t.Fatalf("%d claims, %d marked: want one deleted and two left alone", all, marked)
	}
}

// D-10: a restart goes on from the objects, wherever the last process stopped.
func TestARestartGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleet("100%", "a")...)
	r.reconcile(t)
	r.restart()
	r.sync(t)
	r.reconcile(t)
	if all, _ := r.claims(t); all != 0 {
		t.Fatalf("%d claims, want the marked one deleted", all)
	}
}

// P-40: a claim from which somebody took our finalizer waits until it is back: its machine would stay.
func TestAClaimWithoutItsFinalizerIsNotDeletedYet(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleet("100%", "a")...)
	r.reconcile(t)
	var claim karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), client.ObjectKey{Name: "a"}, &claim); err != nil {
		t.Fatal(err)
	}
	for _, held := range []bool{false, true} {
		claim.Finalizers = nil
		if held {
			claim.Finalizers = []string{karpenterv1.TerminationFinalizer}
		}
		if err := r.server.Update(t.Context(), &claim); err != nil {
			t.Fatal(err)
		}
		r.sync(t)
		r.reconcile(t)
		if all, marked := r.claims(t); all != marked || (all == 0) != held {
			t.Fatalf("with its finalizer %t: %d claims, %d marked", held, all, marked)
		}
	}
}

func TestHalfAnIntentIsCompletedBeforeTheDeletion(t *testing.T) {
	t.Parallel()
	objects := fleet("100%", "a")
	claim := objects[2].(*karpenterv1.NodeClaim)
	condition.Set(&claim.Status.Conditions, 0, condition.True(karpenterv1.ConditionTypeDisruptionReason,
		string(plan.Empty), ""), controllertest.Start())
	r := newRig(t, objects...)
	r.reconcile(t)
	if all, _ := r.claims(t); all != 1 || !r.tainted(t, "a") {
		t.Fatalf("%d claims, tainted %t: want the taint first", all, r.tainted(t, "a"))
	}
}

// P-34: what another program left behind, a taint without a reason, is taken off.
func TestATaintWithoutAReasonIsTakenOff(t *testing.T) {
	t.Parallel()
	objects := append(fleet("0", "a"), podOn("a"))
	n := objects[1].(*corev1.Node)
	n.Spec.Taints = []corev1.Taint{{Key: karpenterv1.DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}}
	r := newRig(t, objects...)
	if r.reconcile(t); r.tainted(t, "a") {
		t.Fatal("the taint must go")
	}
}

// D-02, V-15: do-not-disrupt protects, and the claim says so.
func TestAProtectedNodeStaysAndSaysWhy(t *testing.T) {
	t.Parallel()
	objects := fleet("100%", "a")
	objects[1].SetAnnotations(map[string]string{karpenterv1.DoNotDisruptAnnotationKey: "true"})
	r := newRig(t, objects...)
	r.reconcile(t)
	if _, marked := r.claims(t); marked != 0 {
		t.Fatal("a protected node must not be marked")
	}
	if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said,
		"a DisruptionBlocked: DoNotDisruptNode: karpenter.sh/do-not-disrupt") {
		t.Fatalf("said %s", said)
	}
}

// V-07: a schedule that cannot be read protects.
func TestAnUnreadableBudgetProtectsAndIsTold(t *testing.T) {
	t.Parallel()
	objects := fleet("100%", "a")
	schedule, duration := "whenever", karpenterv1.Duration{Duration: time.Hour}
	pool := objects[0].(*karpenterv1.NodePool)
	pool.Spec.Disruption.Budgets = append(pool.Spec.Disruption.Budgets,
		karpenterv1.Budget{Nodes: intstr.FromString("5"), Schedule: &schedule, Duration: &duration})
	r := newRig(t, objects...)
	r.reconcile(t)
	if _, marked := r.claims(t); marked != 0 {
		t.Fatal("nothing may be disrupted")
	}
	if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, "whenever") {
		t.Fatalf("said %s", said)
	}
}

func TestTheQuietTimeIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleet("100%", "a")...)
	r.clock.Advance(-time.Hour + 10*time.Second)
	r.restart()
	r.sync(t)
	if result := r.reconcile(t); result.RequeueAfter != 20*time.Second {
		t.Fatalf("looks again after %s, want when 30s have passed since the node was initialized", result.RequeueAfter)
	}
	if _, marked := r.claims(t); marked != 0 {
		t.Fatal("too early")
	}
}

var _ disruption.Applier = (*apply.Applier)(nil)
