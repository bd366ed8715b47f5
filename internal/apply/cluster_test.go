package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

const system = "joiner-system"

// within gives the rig's applier a hard limit for the whole cluster, as in a process that has just started.
func (r *rig) within(most int64) *rig {
	r.with(func(c *apply.Config) { c.Cluster = apply.NewClusterLimit(most, system) })
	return r
}

func tableOf(t *testing.T, r *rig) *corev1.ConfigMap {
	t.Helper()
	var table corev1.ConfigMap
	if err := r.server.Get(t.Context(), client.ObjectKey{Namespace: system, Name: apply.TableName},
		&table); err != nil {
		t.Fatal(err)
	}
	return &table
}

func setTable(t *testing.T, r *rig, data map[string]string) {
	t.Helper()
	table := tableOf(t, r)
	table.Data = data
	if err := r.server.Update(t.Context(), table); err != nil {
		t.Fatal(err)
	}
}

func foreignClaim(name string) *karpenterv1.NodeClaim {
	return &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
}

func refusals(out apply.Outcome) string {
	var list []string
	for _, refused := range out.Refused {
		list = append(list, refused.Why)
	}
	return strings.Join(list, "; ")
}

// K-53: claims stand in slots of the cluster, as many as the limit leaves beside all other claims.
func TestK53_ClaimsStandInSlotsOfTheCluster(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{}, foreignClaim("by-hand")).within(3)
	out := r.apply(t, planOf(launch(plan.NoSlot, "a"), launch(plan.NoSlot, "b"), launch(plan.NoSlot, "c")))
	if claims := r.claims(t); !slices.Equal(claims, []string{"by-hand", "node-slot-0", "node-slot-1"}) {
		t.Errorf("claims %v, want two slots beside the one that was there", claims)
	}
	if len(out.Launched) != 2 ||
		refusals(out) != "no slot of the cluster is left: 1 NodeClaims existed before this plan, 3 are allowed" {
		t.Errorf("launched %v, refused %q", out.Launched, refusals(out))
	}
	if data := tableOf(t, r).Data; data["limit"] != "3" || data["places"] != "{}" {
		t.Errorf("the table has %v", data)
	}
}

// K-53, P-32: the same plan made twice, by one process or two, gives one claim; another demand gets its own claim.
func TestK53_TheSamePlanTwiceIsOneClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{}).within(5)
	first := r.apply(t, planOf(launch(plan.NoSlot, "a", "b")))
	second := r.within(5).apply(t, planOf(launch(plan.NoSlot, "b", "a")))
	other := r.apply(t, planOf(launch(plan.NoSlot, "c")))
	if len(first.Launched) != 1 || len(second.Launched) != 1 || first.Launched[0].Claim != second.Launched[0].Claim {
		t.Errorf("launched %v, and then %v: want the same claim", first.Launched, second.Launched)
	}
	if len(other.Launched) != 1 || len(r.claims(t)) != 2 {
		t.Errorf("launched %v for another pod, claims %v", other.Launched, r.claims(t))
	}
}

// K-53: a slot that was free a moment ago is taken. Either another process made this same launch, or the next slot is
// used.
func TestK53_ASlotThatIsTakenMeanwhile(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"another launch": "default-elsewhere", "the same": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := false
			r := newRig(t, limit.Unlimited(), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object,
					options ...client.CreateOption) error {
					claim, is := o.(*karpenterv1.NodeClaim)
					if is && !made {
						made = true
						rival := claim.DeepCopy()
						if key != "" {
							rival.Annotations[karpenterv1.LaunchedAsAnnotationKey] = key
						}
						if err := c.Create(ctx, rival); err != nil {
							return err
						}
					}
					return c.Create(ctx, o, options...)
				},
			}).within(3)
			out := r.apply(t, planOf(launch(plan.NoSlot, "a")))
			want := map[bool]string{true: "node-slot-0", false: "node-slot-1"}[key == ""]
			if len(out.Launched) != 1 || out.Launched[0].Claim != want {
				t.Errorf("launched %v, refused %q, want %s", out.Launched, refusals(out), want)
			}
		})
	}
}

// K-53: a lost answer leads to no second claim, neither at once nor by the next plan.
func TestK53_ALostAnswerIsOneClaim(t *testing.T) {
	t.Parallel()
	lost := 0
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			err := c.Create(ctx, o, options...)
			if _, is := o.(*karpenterv1.NodeClaim); is && lost < 2 && err == nil {
				lost++
				return errors.New("the connection was lost")
			}
			return err
		},
	}).within(3)
	if _, err := r.applier.Apply(t.Context(), planOf(launch(plan.NoSlot, "a"))); err != nil {
		t.Fatal(err)
	}
	out := r.within(3).apply(t, planOf(launch(plan.NoSlot, "a")))
	if len(out.Launched) != 1 || len(r.claims(t)) != 1 {
		t.Errorf("launched %v, claims %v: want one", out.Launched, r.claims(t))
	}
}

// K-53, L-14: a pool with a hard limit of its own gets places, and keeps both limits.
func TestK53_APoolKeepsItsOwnLimitToo(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Limits{HardNodes: 2, SoftNodes: limit.None}, interceptor.Funcs{},
		foreignClaim("by-hand")).within(5)
	r.apply(t, planOf(launch(0, "a"), launch(1, "b")))
	if data := tableOf(t, r).Data; data["places"] != `{"pool-uid-1":[0,1]}` {
		t.Errorf("the table has %v, want two places", data)
	}
	r.store.used = limit.Usage{}
	out := r.apply(t, planOf(launch(0, "c")))
	const want = "no slot of the cluster is left: 3 NodeClaims existed before this plan, 5 are allowed; of the NodePool 2, and 2"
	if refusals(out) != want {
		t.Errorf("launched %v, refused %q, want %q", out.Launched, refusals(out), want)
	}
}

// K-53: the lower one of flag and table counts. A process raises the table once, when it begins, and lowers it always.
func TestK53_TheTableAndTheFlag(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{}).within(5)
	r.apply(t, planOf(launch(plan.NoSlot, "a")))
	steps := []struct{ name, has, want string }{
		{"raised by another process", "9", "5"},
		{"lowered by another process", "2", "2"},
	}
	for i, step := range steps {
		setTable(t, r, map[string]string{"limit": step.has})
		r.apply(t, planOf(launch(plan.NoSlot, fmt.Sprint("b", i))))
		if got := tableOf(t, r).Data["limit"]; got != step.want || fmt.Sprint(r.store.claimsMost) != step.want {
			t.Errorf("%s to %s: the table has %s, the store %d, want %s", step.name, step.has, got, r.store.claimsMost,
				step.want)
		}
	}
	if err := r.server.Delete(t.Context(), tableOf(t, r)); err != nil {
		t.Fatal(err)
	}
	r.apply(t, planOf(launch(plan.NoSlot, "c")))
	if got := tableOf(t, r).Data["limit"]; got != "2" || len(r.claims(t)) != 2 {
		t.Errorf("after it was deleted the table has %s, want 2, as it was seen last; claims %v, want 2", got,
			r.claims(t))
	}
	r.within(4).apply(t, planOf(launch(plan.NoSlot, "d")))
	if got := tableOf(t, r).Data["limit"]; got != "4" || len(r.claims(t)) != 3 {
		t.Errorf("a process that begins with 4 leaves %s, claims %v", got, r.claims(t))
	}
}

// K-53: if the table cannot be read or changes all the time, nothing is launched, and the refusal says why.
func TestK53_NothingIsLaunchedWithoutATable(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{}).within(5)
	r.apply(t, planOf())
	r.apply(t, planOf(launch(plan.NoSlot, "a")))
	setTable(t, r, map[string]string{"limit": "many"})
	out := r.apply(t, planOf(launch(plan.NoSlot, "b")))
	const want = `the hard limit of the whole cluster is not known, ConfigMap joiner-system/joiner-cluster-limit cannot be read: ` +
		`key limit is "many": want a number of NodeClaims above 0; delete it, and it is made anew`
	if refusals(out) != want || len(r.claims(t)) != 1 {
		t.Errorf("refused %q, claims %v; want %q", refusals(out), r.claims(t), want)
	}
	if err := r.applier.Begin(t.Context()); err != nil || r.store.claimsUnknown != want {
		t.Errorf("error %v, the store knows %q; want it to be told %q, so that pods and pools say it", err,
			r.store.claimsUnknown, want)
	}
	setTable(t, r, map[string]string{"limit": "5", "places": `{"uid": "0"}`})
	if err := r.applier.Begin(t.Context()); err != nil || !strings.Contains(r.store.claimsUnknown,
		`key places is "{\"uid\": \"0\"}": want lists`) {
		t.Errorf("error %v, the store knows %q", err, r.store.claimsUnknown)
	}
	setTable(t, r, map[string]string{"limit": "5"})
	if err := r.applier.Begin(t.Context()); err != nil || r.store.claimsUnknown != "" || r.store.claimsMost != 5 {
		t.Errorf("error %v: the table can be read, and the store knows %q and %d", err, r.store.claimsUnknown,
			r.store.claimsMost)
	}
	refused := newRig(t, limit.Unlimited(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if _, table := o.(*corev1.ConfigMap); table {
				return apierrors.NewForbidden(corev1.Resource("configmaps"), key.Name, errors.New("no right"))
			}
			return c.Get(ctx, key, o, options...)
		},
	}).within(5)
	if err := refused.applier.Begin(t.Context()); err != nil || !strings.Contains(refused.store.claimsUnknown,
		"let the controller read it") {
		t.Errorf("error %v, the store knows %q; want it to say that the right is missing", err,
			refused.store.claimsUnknown)
	}
	down := newRig(t, limit.Unlimited(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if _, table := o.(*corev1.ConfigMap); table {
				return errors.New("etcd is away")
			}
			return c.Get(ctx, key, o, options...)
		},
	}).within(5)
	if _, err := down.applier.Apply(t.Context(), planOf(launch(plan.NoSlot, "a"))); err == nil ||
		len(down.claims(t)) != 0 {
		t.Errorf("without an answer: %v, claims %v; want an error and no claim", err, down.claims(t))
	}
}

// K-53: places that another process has changed since they were read are not overwritten.
func TestK53_PlacesChangeOneAfterTheOther(t *testing.T) {
	t.Parallel()
	between := false
	r := newRig(t, limit.Limits{HardNodes: 2, SoftNodes: limit.None}, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			if table, is := o.(*corev1.ConfigMap); is && !between {
				between = true
				other := &corev1.ConfigMap{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(table), other); err != nil {
					return err
				}
				other.Data["places"] = `{"pool-uid-2":[0]}`
				if err := c.Update(ctx, other); err != nil {
					return err
				}
			}
			return c.Update(ctx, o, options...)
		},
	}).within(5)
	r.store.snapshot = cluster.New(cluster.Snapshot{Version: 7, Names: names(), Pools: []*cluster.Pool{
		{Name: "default", UID: "pool-uid-1", Limits: limit.Limits{HardNodes: 2, SoftNodes: limit.None}},
		{Name: "other", UID: "pool-uid-2", Limits: limit.Unlimited()},
	}})
	out := r.apply(t, planOf(launch(0, "a")))
	if refusals(out) != "the places of NodePools in the cluster were changed by others meanwhile" || !between {
		t.Fatalf("refused %q, launched %v", refusals(out), out.Launched)
	}
	out = r.apply(t, planOf(launch(0, "a")))
	data := tableOf(t, r).Data
	if len(out.Launched) != 1 || out.Launched[0].Claim != "node-slot-1" ||
		data["places"] != `{"pool-uid-1":[1],"pool-uid-2":[0]}` {
		t.Errorf("launched %v, refused %q, table %v: want a place that is nobody's", out.Launched, refusals(out), data)
	}
}

// K-53: a process writes its limit down before its first launch, once; what the table says later is left alone.
func TestK53_AProcessBeginsWithItsLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{}).within(9)
	for range 2 {
		if err := r.applier.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r.within(3)
	if err := r.applier.Begin(t.Context()); err != nil || tableOf(t, r).Data["limit"] != "3" {
		t.Fatalf("a process with a limit of 3 leaves %v, %v", tableOf(t, r).Data, err)
	}
	setTable(t, r, map[string]string{"limit": "many"})
	if err := r.within(4).applier.Begin(t.Context()); err != nil || !strings.Contains(r.store.claimsUnknown,
		"delete it, and it is made anew") {
		t.Errorf("a table that cannot be read: %v, the store knows %q", err, r.store.claimsUnknown)
	}
}

// K-53: two pools have one free place, the same one, and the limit of the cluster leaves room for a claim of each. One
// plan that launches in both makes both: the place of the one is exchanged once the other's claim stands there (seed
// 303946: a node that needed two replacements was tried again and again). Mutant: no second try.
func TestK53_PoolsOfOnePlanWithTheSamePlace(t *testing.T) {
	t.Parallel()
	own := limit.Limits{HardNodes: 2, SoftNodes: limit.None}
	other := limited(own)
	other.Name, other.UID = "other", "pool-uid-2"
	held := func(name, pool, uid string) *karpenterv1.NodeClaim {
		claim := foreignClaim(name)
		claim.Labels = map[string]string{karpenterv1.NodePoolLabelKey: pool}
		claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: pool,
			UID: types.UID(uid)}}
		return claim
	}
	r := newRig(t, own, interceptor.Funcs{}, other, held("node-slot-0", "default", "pool-uid-1"),
		held("node-slot-1", "other", "pool-uid-2")).within(4)
	r.store.snapshot = cluster.New(cluster.Snapshot{Version: 7, Names: names(), Pools: []*cluster.Pool{
		{Name: "default", UID: "pool-uid-1", Limits: own}, {Name: "other", UID: "pool-uid-2", Limits: own},
	}})
	if err := r.applier.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	setTable(t, r, map[string]string{"limit": "4", "places": `{"pool-uid-1":[0,2],"pool-uid-2":[1,2]}`})
	second := launch(1, "b")
	second.Pool, second.PoolUID = "other", "pool-uid-2"
	out := r.apply(t, planOf(launch(1, "a"), second))
	claims, places := r.claims(t), tableOf(t, r).Data["places"]
	if len(out.Launched) != 2 || !slices.Equal(claims, []string{"node-slot-0", "node-slot-1", "node-slot-2",
		"node-slot-3"}) || places != `{"pool-uid-1":[0,2],"pool-uid-2":[1,3]}` {
		t.Errorf("launched %v, refused %q, claims %v, places %s", out.Launched, refusals(out), claims, places)
	}
}
