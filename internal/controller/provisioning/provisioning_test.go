package provisioning_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/provisioning"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

func pendingPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
		}},
	}
}

// P-25: a lone pod waits for the idle time and no longer; a stream of pods for the longest time at most.
func TestTheWindowClosesWhenNoPodComesOrAtTheLatest(t *testing.T) {
	t.Parallel()
	start := controllertest.Start()
	w := provisioning.NewWindow(time.Second, 3*time.Second, nil)
	if w.Wait(start) != 0 {
		t.Fatal("without a pod nothing is waited for")
	}
	w.Apply(pendingPod("a"), start)
	if got := w.Wait(start.Add(400 * time.Millisecond)); got != 600*time.Millisecond {
		t.Fatalf("waits %s more, want 600ms", got)
	}
	w.Apply(pendingPod("a"), start.Add(900*time.Millisecond)) // the scheduler's next try
	if got := w.Wait(start.Add(time.Second)); got != 0 {
		t.Fatalf("waits %s more: the same pod again is no news", got)
	}
	for i, name := range []string{"b", "c", "d", "e"} {
		w.Apply(pendingPod(name), start.Add(time.Duration(i+1)*700*time.Millisecond))
	}
	if got := w.Wait(start.Add(2900 * time.Millisecond)); got != 100*time.Millisecond {
		t.Fatalf("waits %s more, want 100ms until the longest time", got)
	}
	if !w.Close(1) || w.Close(1) || !w.Close(2) {
		t.Fatal("there is something new after new pods or with a new version only")
	}
}

// P-31: pods whose claim has failed do not wait for a batch.
func TestUrgencyEndsTheWait(t *testing.T) {
	t.Parallel()
	w := provisioning.NewWindow(time.Second, 3*time.Second, nil)
	w.Apply(pendingPod("a"), controllertest.Start())
	w.Urge()
	if got := w.Wait(controllertest.Start()); got != 0 {
		t.Fatalf("waits %s, want nothing", got)
	}
}

func TestAPodThatComesBackIsNews(t *testing.T) {
	t.Parallel()
	w := provisioning.NewWindow(time.Second, 3*time.Second, nil)
	w.Apply(pendingPod("a"), controllertest.Start())
	w.Close(1)
	bound := pendingPod("a")
	bound.Spec.NodeName = "n"
	w.Apply(bound, controllertest.Start())
	w.Apply(pendingPod("a"), controllertest.Start())
	if w.Wait(controllertest.Start()) == 0 {
		t.Fatal("a pod that was bound in between opens a window again")
	}
}

// picture shows one pod that no pool can take. meanwhile, if set, happens once, while a snapshot is made.
type picture struct {
	snapshot  *cluster.Snapshot
	meanwhile func()
}

func (p *picture) Snapshot() *cluster.Snapshot {
	if p.meanwhile != nil {
		p.meanwhile()
		p.meanwhile = nil
	}
	return p.snapshot
}

type applier struct {
	begin   error
	plans   []plan.Plan
	outcome apply.Outcome
	err     error
}

func (a *applier) Begin(context.Context) error { return a.begin }

func (a *applier) Apply(_ context.Context, p plan.Plan) (apply.Outcome, error) {
	a.plans = append(a.plans, p)
	return a.outcome, a.err
}

type rig struct {
	picture  *picture
	clock    *controllertest.Clock
	window   *provisioning.Window
	applier  *applier
	tape     *controllertest.Tape
	ready    bool
	told     []string // pools
	learn    func(daemon, pool string, requests resources.Vector)
	release  func(context.Context, []*cluster.Pod)
	registry *prometheus.Registry
	step     *provisioning.Controller
}

func newRig(pods ...*cluster.Pod) *rig {
	r := &rig{picture: &picture{snapshot: cluster.New(cluster.Snapshot{Version: 1, Names: resources.NewSpace().Names(),
		Pending: pods})}, clock: controllertest.NewClock(), window: provisioning.NewWindow(
		time.Second, 3*time.Second, nil), applier: &applier{}, tape: &controllertest.Tape{}, ready: true}
	r.rebuild(provisioning.NewBrake())
	return r
}

func (r *rig) rebuild(brake *provisioning.Brake) {
	r.registry = prometheus.NewRegistry()
	set := metrics.New(r.registry)
	r.step = provisioning.New(provisioning.Config{
		Picture: r.picture, Applier: r.applier, Brake: brake, InVain: set.Pools.InVain,
		Told:   func(pool string) { r.told = append(r.told, pool) },
		Learn:  func(daemon, pool string, requests resources.Vector) { r.learn(daemon, pool, requests) },
		Window: r.window, Events: r.tape, Metrics: set.Plans, Ready: func() bool { return r.ready },
		Release: r.release, Now: r.clock.Now, Log: logr.Discard(),
	})
}

func somePod() *cluster.Pod {
	return &cluster.Pod{UID: "a", Namespace: "default", Name: "a",
		Shape: &cluster.Shape{Namespace: "default", Requests: resources.Vector{100}}}
}

// P-12: a pod that cannot be placed gets an event with the reason; the round is asked for again later.
func TestAPodWithoutAPlaceIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(somePod())
	result, err := r.step.Reconcile(t.Context(), reconcile.Request{})
	if err != nil || len(r.applier.plans) != 1 || result.RequeueAfter == 0 {
		t.Fatalf("plans %d, result %+v, error %v", len(r.applier.plans), result, err)
	}
	if said := r.tape.Said(); len(said) != 1 || !strings.Contains(said[0], "a FailedScheduling") ||
		!strings.Contains(said[0], "there is no NodePool") {
		t.Fatalf("said %q", said)
	}
	if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err != nil || len(r.applier.plans) != 1 {
		t.Fatalf("planned %d times, error %v: an unchanged picture need not be planned again", len(r.applier.plans),
			err)
	}
}

func TestNothingIsPlannedBeforeThePictureIsComplete(t *testing.T) {
	t.Parallel()
	r := newRig(somePod())
	r.ready = false
	result, err := r.step.Reconcile(t.Context(), reconcile.Request{})
	if err != nil || len(r.applier.plans) != 0 || result.RequeueAfter == 0 {
		t.Fatalf("plans %d, result %+v, error %v: want it to wait", len(r.applier.plans), result, err)
	}
}

// K-53: nothing is planned for a limit of the cluster that is not known.
func TestK53_NothingIsPlannedBeforeTheLimitIsKnown(t *testing.T) {
	t.Parallel()
	r := newRig(somePod())
	r.applier.begin = errors.New("the table cannot be read")
	if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); !errors.Is(err, r.applier.begin) ||
		len(r.applier.plans) != 0 {
		t.Fatalf("plans %d, error %v: want none, and what Begin says", len(r.applier.plans), err)
	}
	r.applier.begin = nil
	if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err != nil || len(r.applier.plans) != 1 {
		t.Fatalf("plans %d, error %v: want one when the limit is known", len(r.applier.plans), err)
	}
}

func TestAnOpenWindowIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(somePod())
	r.window.Apply(pendingPod("a"), r.clock.Now())
	result, err := r.step.Reconcile(t.Context(), reconcile.Request{})
	if err != nil || len(r.applier.plans) != 0 || result.RequeueAfter != time.Second {
		t.Fatalf("plans %d, result %+v, error %v: want it to come back in 1s", len(r.applier.plans), result, err)
	}
}

// P-25: a pod that comes while the snapshot is taken opens a window like any other: it is not planned for alone.
func TestAWindowThatOpensMeanwhileIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(somePod())
	r.picture.meanwhile = func() { r.window.Apply(pendingPod("a"), r.clock.Now()) }
	result, err := r.step.Reconcile(t.Context(), reconcile.Request{})
	if err != nil || len(r.applier.plans) != 0 || result.RequeueAfter != time.Second {
		t.Fatalf("plans %d, result %+v, error %v: want it to come back in 1s", len(r.applier.plans), result, err)
	}
	r.clock.Advance(time.Second)
	if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err != nil || len(r.applier.plans) != 1 {
		t.Fatalf("plans %d, error %v: want one when the window closes", len(r.applier.plans), err)
	}
}

// A launch that the applier refused, or failed to make, is planned again even though the snapshot has not changed.
func TestWhatWasNotCarriedOutIsPlannedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(somePod())
	r.applier.outcome = apply.Outcome{Refused: []apply.Refused{{Pool: "default", Why: "nodes 3 of 3"}}}
	if result, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err != nil ||
		result.RequeueAfter != time.Second {
		t.Fatalf("result %+v, error %v", result, err)
	}
	r.applier.outcome, r.applier.err = apply.Outcome{}, errors.New("refused")
	if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err == nil {
		t.Fatal("the error must be returned")
	}
	r.applier.err = nil
	r.clock.Advance(100 * time.Millisecond)
	if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err != nil || len(r.applier.plans) != 3 {
		t.Fatalf("planned %d times, want 3", len(r.applier.plans))
	}
}

// U-10: once the last pod without a place is gone, the gauge says that there is none.
func TestTheGaugeOfPodsWithoutAPlaceGoesBack(t *testing.T) {
	t.Parallel()
	r := newRig(somePod())
	gauge := func() float64 {
		if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
		return controllertest.Count(t, r.registry, "karpenter_scheduler_unschedulable_pods_count")
	}
	if got := gauge(); got != 1 {
		t.Fatalf("%v pods have no place, want 1", got)
	}
	r.picture.snapshot = cluster.New(cluster.Snapshot{Version: 2, Names: resources.NewSpace().Names()})
	if got := gauge(); got != 0 {
		t.Fatalf("%v pods have no place, and none is pending", got)
	}
}

func TestWithoutPendingPodsNothingIsPlanned(t *testing.T) {
	t.Parallel()
	r := newRig()
	if result, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err != nil || result.RequeueAfter != 0 ||
		len(r.applier.plans) != 0 {
		t.Fatalf("result %+v, error %v, plans %d", result, err, len(r.applier.plans))
	}
}

// oneStatic gives the picture a static pool that lacks two nodes.
func (r *rig) oneStatic() {
	index := catalog.NewIndex(catalog.Catalog{Types: []catalog.Type{{
		Name: "t", Capacity: resources.Amounts{"cpu": 4000, "pods": 10}, Offerings: []catalog.Offering{
			{Zone: "a", CapacityType: catalog.Spot, Available: true},
		},
	}}}, resources.NewSpace())
	r.picture.snapshot = cluster.New(cluster.Snapshot{
		Version: 1, Names: r.picture.snapshot.Names, Pending: r.picture.snapshot.Pending,
		Pools: []*cluster.Pool{{Name: "static", Static: true, Replicas: 2, Limits: limit.Unlimited(), Catalog: index,
			FreeSlots: []int{0, 1}}},
	})
}

// D-12: static pools get their nodes without a pod. Pods are planned for on the snapshot with these nodes, and are not
// delayed if the nodes cannot be created.
func TestStaticPoolsComeFirstAndHoldUpNobody(t *testing.T) {
	t.Parallel()
	r := newRig(somePod())
	r.oneStatic()
	r.applier.outcome = apply.Outcome{Launched: []apply.Launched{{Claim: "c", Pool: "static"}}}
	result, err := r.step.Reconcile(t.Context(), reconcile.Request{})
	if err != nil || len(r.applier.plans) != 1 || len(r.applier.plans[0].Launches) != 2 ||
		result.RequeueAfter != time.Second {
		t.Fatalf("plans %+v, result %+v, error %v: want two nodes and nothing else yet", r.applier.plans, result, err)
	}
	for _, trouble := range []*applier{{outcome: apply.Outcome{Refused: []apply.Refused{{Pool: "static"}}}},
		{err: errors.New("refused")}} {
		r.applier.plans, r.applier.outcome, r.applier.err = nil, trouble.outcome, trouble.err
		_, err := r.step.Reconcile(t.Context(), reconcile.Request{})
		if len(r.applier.plans) != 2 || len(r.applier.plans[1].Unplaced) != 1 || (err != nil) != (trouble.err != nil) {
			t.Fatalf("plans %+v, error %v: want the pod planned for too", r.applier.plans, err)
		}
	}
}

// K-55: while it is unknown whether a static pool's nodes come, pods are not planned for as if they did not: a
// commitment would be used twice. That delays them for one round, not for an outage.
func TestPodsWaitForAnAnswerAboutStaticPoolsOnce(t *testing.T) {
	t.Parallel()
	r := newRig(somePod())
	r.oneStatic()
	lacking, complete := r.picture.snapshot, cluster.New(cluster.Snapshot{
		Version: 2, Names: r.picture.snapshot.Names, Pending: r.picture.snapshot.Pending})
	r.applier.outcome, r.applier.err = apply.Outcome{Open: 1}, errors.New("EOF")
	// in the last round but one the nodes exist, and the pod is planned for
	for round, want := range []int{1, 2, 1, 2, 1, 1, 1} {
		r.applier.plans, r.picture.snapshot = nil, lacking
		if round == 5 {
			r.picture.snapshot = complete
		}
		_, err := r.step.Reconcile(t.Context(), reconcile.Request{})
		if len(r.applier.plans) != want || err == nil {
			t.Fatalf("round %d: %d plans, error %v: want %d plans and the error", round, len(r.applier.plans), err,
				want)
		}
		r.clock.Advance(time.Minute)
	}
}

// P-25: while plans cannot be carried out, they are made at growing intervals, however many pods come. A success ends
// that.
func TestPlansThatFailAreMadeLessOften(t *testing.T) {
	t.Parallel()
	r := newRig(somePod())
	step := func() reconcile.Result {
		t.Helper()
		result, err := r.step.Reconcile(t.Context(), reconcile.Request{})
		if !errors.Is(err, r.applier.err) && err != nil {
			t.Fatal(err)
		}
		return result
	}
	r.applier.err = errors.New("10 names for the same pods are in use")
	step()
	for i, want := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond} {
		r.window.Apply(pendingPod(string(rune('b'+i))), r.clock.Now())
		result := step()
		if plans := len(r.applier.plans); result.RequeueAfter != want || plans != i+1 {
			t.Fatalf("after %d failures: %d plans, next after %s; want it after %s", i+1, plans, result.RequeueAfter,
				want)
		}
		r.clock.Advance(want)
		step()
	}
	for range 20 {
		r.clock.Advance(time.Hour)
		step()
	}
	if result := step(); result.RequeueAfter != 10*time.Second {
		t.Errorf("after many failures the next plan comes after %s, want 10s", result.RequeueAfter)
	}
	r.clock.Advance(10 * time.Second)
	r.applier.err = nil
	plans := len(r.applier.plans)
	step()
	r.window.Urge()
	if step(); len(r.applier.plans) != plans+2 {
		t.Errorf("%d plans after one that was carried out, want no wait", len(r.applier.plans)-plans)
	}
}
