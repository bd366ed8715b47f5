package apply_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// onCreate is an API server that answers creates in its own way.
func onCreate(do func(create func() error) error) interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return do(func() error { return c.Create(ctx, o, options...) })
		},
	}
}

// with gives the rig an Applier that differs in its configuration.
func (r *rig) with(change func(*apply.Config)) {
	config := apply.Config{
		Client: r.server, Live: r.server, Store: r.store, Fleet: controllertest.Everything{},
		Now: controllertest.Start, Log: logr.Discard(),
	}
	change(&config)
	r.applier = apply.New(config)
}

// P-32: the names of claims are the same in every version of Joiner, or an upgrade in the middle of a plan would buy
// twice. They depend on the pods but not their order, on the replaced claims, and on the ordinal of equal launches.
func TestNamesOfClaimsNeverChange(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{})
	out := r.apply(t, planOf(launch(plan.NoSlot, "b", "a"), launch(plan.NoSlot, "c"),
		replacement(plan.NoSlot, "x", "y"), replacement(plan.NoSlot, "x", "y"), replacement(plan.NoSlot, "y")))
	var got []string
	for _, launched := range out.Launched {
		got = append(got, launched.Claim)
	}
	want := []string{"default-r7dczlbi", "default-gvrniwc7", "default-2p4kcds7", "default-i33nrnfz",
		"default-tjic4vuy"}
	if !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
}

// The outcome has each launch with its pool and pods: its claim, or why there is none.
func TestTheOutcomeNamesEachLaunch(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Limits{HardNodes: limit.None, SoftNodes: 1}, interceptor.Funcs{})
	var created []string
	r.with(func(c *apply.Config) {
		c.Decided = func(d apply.Decision, about apply.About) string {
			if d.Outcome == apply.Done {
				created = append(created, about.Pool)
			}
			return ""
		}
	})
	a, b := launch(plan.NoSlot, "a"), launch(plan.NoSlot, "b")
	out := r.apply(t, planOf(a, b))
	want := apply.Outcome{
		Launched: []apply.Launched{{Claim: r.claims(t)[0], Pool: "default", Pods: a.Pods}},
		Refused:  []apply.Refused{{Pool: "default", Why: "nodes 1 of 1 (soft limit)", Pods: b.Pods}},
	}
	if !reflect.DeepEqual(out, want) {
		t.Errorf("outcome %+v, want %+v", out, want)
	}
	r.store.used = limit.Usage{}
	r.apply(t, planOf(a)) // finds its claim
	if !slices.Equal(created, []string{"default"}) {
		t.Errorf("creations counted for the pools %v: want one, for what was created and not for what was found",
			created)
	}
}

// The promise is made for the claim as the API server returned it: the world knows claims by their UID.
func TestWhatIsPromisedIsWhatTheServerReturned(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			o.SetUID("given-by-the-server")
			return c.Create(ctx, o, options...)
		},
	})
	r.apply(t, planOf(launch(plan.NoSlot, "a")))
	if !slices.Equal(r.store.promisedUIDs, []string{"given-by-the-server"}) {
		t.Errorf("promised claims with the UIDs %q", r.store.promisedUIDs)
	}
}

// P-32: a create whose answer may be lost is sent once more under the same name. One that the server refused is not.
// Two lost answers in a row are an outage, and an error.
func TestACreateIsTriedTwiceWhenItsAnswerMayBeLost(t *testing.T) {
	t.Parallel()
	claims := schema.GroupResource{Resource: "nodeclaims"}
	for name, c := range map[string]struct {
		answer error
		calls  int
	}{
		"no answer":    {errors.New("connection reset by peer"), 2},
		"timeout":      {apierrors.NewTimeoutError("timeout", 1), 2},
		"too slow":     {apierrors.NewServerTimeout(claims, "create", 1), 2},
		"internal":     {apierrors.NewInternalError(errors.New("etcd")), 2},
		"not a status": {apierrors.NewGenericServerResponse(302, "create", claims, "x", "moved", 0, true), 2},
		"unavailable":  {apierrors.NewServiceUnavailable("no leader"), 2},
		"no right": {apierrors.NewForbidden(claims, "x", errors.New(`User "joiner" cannot create resource `+
			`"nodeclaims" in API group "karpenter.sh" at the cluster scope`)), 1},
		"no right to its owner": {apierrors.NewForbidden(claims, "x", errors.New("cannot set blockOwnerDeletion if "+
			"an ownerReference refers to a resource you can't set finalizers on")), 1},
		"no identity": {apierrors.NewUnauthorized("expired"), 1},
		"too many":    {apierrors.NewTooManyRequests("later", 1), 1},
	} {
		calls := 0
		r := newRig(t, limit.Unlimited(), onCreate(func(func() error) error { calls++; return c.answer }))
		out, err := r.applier.Apply(t.Context(), planOf(launch(plan.NoSlot, "a")))
		if calls != c.calls || !errors.Is(err, c.answer) || !strings.Contains(err.Error(),
			"creating a NodeClaim of pool default") {
			t.Errorf("%s: %d calls, want %d; error %v", name, calls, c.calls, err)
		}
		if len(out.Launched)+len(out.Refused)+len(r.store.promised) != 0 {
			t.Errorf("%s: outcome %+v, promised %v: nothing is known to exist", name, out, r.store.promised)
		}
		if open := out.Open == 1; open != (c.calls == 2) {
			t.Errorf("%s: %d launches may have landed, want those without an answer", name, out.Open)
		}
	}
}

// P-12: a claim that the API server refuses for what it is, is no outage. It is in the outcome and the history with
// the answer, the rest of the plan is carried out, and nothing of it may exist. Who replaces a node gets an error too.
func TestADeniedClaimIsNoOutage(t *testing.T) {
	t.Parallel()
	claims := schema.GroupResource{Group: "karpenter.sh", Resource: "nodeclaims"}
	for name, answer := range map[string]error{
		"invalid": apierrors.NewInvalid(schema.GroupKind{Kind: "NodeClaim"}, "x", nil),
		"policy": apierrors.NewForbidden(claims, "x", errors.New("ValidatingAdmissionPolicy 'gpus' with binding 'b' "+
			"denied request: no GPUs")),
		"webhook":   apierrors.NewBadRequest(`admission webhook "claims.example.com" denied the request: no`),
		"too large": apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
	} {
		calls, told := 0, []string(nil)
		r := newRig(t, limit.Unlimited(), onCreate(func(create func() error) error {
			if calls++; calls == 1 {
				return answer
			}
			return create()
		}))
		r.with(func(c *apply.Config) {
			c.Decided = func(d apply.Decision, about apply.About) string {
				told = append(told, string(d.Outcome)+" "+about.Why)
				return ""
			}
		})
		a, b := launch(plan.NoSlot, "a"), launch(plan.NoSlot, "b")
		a.For, b.For = []string{"ask of a"}, []string{"ask of b"}
		out := r.apply(t, planOf(a, b))
		want := apply.Outcome{
			Launched: []apply.Launched{{Claim: r.claims(t)[0], Pool: "default", Pods: b.Pods, For: b.For}},
			Refused: []apply.Refused{{Pool: "default", Why: answer.Error(), Pods: a.Pods, For: a.For,
				Denied: true}},
		}
		if !reflect.DeepEqual(out, want) || calls != 2 {
			t.Errorf("%s: %d calls, outcome %+v, want %+v", name, calls, out, want)
		}
		if !slices.Contains(told, "refused "+answer.Error()) {
			t.Errorf("%s: the history has %q", name, told)
		}
		calls = 0
		out, err := r.applier.Apply(t.Context(), planOf(replacement(plan.NoSlot, "y")))
		if err == nil || !strings.Contains(err.Error(), answer.Error()) || len(out.Refused) != 1 {
			t.Errorf("%s: a replacement: outcome %+v, error %v", name, out, err)
		}
	}
}

// Nothing is sent after the context has ended or the view is too old, not even the second try.
func TestNoSecondTryComesLate(t *testing.T) {
	t.Parallel()
	lost := apierrors.NewTimeoutError("timeout", 1)
	clock, calls := controllertest.NewClock(), 0
	r := newRig(t, limit.Unlimited(), onCreate(func(func() error) error {
		calls++
		clock.Advance(10 * time.Second)
		return lost
	}))
	r.with(func(c *apply.Config) { c.Now = clock.Now })
	if out, err := r.applier.Apply(t.Context(), planOf(launch(plan.NoSlot, "a"))); calls != 1 ||
		!errors.Is(err, lost) {
		t.Errorf("old view: %d calls, outcome %+v, error %v: want one call, and its error", calls, out, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls = 0
	r = newRig(t, limit.Unlimited(), onCreate(func(func() error) error { calls++; cancel(); return lost }))
	if _, err := r.applier.Apply(ctx, planOf(launch(plan.NoSlot, "a"))); calls != 1 || !errors.Is(err, lost) {
		t.Errorf("ended context: %d calls, error %v: want one call, and its error", calls, err)
	}
}

// A name that others hold is passed over, ten times at most. In a slot there is no other name: it is refused at once.
func TestNamesInUse(t *testing.T) {
	t.Parallel()
	var tried []string
	exists := interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			tried = append(tried, o.GetName())
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "nodeclaims"}, o.GetName())
		},
	}
	r := newRig(t, limit.Unlimited(), exists)
	_, err := r.applier.Apply(t.Context(), planOf(launch(plan.NoSlot, "a")))
	if len(tried) != 10 || len(slices.Compact(slices.Sorted(slices.Values(tried)))) != 10 || err == nil ||
		!strings.Contains(err.Error(), "10 names for the same pods are in use; the last is "+tried[9]) {
		t.Errorf("names %v, error %v: want ten names tried, and the last one told", tried, err)
	}
	tried = nil
	r = newRig(t, limit.Limits{HardNodes: 1, SoftNodes: limit.None}, exists)
	out := r.apply(t, planOf(launch(0, "a")))
	want := fmt.Sprintf("slot 0 was taken by NodeClaim %s a moment ago", slotName(0))
	if len(tried) != 1 || len(out.Refused) != 1 || out.Refused[0].Why != want {
		t.Errorf("names %v, outcome %+v: want %q", tried, out, want)
	}
	r = newRig(t, limit.Limits{HardNodes: 1, SoftNodes: limit.None}, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := c.Create(ctx, claimIn(o.GetName())); err != nil { // another writer is faster
				return err
			}
			return c.Create(ctx, o, options...)
		},
	})
	out = r.apply(t, planOf(launch(0, "a")))
	if want := "slot 0 is taken by NodeClaim " + slotName(0); len(out.Refused) != 1 || out.Refused[0].Why != want {
		t.Errorf("outcome %+v: want %q", out, want)
	}
}

// P-32: a claim with the name of a launch stands for it only if it has the same pool and requirements, replaces the
// same claims and is not being deleted. Otherwise another claim is created under another name.
func TestOnlyTheSameLaunchIsAdopted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*karpenterv1.NodeClaim)
		claims int
	}{
		"unchanged": {func(*karpenterv1.NodeClaim) {}, 1},
		"labels":    {func(c *karpenterv1.NodeClaim) { c.Labels[karpenterv1.NodePoolLabelKey] = "other" }, 2},
		"owner":     {func(c *karpenterv1.NodeClaim) { c.OwnerReferences = nil }, 2},
		"replaces": {func(c *karpenterv1.NodeClaim) {
			c.Annotations = map[string]string{karpenterv1.ReplacesAnnotationKey: "x"}
		}, 2},
		"requirements": {func(c *karpenterv1.NodeClaim) { c.Spec.Requirements = nil }, 2},
		"resources":    {func(c *karpenterv1.NodeClaim) { c.Spec.Resources.Requests = nil }, 2},
	} {
		r := newRig(t, limit.Unlimited(), interceptor.Funcs{})
		r.apply(t, planOf(launch(plan.NoSlot, "a")))
		var claim karpenterv1.NodeClaim
		if err := r.server.Get(t.Context(), client.ObjectKey{Name: r.claims(t)[0]}, &claim); err != nil {
			t.Fatal(err)
		}
		c.change(&claim)
		if err := r.server.Update(t.Context(), &claim); err != nil {
			t.Fatal(err)
		}
		out := r.apply(t, planOf(launch(plan.NoSlot, "a")))
		if len(out.Launched) != 1 || len(r.claims(t)) != c.claims {
			t.Errorf("%s changed: outcome %+v, claims %v: want %d", name, out, r.claims(t), c.claims)
		}
	}
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{})
	first := r.apply(t, planOf(launch(plan.NoSlot, "a"))).Launched[0].Claim
	claim := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: first}}
	if err := r.server.Delete(t.Context(), claim); err != nil { // the finalizer holds it
		t.Fatal(err)
	}
	if out := r.apply(t, planOf(launch(plan.NoSlot, "a"))); len(out.Launched) != 1 || out.Launched[0].Claim == first {
		t.Errorf("outcome %+v: want another claim than %s, which is being deleted", out, first)
	}
}

// A plan older than the snapshot is checked against what appeared since. A claim with the launch's name means that
// another process launched for the same pods. Claims being deleted, or released from what they replaced, do not count.
func TestAClaimThatAppearedMeanwhile(t *testing.T) {
	t.Parallel()
	pods := launch(plan.NoSlot, "a")
	for name, c := range map[string]struct {
		launch  plan.Launch
		known   cluster.Node
		refused string
	}{
		"for the same pods": {pods, cluster.Node{}, "for the same pods appeared meanwhile"},
		"is going":          {pods, cluster.Node{Deleting: true}, ""},
		"replaces the same": {replacement(plan.NoSlot, "x"), cluster.Node{Replaces: []string{"x"}},
			"for the same pods appeared meanwhile"},
		"was released":         {replacement(plan.NoSlot, "x"), cluster.Node{}, ""},
		"in the launch's slot": {launch(0, "a"), cluster.Node{}, "slot 0 is taken by NodeClaim " + slotName(0)},
		"going in the its slot": {launch(0, "a"), cluster.Node{Deleting: true},
			"slot 0 is taken by NodeClaim " + slotName(0)},
	} {
		limits := limit.Unlimited()
		if c.launch.Slot != plan.NoSlot {
			limits.HardNodes = 1
		}
		first := newRig(t, limits, interceptor.Funcs{}).apply(t, planOf(c.launch)).Launched[0].Claim
		r := newRig(t, limits, interceptor.Funcs{})
		c.known.Claim = first
		r.store.snapshot = cluster.New(cluster.Snapshot{
			Version: 8, Names: names(), Pools: r.store.snapshot.Pools,
			Nodes: []*cluster.Node{{Claim: "another"}, &c.known},
		})
		out := r.apply(t, planOf(c.launch))
		if refused := len(out.Refused) == 1; refused != (c.refused != "") || refused &&
			!strings.HasSuffix(out.Refused[0].Why, c.refused) {
			t.Errorf("%s: outcome %+v, want it refused: %q", name, out, c.refused)
		}
		if c.refused == "" && (len(out.Launched) != 1 || out.Launched[0].Claim == first) {
			t.Errorf("%s: outcome %+v, want a claim of another name than %s", name, out, first)
		}
	}
}

// D-10, P-32: each failure is returned, and the claim of a failed create is not reported as existing.
func TestNoFailureOfALaunchIsSwallowed(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]limit.Limits{"slots": {HardNodes: 2, SoftNodes: limit.None},
		"no slots": limit.Unlimited()} {
		failed := controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
			one, two := launch(0, "a"), launch(1, "b")
			if limits.HardNodes == limit.None {
				one.Slot, two.Slot = plan.NoSlot, plan.NoSlot
			}
			r := newRig(t, limits, interceptor.Funcs{})
			r.apply(t, planOf(one)) // whose answer is lost: the next create finds it
			r.store.used = limit.Usage{}
			server := f.Wrap(r.server)
			r.with(func(c *apply.Config) { c.Client, c.Live = server, server })
			return func() error {
				out, err := r.applier.Apply(t.Context(), planOf(one, two))
				if err == nil && len(out.Launched) != 2 {
					t.Errorf("outcome %+v", out)
				}
				if left := len(out.Refused); left != 0 {
					t.Errorf("a failure is said to be an answer: %+v", out)
				}
				return err
			}
		}, "create v1.NodeClaim") // which is tried once more
		if want := map[string]int{"slots": 3, "no slots": 4}[name]; len(failed) != want {
			t.Errorf("%s: calls %v, want %d", name, failed, want)
		}
	}
}

// K-37: pods take the room launched for a buffer, and the same room is launched again. It gets another name each time,
// however many nodes came before, and whatever else happened since the plan.
func TestK37_RoomIsLaunchedForAsOftenAsItIsTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{})
	room := launch(plan.NoSlot)
	room.Buffers = []plan.PodRef{{Namespace: "shop", Name: "room-0", UID: "buffer-uid/0"}}
	seen := map[string]bool{}
	var nodes []*cluster.Node
	for i := range 15 {
		r.store.snapshot = cluster.New(cluster.Snapshot{
			Version: uint64(8 + i), Names: names(), Pools: r.store.snapshot.Pools, Nodes: nodes,
		})
		out := r.apply(t, planOf(room))
		if len(out.Launched) != 1 || seen[out.Launched[0].Claim] {
			t.Fatalf("time %d: outcome %+v, want a claim of another name than %v", i, out, seen)
		}
		seen[out.Launched[0].Claim] = true
		nodes = append(nodes, &cluster.Node{Claim: out.Launched[0].Claim, Pool: "default"})
	}
	if d := r.decided[len(r.decided)-1]; d.Cause != apply.CauseBuffer {
		t.Errorf("the decision has the cause %s", d.Cause)
	}
}
