package claim_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// P-30: a node gets its claim as an owner once, in addition to others. Its label says when it is initialized. A node
// that asks for it does not get the claim's taints.
func TestWhatAdoptionAdds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		owners []types.UID
		taints []string
	}{
		"bare": {func(*corev1.Node) {}, []types.UID{"u1"}, []string{corev1.TaintNodeNotReady, "boot", "team"}},
		"another owner": {func(n *corev1.Node) {
			n.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: "example.com/v1", Kind: "Rack", Name: "r", UID: "rack"},
			}
		}, []types.UID{"rack", "u1"}, []string{corev1.TaintNodeNotReady, "boot", "team"}},
		"adopted already": {func(n *corev1.Node) {
			n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: "c1",
				UID: "u1"}}
		}, []types.UID{"u1"}, []string{corev1.TaintNodeNotReady, "boot", "team"}},
		"keeps its taints": {func(n *corev1.Node) {
			n.Labels = map[string]string{karpenterv1.NodeDoNotSyncTaintsLabelKey: "true"}
		}, []types.UID{"u1"}, []string{corev1.TaintNodeNotReady}},
	} {
		n := joined()
		c.change(n)
		r := newRig(t, newClaim(), n)
		r.reconcile(t)
		got := r.node(t)
		var owners []types.UID
		for _, owner := range got.OwnerReferences {
			owners = append(owners, owner.UID)
		}
		var taints []string
		for _, taint := range got.Spec.Taints {
			taints = append(taints, taint.Key)
		}
		if slices.Sort(taints); !slices.Equal(owners, c.owners) || !slices.Equal(taints, sortedWords(c.taints)) {
			t.Errorf("%s: owners %v, taints %v; want %v, %v", name, owners, taints, c.owners, c.taints)
		}
		if label, found := got.Labels[karpenterv1.NodeInitializedLabelKey]; found {
			t.Errorf("%s: the node is not ready, and its label says that it is initialized: %q", name, label)
		}
	}
}

// P-30: a startup taint that its agent has removed stays off, also if the claim could not be written after the patch
// that opened the node. The claim's other taints come back.
func TestAStartupTaintThatIsGoneStaysGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		owner types.UID
		label string
		taint bool
	}{
		"opened by its claim":    {"u1", "true", false},
		"of an earlier claim":    {"another", "true", true},
		"marked, and not opened": {"u1", "", true},
	} {
		n := joined()
		n.Spec.Taints = nil
		n.Labels = map[string]string{karpenterv1.NodeRegisteredLabelKey: c.label}
		n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: "c1",
			UID: c.owner}}
		r := newRig(t, newClaim(), n)
		r.reconcile(t)
		taints := r.node(t).Spec.Taints
		has := func(key string) bool {
			return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Key == key })
		}
		if has("boot") != c.taint || !has("team") || r.is(t, karpenterv1.ConditionTypeRegistered) != "True" {
			t.Errorf("%s: taints %+v, Registered=%s; want the startup taint %t, and the other one", name, taints,
				r.is(t, karpenterv1.ConditionTypeRegistered), c.taint)
		}
	}
}

func sortedWords(words []string) []string { return slices.Sorted(slices.Values(words)) }

// P-30: a node that has to settle is not registered yet, and the claim says no more than that.
func TestAClaimWhoseNodeSettles(t *testing.T) {
	t.Parallel()
	n := joined()
	n.CreationTimestamp = metav1.NewTime(controllertest.Start())
	r := newRig(t, newClaim(), n)
	r.reconcile(t)
	registered, _ := condition.Get(r.claim(t).Status.Conditions, karpenterv1.ConditionTypeRegistered)
	_, told := condition.Get(r.claim(t).Status.Conditions, karpenterv1.ConditionTypeInitialized)
	if registered.Status != "Unknown" || registered.Reason != "NodeNotFound" || told {
		t.Errorf("conditions %+v", r.claim(t).Status.Conditions)
	}
}

// P-30: a node that was registered by a step whose claim could not be written is not written again.
func TestANodeIsRegisteredByOnePatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	r.reconcile(t)
	r.create(t, joined())
	nodes, fails := 0, true
	r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			options ...client.PatchOption) error {
			if _, node := o.(*corev1.Node); node {
				nodes++
			}
			return c.Patch(ctx, o, p, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			options ...client.SubResourcePatchOption) error {
			if fails {
				return controllertest.ErrRefused
			}
			return c.SubResource(sub).Patch(ctx, o, p, options...)
		},
	})
	r.step = claim.New(r.config)
	if _, err := r.step.Reconcile(t.Context(),
		reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}}); err == nil {
		t.Fatal("the status was written")
	}
	fails = false
	if r.reconcile(t); nodes != 1 || r.is(t, karpenterv1.ConditionTypeRegistered) != "True" {
		t.Errorf("%d patches of the node, Registered=%s; want one, True", nodes, r.is(t,
			karpenterv1.ConditionTypeRegistered))
	}
}

// B-12: a node that its kubelet has written meanwhile is registered by a second patch in the same step, if the cache
// shows the change. The instance is not requested again.
func TestANodeThatChangesDuringItsRegistrationIsRegistered(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	r.reconcile(t)
	r.create(t, joined())
	patches := 0
	r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			options ...client.PatchOption) error {
			if node, is := o.(*corev1.Node); is {
				if patches++; patches == 1 {
					fresh := node.DeepCopy()
					if err := c.Get(ctx, client.ObjectKeyFromObject(node), fresh); err != nil {
						return err
					}
					fresh.Spec.Taints = append(fresh.Spec.Taints,
						corev1.Taint{Key: "others", Effect: corev1.TaintEffectNoSchedule})
					if err := c.Update(ctx, fresh); err != nil {
						return err
					}
					return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Node").GroupKind(), node.Name, nil)
				}
			}
			return c.Patch(ctx, o, p, options...)
		},
	})
	r.step = claim.New(r.config)
	launches := r.cloud.launches
	r.reconcile(t)
	var node corev1.Node
	if err := r.server.Get(t.Context(), client.ObjectKey{Name: joined().Name}, &node); err != nil {
		t.Fatal(err)
	}
	if patches != 2 || r.cloud.launches != launches || r.is(t, karpenterv1.ConditionTypeRegistered) != "True" ||
		!slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == "others" }) {
		t.Errorf(
			"%d patches, %d launches, Registered=%s, taints %+v; want 2, none, True, and the taint of others kept",
			patches, r.cloud.launches-launches, r.is(t, karpenterv1.ConditionTypeRegistered), node.Spec.Taints)
	}
}

// aboutToOpen returns a launched claim whose node has joined and has only the taint of a closed node.
func aboutToOpen(t *testing.T) (*rig, *corev1.Node) {
	t.Helper()
	r, node := newRig(t, newClaim()), joined()
	r.reconcile(t)
	node.Spec.Taints = []corev1.Taint{{Key: karpenterv1.UnregisteredTaintKey, Effect: corev1.TaintEffectNoExecute}}
	r.create(t, node)
	return r, node
}

// B-16: room is kept for pods before the node opens to others, not after.
func TestPlacesAreKeptBeforeTheNodeOpens(t *testing.T) {
	t.Parallel()
	r, node := aboutToOpen(t)
	var kept []string
	r.config.Keep = func(ctx context.Context, claim, name string) time.Duration {
		var now corev1.Node
		if err := r.server.Get(ctx, client.ObjectKey{Name: name}, &now); err != nil {
			t.Error(err)
		}
		kept = append(kept, claim+" on "+name)
		if len(now.Spec.Taints) != 1 {
			t.Errorf("the node has the taints %+v, want it closed still", now.Spec.Taints)
		}
		return 0
	}
	r.step = claim.New(r.config)
	r.reconcile(t)
	r.reconcile(t)
	if want := []string{"c1 on " + node.Name}; !slices.Equal(kept, want) ||
		r.is(t, karpenterv1.ConditionTypeRegistered) != "True" {
		t.Errorf("kept %v, Registered=%s; want %v once, True", kept, r.is(t, karpenterv1.ConditionTypeRegistered),
			want)
	}
}

// B-16: a node that is not to open yet stays closed, and is looked at again after that time.
func TestANodeThatIsNotToOpenYetStaysClosed(t *testing.T) {
	t.Parallel()
	r, _ := aboutToOpen(t)
	closed := func(n *corev1.Node) bool {
		return slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool {
			return taint.Key == karpenterv1.UnregisteredTaintKey
		})
	}
	wait := 200 * time.Millisecond
	r.config.Keep = func(context.Context, string, string) time.Duration { return wait }
	r.step = claim.New(r.config)
	for range 2 {
		if after := r.reconcile(t).RequeueAfter; after != wait || !closed(r.node(t)) ||
			r.is(t, karpenterv1.ConditionTypeRegistered) == "True" {
			t.Fatalf("next look after %s, taints %+v, Registered=%s; want %s, and the node closed", after,
				r.node(t).Spec.Taints, r.is(t, karpenterv1.ConditionTypeRegistered), wait)
		}
	}
	wait = 0
	if r.reconcile(t); closed(r.node(t)) || r.is(t, karpenterv1.ConditionTypeRegistered) != "True" {
		t.Errorf("taints %+v, Registered=%s; want the node open", r.node(t).Spec.Taints,
			r.is(t, karpenterv1.ConditionTypeRegistered))
	}
}

// B-12: the patch that opens a node includes what others wrote while places were kept, so it is not refused.
func TestANodeIsOpenedAsItIsOncePlacesAreKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	r.reconcile(t)
	r.create(t, joined())
	r.config.Keep = func(context.Context, string, string) time.Duration {
		r.makeReady(t)
		return 0
	}
	r.step, r.writes = claim.New(r.config), 0
	r.reconcile(t)
	taints := r.node(t).Spec.Taints
	if r.writes != 2 || r.is(t, karpenterv1.ConditionTypeRegistered) != "True" ||
		!slices.ContainsFunc(taints, func(taint corev1.Taint) bool { return taint.Key == "team" }) {
		t.Errorf(
			"%d writes, Registered=%s, taints %+v; want that of the node, that of the claim, and what others wrote",
			r.writes, r.is(t, karpenterv1.ConditionTypeRegistered), taints)
	}
}

// P-30: a node that is being deleted is not initialized any more.
func TestANodeThatGoesIsNotInitialized(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim(), joined())
	r.reconcile(t)
	r.makeReady(t)
	if err := r.server.Delete(t.Context(), r.node(t)); err != nil { // our finalizer holds it
		t.Fatal(err)
	}
	if r.reconcile(t); r.is(t, karpenterv1.ConditionTypeInitialized) == "True" {
		t.Error("it is initialized")
	}
}

// P-30: to be initialized a node needs the condition Ready, and some of each requested resource. Missing things are
// reported in a fixed order, and the first report stays for 5 s.
func TestWhatANodeLacks(t *testing.T) {
	t.Parallel()
	asks := func(names ...corev1.ResourceName) corev1.ResourceList {
		list := corev1.ResourceList{}
		for _, name := range names {
			list[name] = resource.MustParse("1")
		}
		return list
	}
	conditions := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Status.Conditions = []corev1.NodeCondition{{Type: kind, Status: status}} }
	}
	for name, c := range map[string]struct {
		asks   corev1.ResourceList
		change func(*corev1.Node)
		lacks  string
	}{
		"nothing":           {asks("cpu"), func(*corev1.Node) {}, ""},
		"not ready":         {asks("cpu"), conditions(corev1.NodeReady, "False"), "node n1 is not ready"},
		"another condition": {asks("cpu"), conditions(corev1.NodeMemoryPressure, "True"), "node n1 is not ready"},
		"asks for none": {corev1.ResourceList{"cpu": resource.MustParse("1"), "gpu": {}}, func(*corev1.Node) {},
			""},
		"several, in order": {asks("h", "g", "f", "e", "d", "c", "b", "a"), func(*corev1.Node) {},
			"the node does not offer [a b c d e f g h] yet"},
		"a resource of none": {asks("gpu"), func(n *corev1.Node) { n.Status.Allocatable["gpu"] = resource.Quantity{} },
			"the node does not offer [gpu] yet"},
	} {
		one := newClaim()
		one.Spec.Resources.Requests = c.asks
		r := newRig(t, one, joined())
		r.reconcile(t)
		r.makeReady(t)
		n := r.node(t)
		c.change(n)
		r.put(t, n)
		patience := map[bool]time.Duration{true: 5 * time.Second}[strings.HasPrefix(c.lacks, "the node")]
		if again := r.reconcile(t).RequeueAfter; c.lacks != "" && again != cmp.Or(patience, time.Hour) {
			t.Errorf("%s: asks again after %s", name, again)
		}
		r.clock.Advance(5 * time.Second)
		r.reconcile(t)
		got, _ := condition.Get(r.claim(t).Status.Conditions, karpenterv1.ConditionTypeInitialized)
		if got.Message != c.lacks || (got.Status == "True") != (c.lacks == "") {
			t.Errorf("%s: Initialized=%s %q, want %q", name, got.Status, got.Message, c.lacks)
		}
	}
}

// P-30: a status is written only onto the version that it was made from. So what another controller wrote meanwhile,
// such as an intent to remove, is never undone.
func TestWhatOthersWroteMeanwhileIsNotUndone(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	r.reconcile(t)
	r.create(t, joined())
	r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			options ...client.PatchOption) error {
			r.setCondition(t, condition.True(karpenterv1.ConditionTypeDisruptionReason, "Empty", ""))
			return c.Patch(ctx, o, p, options...)
		},
	})
	r.step = claim.New(r.config)
	_, err := r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
	if !apierrors.IsConflict(err) || r.is(t, karpenterv1.ConditionTypeDisruptionReason) != "True" {
		t.Errorf("error %v, the intent %q: want a conflict, and the intent to stand", err,
			r.is(t, karpenterv1.ConditionTypeDisruptionReason))
	}
}

// L-13: a label that is right is left alone, and nothing is said.
func TestALabelThatIsRightIsLeftAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, hardPool(1), made("c1", "pool-uid"))
	r.reconcile(t)
	writes := r.writes
	if r.reconcile(t); r.writes != writes || strings.Contains(strings.Join(r.tape.Said(), "\n"),
		event.NodePoolLabelRestored) {
		t.Errorf("%d writes, said %q", r.writes-writes, r.tape.Said())
	}
}

// D-03: only events on an initialized node are stamped; earlier ones are in its first stamp. A stamp never goes back,
// even though a new process knows of no event.
func TestWhatIsStamped(t *testing.T) {
	t.Parallel()
	r := newRig(t, aPool(), newClaim(), joined())
	r.reconcile(t)
	r.podComes("early")
	if r.reconcile(t); !r.claim(t).Status.LastPodEventTime.IsZero() {
		t.Errorf("stamped at %s, before the node is initialized", r.claim(t).Status.LastPodEventTime)
	}
	r.makeReady(t)
	r.reconcile(t)
	r.clock.Advance(time.Minute)
	r.reconcile(t)
	stamped := r.claim(t).Status.LastPodEventTime
	r.config.PodEvents = claim.NewPodEvents()
	r.step = claim.New(r.config)
	r.clock.Advance(time.Hour)
	if r.reconcile(t); stamped.IsZero() || r.claim(t).Status.LastPodEventTime != stamped {
		t.Errorf("the stamp %s became %s", stamped, r.claim(t).Status.LastPodEventTime)
	}
}
