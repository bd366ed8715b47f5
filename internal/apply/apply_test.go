package apply_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// store is a fake world with one pool that records its calls.
type store struct {
	snapshot *cluster.Snapshot
	used     limit.Usage
	ceiling  limit.Ceiling
	promised []string

	claimsMost    int64
	claimsUnknown string
	priced        string // the instance type whose price an overlay changes
	given         string // and that whose capacity
	promisedUIDs  []string
	nominate      map[string]string
}

func (s *store) Snapshot() *cluster.Snapshot { return s.snapshot }
func (s *store) Version() uint64             { return s.snapshot.Version }
func (s *store) Usage(string) limit.Usage    { return s.used }
func (s *store) Ceiling() limit.Ceiling      { return s.ceiling }
func (s *store) LimitClaims(most int64)      { s.claimsMost, s.claimsUnknown = most, "" }
func (s *store) ClaimsUnknown(why string) bool {
	news := s.claimsUnknown != why
	s.claimsUnknown = why
	return news
}
func (s *store) Overlaid(_ *karpenterv1.NodeClassReference, _ string, types []string) (price, capacity bool) {
	return slices.Contains(types, s.priced), slices.Contains(types, s.given)
}
func (s *store) Promise(c *karpenterv1.NodeClaim, reserve resources.Vector, pods []plan.PodRef) {
	s.promised = append(s.promised, c.Name)
	s.promisedUIDs = append(s.promisedUIDs, string(c.UID))
	s.used = s.used.Plus(1, reserve)
}

func (s *store) Nominate(pods []plan.PodRef, node string) {
	for _, pod := range pods {
		s.nominate[pod.Name] = node
	}
}

func pool() *karpenterv1.NodePool {
	return &karpenterv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "pool-uid-1"},
		Spec: karpenterv1.NodePoolSpec{Template: karpenterv1.NodeClaimTemplate{Spec: karpenterv1.NodeClaimTemplateSpec{
			NodeClassRef: &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass",
				Name: "default"},
		}}},
	}
}

// limited returns the pool with the store's hard limit.
func limited(limits limit.Limits) *karpenterv1.NodePool {
	p := pool()
	if limits.HardNodes != limit.None {
		p.Spec.HardLimits = karpenterv1.Limits{"nodes": *resource.NewQuantity(limits.HardNodes, resource.DecimalSI)}
	}
	return p
}

func names() resources.Names { return resources.NewSpace().Names() }

func launch(slot int, pods ...string) plan.Launch {
	l := plan.Launch{Pool: "default", PoolUID: "pool-uid-1", Slot: slot, Types: []string{"m-2x"},
		Requests: resources.Vector{1000}, Reserve: resources.Vector{2000}}
	for _, pod := range pods {
		l.Pods = append(l.Pods, plan.PodRef{Namespace: "default", Name: pod, UID: "uid-" + pod})
	}
	return l
}

func planOf(launches ...plan.Launch) plan.Plan {
	return plan.Plan{BasedOn: 7, Names: names(), Launches: launches}
}

type rig struct {
	store   *store
	server  client.WithWatch
	applier *apply.Applier
	decided []apply.Decision
	about   []apply.About
}

func newRig(t *testing.T, limits limit.Limits, hooks interceptor.Funcs, objects ...client.Object) *rig {
	t.Helper()
	snapshot := cluster.New(cluster.Snapshot{Version: 7, Names: names(),
		Pools: []*cluster.Pool{{Name: "default", UID: "pool-uid-1", Limits: limits}}})
	r := &rig{
		store:  &store{snapshot: snapshot, nominate: map[string]string{}},
		server: controllertest.NewServer(t, append(objects, limited(limits))...).WithInterceptorFuncs(hooks).Build(),
	}
	r.applier = apply.New(apply.Config{Client: r.server, Live: r.server, Store: r.store,
		Fleet: controllertest.Everything{}, Now: controllertest.Start, Log: logr.Discard(),
		Decided: func(d apply.Decision, about apply.About) string {
			r.decided, r.about = append(r.decided, d), append(r.about, about)
			return fmt.Sprintf("d%d", len(r.about))
		}})
	return r
}

func (r *rig) apply(t *testing.T, p plan.Plan) apply.Outcome {
	t.Helper()
	out, err := r.applier.Apply(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (r *rig) claims(t *testing.T) []string {
	t.Helper()
	var list karpenterv1.NodeClaimList
	if err := r.server.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range list.Items {
		names = append(names, c.Name)
	}
	return names
}

// P-32: two replicas, or one that has restarted, make the same plan twice and get one claim.
func TestTheSamePlanTwiceCreatesOneClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{})
	first := r.apply(t, planOf(launch(plan.NoSlot, "b", "a")))
	second := r.apply(t, planOf(launch(plan.NoSlot, "a", "b")))
	if len(first.Launched) != 1 || len(second.Launched) != 1 || first.Launched[0].Claim != second.Launched[0].Claim {
		t.Fatalf("first %+v, second %+v: want one claim for both", first, second)
	}
	if claims := r.claims(t); len(claims) != 1 {
		t.Fatalf("claims %v, want one", claims)
	}
}

func TestDifferentPodsGetDifferentClaims(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{})
	r.apply(t, planOf(launch(plan.NoSlot, "a"), launch(plan.NoSlot, "b")))
	if claims := r.claims(t); len(claims) != 2 || len(r.store.promised) != 2 {
		t.Fatalf("claims %v, promised %v: want two of each", claims, r.store.promised)
	}
}

// P-32: the API server did create the claim, but the answer was lost.
func TestALostAnswerIsSuccess(t *testing.T) {
	t.Parallel()
	calls := 0
	r := newRig(t, limit.Limits{HardNodes: 1, SoftNodes: limit.None},
		interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object,
			opts ...client.CreateOption) error {
			calls++
			err := c.Create(ctx, o, opts...)
			if calls == 1 {
				return apierrors.NewTimeoutError("the answer was lost", 1)
			}
			return err
		}})
	out := r.apply(t, planOf(launch(0, "a")))
	if len(out.Launched) != 1 || len(r.claims(t)) != 1 || calls != 2 {
		t.Fatalf("outcome %+v, claims %v, calls %d: want one claim after a second try", out, r.claims(t), calls)
	}
}

func TestARefusedCreateIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	calls := 0
	r := newRig(t, limit.Unlimited(),
		interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object,
			...client.CreateOption) error {
			calls++
			return apierrors.NewForbidden(schema.GroupResource{Resource: "nodeclaims"}, "x", nil)
		}})
	if out := r.apply(t, planOf(launch(plan.NoSlot, "a"))); len(out.Refused) != 1 || calls != 1 {
		t.Fatalf("outcome %+v after %d calls: want a refusal after one", out, calls)
	}
}

// L-14: the slot's name is taken by a claim for another demand, unknown to this process.
func TestATakenSlotIsRefused(t *testing.T) {
	t.Parallel()
	taken := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: limit.SlotName("default", "pool-uid-1", 0),
		UID: "other"}}
	r := newRig(t, limit.Limits{HardNodes: 1, SoftNodes: limit.None}, interceptor.Funcs{}, taken)
	out := r.apply(t, planOf(launch(0, "a")))
	if len(out.Launched) != 0 || len(out.Refused) != 1 || len(r.claims(t)) != 1 {
		t.Fatalf("outcome %+v, claims %v: want the launch refused", out, r.claims(t))
	}
}

// L-14: also if another replica created a claim of the same pool for other pods.
func TestASlotTakenForAnotherDemandIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Limits{HardNodes: 1, SoftNodes: limit.None}, interceptor.Funcs{})
	r.apply(t, planOf(launch(0, "a")))
	r.store.used = limit.Usage{} // of the other replica, which has not seen it
	bigger := launch(0, "b")
	bigger.Requests = resources.Vector{4000}
	if out := r.apply(t, planOf(bigger)); len(out.Launched) != 0 || len(out.Refused) != 1 || len(r.claims(t)) != 1 {
		t.Fatalf("outcome %+v, claims %v: want the launch refused", out, r.claims(t))
	}
}

// L-13: launches of one plan count against the limit that the next one is checked with.
func TestLaunchesOfOnePlanShareTheLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Limits{HardNodes: limit.None, SoftNodes: 2}, interceptor.Funcs{})
	r.store.used = limit.Usage{Nodes: 1}
	out := r.apply(t, planOf(launch(plan.NoSlot, "a"), launch(plan.NoSlot, "b")))
	if len(out.Launched) != 1 || len(out.Refused) != 1 || !strings.Contains(out.Refused[0].Why, "nodes 2 of 2") {
		t.Fatalf("outcome %+v: want one launched, one refused by the limit", out)
	}
}

// The plan knew of a claim for the same pods and asks for another: those pods did not get there.
func TestANameThatThePlanKnewIsPassedOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{})
	first := r.apply(t, planOf(launch(plan.NoSlot, "a"))).Launched[0].Claim
	r.store.snapshot = cluster.New(cluster.Snapshot{
		Version: 7, Names: names(), Pools: r.store.snapshot.Pools, Nodes: []*cluster.Node{{Claim: first}},
	})
	second := r.apply(t, planOf(launch(plan.NoSlot, "a"))).Launched[0].Claim
	if first == second || len(r.claims(t)) != 2 {
		t.Fatalf("claims %s and %s: want a second claim", first, second)
	}
	p := planOf(launch(plan.NoSlot, "a"))
	p.BasedOn = 6 // made before the claim was seen
	if out := r.apply(t, p); len(out.Refused) != 1 || len(r.claims(t)) != 2 {
		t.Fatalf("outcome %+v: want a plan from before the claim to be refused", out)
	}
}

func TestAPoolOfAnotherUIDIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{})
	l := launch(plan.NoSlot, "a")
	l.PoolUID = "before"
	if out := r.apply(t, planOf(l)); len(out.Refused) != 1 {
		t.Fatalf("outcome %+v, want the launch refused", out)
	}
}

func TestNominationsReachTheStore(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{})
	p := planOf()
	p.Nominations = []plan.Nominate{{Pod: plan.PodRef{Name: "a"}, Node: "n1"},
		{Pod: plan.PodRef{Name: "b"}, Node: "n2"}}
	r.apply(t, p)
	if r.store.nominate["a"] != "n1" || r.store.nominate["b"] != "n2" {
		t.Fatalf("nominated %v", r.store.nominate)
	}
}

func markable() (*karpenterv1.NodeClaim, *corev1.Node, plan.Remove) {
	claim := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "c1-uid"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "keep", Effect: "NoSchedule"}}}}
	return claim, node, plan.Remove{Claim: "c1", ClaimUID: "c1-uid", Node: "n1", Pool: "default", Reason: plan.Empty}
}

// tape remembers the order of writes.
func tape(writes *[]string) interceptor.Funcs {
	return interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			*writes = append(*writes, "patch "+o.GetName())
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			*writes = append(*writes, sub+" "+o.GetName())
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}
}

// D-10: the intent comes first and goes last, and a call with nothing to do sends no request.
func TestIntentComesFirstAndGoesLast(t *testing.T) {
	t.Parallel()
	claim, node, remove := markable()
	var writes []string
	r := newRig(t, limit.Unlimited(), tape(&writes), claim, node)
	for range 2 {
		if marked, err := r.applier.Mark(t.Context(), remove); err != nil || !marked {
			t.Fatalf("marked %t, error %v", marked, err)
		}
	}
	if want := []string{"status c1", "patch n1"}; !slices.Equal(writes, want) {
		t.Fatalf("writes %v, want %v once", writes, want)
	}
	writes = nil
	for range 2 {
		if err := r.applier.Undo(t.Context(), remove); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"patch n1", "status c1"}; !slices.Equal(writes, want) {
		t.Fatalf("writes %v, want %v once", writes, want)
	}
	var fresh corev1.Node
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "n1"}, &fresh); err != nil ||
		len(fresh.Spec.Taints) != 1 || fresh.Spec.Taints[0].Key != "keep" {
		t.Fatalf("taints %v, error %v: want only the one of others", fresh.Spec.Taints, err)
	}
}

func TestMarkGoesOnAfterACrashBetweenItsParts(t *testing.T) {
	t.Parallel()
	claim, node, remove := markable()
	condition.Set(&claim.Status.Conditions, 0, condition.True(karpenterv1.ConditionTypeDisruptionReason, "Empty",
		"chosen to be removed: Empty"), controllertest.Start())
	var writes []string
	r := newRig(t, limit.Unlimited(), tape(&writes), claim, node)
	if marked, err := r.applier.Mark(t.Context(), remove); err != nil || !marked {
		t.Fatalf("marked %t, error %v", marked, err)
	}
	if want := []string{"patch n1"}; !slices.Equal(writes, want) {
		t.Fatalf("writes %v, want %v", writes, want)
	}
}

func TestAClaimOfTheSameNameButAnotherUIDIsLeftAlone(t *testing.T) {
	t.Parallel()
	claim, node, remove := markable()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{}, claim, node)
	remove.ClaimUID = "before"
	if marked, err := r.applier.Mark(t.Context(), remove); err != nil || marked {
		t.Fatalf("marked %t, error %v: want it left alone", marked, err)
	}
	if deleted, err := r.applier.Delete(t.Context(), remove); err != nil || deleted {
		t.Fatalf("deleted %t, error %v: want it left alone", deleted, err)
	}
}

// D-10: only a marked claim is deleted, once. An intent that another replica has taken back no longer counts (found by
// simulation).
func TestDeleteDeletesWhatIsMarkedOnce(t *testing.T) {
	t.Parallel()
	claim, node, remove := markable()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{}, claim, node)
	if deleted, err := r.applier.Delete(t.Context(), remove); err != nil || deleted {
		t.Fatalf("not marked: deleted %t, error %v; want it left alone", deleted, err)
	}
	if marked, err := r.applier.Mark(t.Context(), remove); err != nil || !marked {
		t.Fatalf("marked %t, error %v", marked, err)
	}
	for i, want := range []bool{true, false} {
		if deleted, err := r.applier.Delete(t.Context(), remove); err != nil || deleted != want {
			t.Fatalf("call %d: deleted %t, error %v; want %t", i, deleted, err, want)
		}
	}
}

// claimOfPool is a claim of the pool under any name.
func claimOfPool(name string) *karpenterv1.NodeClaim {
	return &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
		Labels: map[string]string{karpenterv1.NodePoolLabelKey: "default"}}}
}

// L-14, L-15: claims without a slot count, whether from before the limit or made by hand. Two writers that know
// neither of them nor of each other do not exceed the limit.
func TestClaimsInNoSlotCount(t *testing.T) {
	t.Parallel()
	limits := limit.Limits{HardNodes: 3, SoftNodes: limit.None}
	r := newRig(t, limits, interceptor.Funcs{}, claimOfPool("old"),
		claimOfPool(limit.SlotName("default", "pool-uid-1", 7)))
	for _, pods := range [][]string{{"a", "b", "c"}, {"d", "e", "f"}} {
		r.store.used = limit.Usage{} // of a process that has seen no claim
		var launches []plan.Launch
		for slot, pod := range pods {
			l := launch(slot, pod)
			l.Requests = resources.Vector{int64(1000 + int(pod[0]))} // another demand than the other writer's
			launches = append(launches, l)
		}
		r.apply(t, planOf(launches...))
		if n := len(r.claims(t)); n != 3 {
			t.Fatalf("%d claims at a limit of 3: %v", n, r.claims(t))
		}
	}
}

// L-14: the API server's limit counts, not the one that the plan knew.
func TestTheLimitIsReadLive(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		live, believed int64
		slot           int
		want           string
	}{
		"got one": {live: 1, believed: limit.None, slot: plan.NoSlot, want: "has got a hard limit meanwhile"},
		"lost it": {live: limit.None, believed: 1, slot: 0, want: "hard limit was taken away meanwhile"},
		"lowered": {live: 2, believed: 5, slot: 4,
			want: "slot 4 is out of use: 0 NodeClaims exist, the NodePool may have 2"},
		"lowered to 0": {live: 0, believed: 5, slot: 0, want: "slot 0 is out of use"},
	} {
		r := newRig(t, limit.Limits{HardNodes: c.live, SoftNodes: limit.None}, interceptor.Funcs{})
		r.store.snapshot.Pools[0].Limits.HardNodes = c.believed
		out := r.apply(t, planOf(launch(c.slot, "a")))
		if len(out.Refused) != 1 || !strings.Contains(out.Refused[0].Why, c.want) || len(r.claims(t)) != 0 {
			t.Errorf("%s: outcome %+v; want it refused: %s", name, out, c.want)
		}
	}
}

// D-12: two controllers that both believe they lead create the replicas of a static pool once.
func TestReplicasAreMadeOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{})
	var p karpenterv1.NodePool
	if err := r.server.Get(t.Context(), client.ObjectKey{Name: "default"}, &p); err != nil {
		t.Fatal(err)
	}
	p.Spec.Replicas = new(int64(3))
	if err := r.server.Update(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.store.used = limit.Usage{}
		out := r.apply(t, planOf(launch(0), launch(1), launch(2)))
		if len(out.Launched) != 3 || len(r.claims(t)) != 3 {
			t.Fatalf("outcome %+v, claims %v: want the same three", out, r.claims(t))
		}
	}
}
