package claim_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// P-30: launched, registered, initialized; and how few requests that takes.
func TestAClaimBecomesANode(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	r.reconcile(t)
	c := r.claim(t)
	if r.is(t, karpenterv1.ConditionTypeLaunched) != "True" || c.Status.ProviderID != "fake://u1" ||
		c.Labels[corev1.LabelTopologyZone] != "a" || r.writes != 2 {
		t.Fatalf("claim %+v after %d writes: want it launched with two, labels and status", c.Status, r.writes)
	}
	if err := r.server.Create(t.Context(), joined()); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t)
	n := r.node(t)
	if r.is(t, karpenterv1.ConditionTypeRegistered) != "True" ||
		r.is(t, karpenterv1.ConditionTypeInitialized) != "Unknown" || r.writes != 4 {
		t.Fatalf("conditions %+v after %d writes: want it registered with two more", r.claim(t).Status.Conditions,
			r.writes)
	}
	has := func(key string) bool {
		return slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == key })
	}
	if has(karpenterv1.UnregisteredTaintKey) || !has("team") || !has("boot") || n.Labels["team"] != "a" ||
		n.Labels[karpenterv1.NodeRegisteredLabelKey] != "true" ||
		!slices.Contains(n.Finalizers, karpenterv1.TerminationFinalizer) || len(n.OwnerReferences) != 1 ||
		n.OwnerReferences[0].UID != "u1" {
		t.Fatalf("node %+v %+v: want the claim's labels, taints, finalizer and owner on it", n.ObjectMeta,
			n.Spec.Taints)
	}
	r.makeReady(t)
	r.reconcile(t)
	if r.is(t, karpenterv1.ConditionTypeInitialized) != "True" || r.is(t, karpenterv1.ConditionTypeReady) != "True" ||
		r.node(t).Labels[karpenterv1.NodeInitializedLabelKey] != "true" {
		t.Fatalf("conditions %+v: want it initialized and ready", r.claim(t).Status.Conditions)
	}
	before := r.writes
	if r.reconcile(t); r.writes != before || r.cloud.launches != 1 {
		t.Fatalf("%d writes and %d launches: a step with nothing to do must do nothing", r.writes-before,
			r.cloud.launches)
	}
}

// A node that is ready when it is first seen is registered and initialized by one patch.
func TestAReadyNodeTakesOnePatch(t *testing.T) {
	t.Parallel()
	c := newClaim()
	c.Spec.StartupTaints = nil
	r := newRig(t, c)
	r.reconcile(t)
	if err := r.server.Create(t.Context(), joined()); err != nil {
		t.Fatal(err)
	}
	r.makeReady(t)
	before := r.writes
	r.reconcile(t)
	if r.is(t, karpenterv1.ConditionTypeReady) != "True" || r.writes-before != 2 {
		t.Fatalf("ready %s after %d writes, want True after one of the node and one of the claim",
			r.is(t, karpenterv1.ConditionTypeReady), r.writes-before)
	}
}

func TestWhatIsMissingForInitializationIsNamed(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*corev1.Node){
		"is not ready": func(n *corev1.Node) { n.Status.Conditions = nil },
		"startup taint boot": func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "boot", Effect: corev1.TaintEffectNoSchedule})
		},
		"taint node.kubernetes.io/network-unavailable": func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeNetworkUnavailable,
				Effect: corev1.TaintEffectNoSchedule})
		},
		"does not offer [cpu]": func(n *corev1.Node) { n.Status.Allocatable = nil },
	} {
		r := newRig(t, newClaim(), joined())
		r.reconcile(t)
		r.makeReady(t)
		n := r.node(t)
		spoil(n)
		r.put(t, n)
		writes, named := r.writes, want == "is not ready" // which is what it lacked first
		if result := r.reconcile(t); r.writes != writes || result.RequeueAfter > 5*time.Second && !named {
			t.Errorf(
				"%d writes, again after %s: want none for what a young node lacks, and a look once it should be ready",
				r.writes-writes, result.RequeueAfter)
		}
		r.clock.Advance(5 * time.Second)
		r.reconcile(t)
		i := slices.IndexFunc(r.claim(t).Status.Conditions, func(c karpenterv1.Condition) bool {
			return c.Type == karpenterv1.ConditionTypeInitialized
		})
		if got := r.claim(t).Status.Conditions[i]; got.Status == "True" || !strings.Contains(got.Message, want) {
			t.Errorf("Initialized=%s %q, want it to say %q", got.Status, got.Message, want)
		}
	}
}

// P-31: insufficient capacity ends the claim at once, and planning learns what was found out before its pods come
// back.
func TestInsufficientCapacityGivesTheClaimUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	r.older(t)
	r.cloud.failure = &provider.InsufficientCapacityError{
		Asked: "m", Tried: []provider.Offering{{Type: "m", Zone: "a", CapacityType: "spot"}},
	}
	r.reconcile(t)
	if c := r.claim(t); c.DeletionTimestamp == nil || r.catalogs.told != 1 {
		t.Fatalf("deleted %v, planning told %d times: want it deleted and planning told", c.DeletionTimestamp,
			r.catalogs.told)
	}
	for _, kind := range []string{karpenterv1.ConditionTypeLaunched, karpenterv1.ConditionTypeReady} {
		if got, _ := condition.Get(r.claim(t).Status.Conditions, kind); got.Status != "False" ||
			got.Reason != "InsufficientCapacity" {
			t.Errorf("%s is %s (%s), want False (InsufficientCapacity)", kind, got.Status, got.Reason)
		}
	}
	if said := r.tape.Said(); len(said) != 1 || !strings.Contains(said[0], "InsufficientCapacityError") ||
		!strings.Contains(said[0], "m/a/spot") {
		t.Fatalf("said %q, want the offering named", said)
	}
	if r.reconcile(t); r.claim(t) != nil {
		t.Fatal("without an instance nothing holds the claim back")
	}
}

func TestALaunchThatFailsForItselfIsTriedAgainUntilTheTimeout(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	r.cloud.failure = &provider.LaunchError{ConditionReason: "NoSubnet", Message: "no subnet is left"}
	if result := r.reconcile(t); result.RequeueAfter == 0 || r.is(t, karpenterv1.ConditionTypeLaunched) != "False" {
		t.Fatalf("result %+v: want a condition and another try", result)
	}
	r.clock.Advance(5 * time.Minute)
	if r.reconcile(t); r.claim(t).DeletionTimestamp == nil {
		t.Fatal("after the launch timeout the claim must go")
	}
}

// An unknown failure says nothing about the instance: the step is repeated as it was.
func TestAnUnknownFailureOfTheLaunchIsAnError(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	r.cloud.failure = errors.New("connection reset")
	if _, err := r.step.Reconcile(t.Context(),
		reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}}); err == nil ||
		r.claim(t).DeletionTimestamp != nil {
		t.Fatalf("error %v: want it returned and the claim kept", err)
	}
}

// P-30: each stage has its timeout, its reason and an event.
func TestEachStageTimesOut(t *testing.T) {
	t.Parallel()
	for reason, after := range map[string]time.Duration{"RegistrationTimeout": 15 * time.Minute,
		"InitializationTimeout": time.Hour} {
		r := newRig(t, newClaim())
		r.reconcile(t)
		if reason == "InitializationTimeout" {
			if err := r.server.Create(t.Context(), joined()); err != nil {
				t.Fatal(err)
			}
			r.reconcile(t)
		}
		r.clock.Advance(after - time.Second)
		if result := r.reconcile(t); r.claim(t).DeletionTimestamp != nil || result.RequeueAfter != time.Second {
			t.Fatalf("%s: too early, or again after %s instead of 1s", reason, result.RequeueAfter)
		}
		r.clock.Advance(time.Second)
		r.reconcile(t)
		found := slices.ContainsFunc(r.claim(t).Status.Conditions, func(c karpenterv1.Condition) bool {
			return c.Reason == reason && c.Status == "False"
		})
		if r.claim(t).DeletionTimestamp == nil || !found {
			t.Fatalf("%s: deleted %v, conditions %+v", reason, r.claim(t).DeletionTimestamp,
				r.claim(t).Status.Conditions)
		}
	}
}

// D-07: expiration asks neither budgets nor annotations.
func TestAClaimExpires(t *testing.T) {
	t.Parallel()
	c := newClaim()
	lifetime := time.Hour
	c.Spec.ExpireAfter = karpenterv1.NillableDuration{Duration: &lifetime}
	c.Annotations = map[string]string{karpenterv1.DoNotDisruptAnnotationKey: "true"}
	r := newRig(t, c, joined())
	r.reconcile(t)
	r.makeReady(t)
	if result := r.reconcile(t); result.RequeueAfter != time.Hour {
		t.Fatalf("looks again after %s, want 1h", result.RequeueAfter)
	}
	r.clock.Advance(time.Hour)
	if r.reconcile(t); r.claim(t).DeletionTimestamp == nil || r.is(t, karpenterv1.ConditionTypeExpired) != "True" {
		t.Fatal("the claim must be deleted, with the condition Expired")
	}
}

// D-07: a pool may ask for its expired nodes to be replaced within its budgets: then the claim is only marked, until
// the pool changes its mind.
func TestAClaimExpiresGracefullyWhenItsPoolAsks(t *testing.T) {
	t.Parallel()
	c := newClaim()
	lifetime := time.Hour
	c.Spec.ExpireAfter = karpenterv1.NillableDuration{Duration: &lifetime}
	pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{
		Name: c.Labels[karpenterv1.NodePoolLabelKey], Annotations: map[string]string{
			karpenterv1.GracefulExpirationAnnotationKey: "true",
		},
	}}
	pool.Spec.Template.Spec.NodeClassRef = c.Spec.NodeClassRef
	r := newRig(t, c, joined())
	if err := r.server.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t)
	r.makeReady(t)
	r.reconcile(t)
	r.clock.Advance(time.Hour)
	for range 2 {
		if r.reconcile(t); r.claim(t).DeletionTimestamp != nil || r.is(t, karpenterv1.ConditionTypeExpired) != "True" {
			t.Fatal("the claim must stay, with the condition Expired")
		}
	}
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: pool.Name}, pool); err != nil {
		t.Fatal(err)
	}
	pool.Annotations = nil
	if err := r.server.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if r.reconcile(t); r.claim(t).DeletionTimestamp == nil {
		t.Fatal("the claim must be deleted once its pool does not ask any more")
	}
}

// P-33: a claim made by hand, without finalizer and pool, is launched like any other.
func TestAClaimMadeByHandGetsOurFinalizerBeforeItsInstance(t *testing.T) {
	t.Parallel()
	c := newClaim()
	c.Finalizers, c.Labels = nil, nil
	r := newRig(t, c)
	r.reconcile(t)
	if c := r.claim(t); !slices.Contains(c.Finalizers, karpenterv1.TerminationFinalizer) || c.Status.ProviderID == "" {
		t.Fatalf("finalizers %v, provider ID %q", c.Finalizers, c.Status.ProviderID)
	}
}

func TestAClaimOfAnotherProviderIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := newClaim()
	c.Spec.NodeClassRef.Kind = "EC2NodeClass"
	r := newRig(t, c)
	if r.reconcile(t); r.cloud.launches != 0 || r.writes != 0 {
		t.Fatalf("%d launches, %d writes: want none", r.cloud.launches, r.writes)
	}
}

// P-40: node first, then the instance until it is proved gone, then the finalizer.
func TestADeletedClaimGoesInOrder(t *testing.T) {
	t.Parallel()
	c := newClaim()
	c.Spec.TerminationGracePeriod = &karpenterv1.Duration{Duration: time.Minute}
	r := newRig(t, c)
	r.cloud.slow = true
	r.reconcile(t)
	n := joined()
	n.Finalizers = []string{karpenterv1.TerminationFinalizer}
	if err := errors.Join(r.server.Create(t.Context(), n), r.server.Delete(t.Context(), r.claim(t))); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t)
	if r.node(t).DeletionTimestamp == nil || len(r.cloud.machines) != 1 ||
		r.claim(t).Annotations[karpenterv1.NodeClaimTerminationTimestampAnnotationKey] == "" {
		t.Fatal("first the node is deleted and the deadline written down; the instance stays")
	}
	gone := r.node(t)
	gone.Finalizers = nil
	if err := r.server.Update(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if result := r.reconcile(t); result.RequeueAfter == 0 ||
		r.is(t, karpenterv1.ConditionTypeInstanceTerminating) != "True" {
		t.Fatal("the instance is terminating: ask again")
	}
	if r.reconcile(t); r.claim(t) != nil || len(r.cloud.machines) != 0 {
		t.Fatal("the instance is gone, the claim must go")
	}
}

// P-32: the claim was deleted when the launch had happened and nothing of it was written yet.
func TestAClaimDeletedDuringItsLaunchLeavesNoInstance(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	if _, err := r.cloud.Launch(t.Context(), r.claim(t), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := r.server.Delete(t.Context(), r.claim(t)); err != nil {
		t.Fatal(err)
	}
	if r.reconcile(t); r.claim(t) != nil || len(r.cloud.machines) != 0 {
		t.Fatalf("claim %v, machines %v: want neither left", r.claim(t), r.cloud.machines)
	}
}

// P-32: a node that had joined and its instance are both gone.
func TestAClaimGoesWithItsInstance(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim(), joined())
	r.reconcile(t)
	n := r.node(t)
	n.Finalizers = nil // by force
	r.put(t, n)
	if err := r.server.Delete(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if r.reconcile(t); r.claim(t).DeletionTimestamp != nil {
		t.Fatal("the instance still runs: the claim stays")
	}
	clear(r.cloud.machines)
	if r.reconcile(t); r.claim(t).DeletionTimestamp == nil {
		t.Fatal("the instance is gone: the claim must go")
	}
}

// P-32: both ways, and not before the grace of young instances has passed.
func TestGarbageIsCollectedBothWays(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	r.reconcile(t)
	orphan := provider.Instance{ProviderID: "fake://orphan", ClaimName: "gone", ClaimUID: "gone",
		Launched: controllertest.Start()}
	clear(r.cloud.machines)
	r.cloud.machines[orphan.ProviderID] = orphan
	collector := claim.NewCollector(r.config)
	collect := func() {
		if _, err := collector.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	if collect(); len(r.cloud.machines) != 1 || r.claim(t).DeletionTimestamp != nil {
		t.Fatal("what is young must not be judged")
	}
	r.clock.Advance(time.Minute)
	if collect(); len(r.cloud.machines) != 0 || r.claim(t).DeletionTimestamp == nil {
		t.Fatalf("machines %v, claim deleted %v: want both collected", r.cloud.machines, r.claim(t).DeletionTimestamp)
	}
}

func TestAnInstanceOfAClaimTheCacheHasNotSeenIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	r.reconcile(t)
	r.clock.Advance(time.Minute)
	config := r.config
	config.Client = newRig(t).server // a cache that knows nothing yet
	if _, err := claim.NewCollector(config).Reconcile(t.Context(), reconcile.Request{}); err != nil ||
		len(r.cloud.machines) != 1 {
		t.Fatalf("machines %v, error %v: want the instance kept", r.cloud.machines, err)
	}
}

// D-03: the stamp is written at most every 10 s, and never lost; consolidateAfter counts from it.
func TestPodEventsAreStampedAndStartTheQuietTime(t *testing.T) {
	t.Parallel()
	after := 30 * time.Second
	pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: karpenterv1.NodePoolSpec{
		Disruption: karpenterv1.Disruption{ConsolidateAfter: karpenterv1.NillableDuration{Duration: &after}},
	}}
	r := newRig(t, newClaim(), joined(), pool)
	r.reconcile(t)
	r.makeReady(t)
	r.reconcile(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "p"}, Spec: corev1.PodSpec{NodeName: "n1"}}
	r.clock.Advance(time.Minute)
	r.events.Apply(pod, r.clock.Now())
	r.reconcile(t)
	first := r.claim(t).Status.LastPodEventTime
	if !first.Time.Equal(r.clock.Now()) || r.is(t, karpenterv1.ConditionTypeConsolidatable) == "True" {
		t.Fatalf("stamp %v, want now and the quiet time begun", first)
	}
	r.clock.Advance(4 * time.Second)
	r.events.Remove(pod, r.clock.Now())
	if result := r.reconcile(t); r.claim(t).Status.LastPodEventTime != first || result.RequeueAfter != 6*time.Second {
		t.Fatalf("stamp %v, again after %s: want it written 6 s later", r.claim(t).Status.LastPodEventTime,
			result.RequeueAfter)
	}
	r.clock.Advance(6 * time.Second)
	r.reconcile(t)
	if got := r.claim(t).Status.LastPodEventTime.Time; !got.Equal(first.Add(4 * time.Second)) {
		t.Fatalf("stamp %v, want when the pod went", got)
	}
	r.clock.Advance(24 * time.Second)
	if result := r.reconcile(t); r.is(t, karpenterv1.ConditionTypeConsolidatable) == "True" ||
		result.RequeueAfter != 2*time.Second {
		t.Fatalf("again after %s: want the decision to come first", result.RequeueAfter)
	}
	r.clock.Advance(2 * time.Second)
	if r.reconcile(t); r.is(t, karpenterv1.ConditionTypeConsolidatable) != "True" {
		t.Fatal("30 s after the last event the node may be consolidated")
	}
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, pool); err != nil {
		t.Fatal(err)
	}
	pool.Spec.Disruption.ConsolidateAfter.Duration = new(time.Duration(0))
	if err := r.server.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	r.clock.Advance(time.Minute)
	r.events.Apply(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "q"}, Spec: corev1.PodSpec{NodeName: "n1"}},
		r.clock.Now())
	if result := r.reconcile(t); r.is(t, karpenterv1.ConditionTypeConsolidatable) != "True" ||
		result.RequeueAfter > 0 && result.RequeueAfter <= 2*time.Second {
		t.Fatal("without a quiet time a pod that comes must not switch the condition off and on")
	}
}
