package apply_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// claimIn is a claim of the pool for another demand than any launch here, in a slot or under any other name.
func claimIn(name string) *karpenterv1.NodeClaim {
	return &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-of-" + name),
		Labels: map[string]string{karpenterv1.NodePoolLabelKey: "default"},
	}}
}

func slotName(slot int) string { return limit.SlotName("default", "pool-uid-1", slot) }

// L-14: a slot that was taken at the look is not used if it becomes free before the create: others have used the room
// since. Claims are {old, slot 0, slot 2} at a limit of 3. Slot 2 goes, slot 1 comes, and another claim in slot 2
// would make four.
func TestASlotThatWasTakenIsNotUsedWhenItBecomesFree(t *testing.T) {
	t.Parallel()
	listed := false
	hooks := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
		opts ...client.ListOption) error {
		err := c.List(ctx, list, opts...)
		if _, claims := list.(*karpenterv1.NodeClaimList); !claims || listed || err != nil {
			return err
		}
		listed = true
		if err := c.Delete(ctx, claimIn(slotName(2))); err != nil {
			return err
		}
		return c.Create(ctx, claimIn(slotName(1)))
	}}
	r := newRig(t, limit.Limits{HardNodes: 3, SoftNodes: limit.None}, hooks, claimIn("old"), claimIn(slotName(0)),
		claimIn(slotName(2)))
	out := r.apply(t, planOf(launch(2, "a")))
	if claims := r.claims(t); !listed || len(claims) != 3 || len(out.Refused) != 1 ||
		!strings.Contains(out.Refused[0].Why, "slot 2 is taken by NodeClaim "+slotName(2)) {
		t.Fatalf("claims %v, outcome %+v: want the launch refused, since the slot was taken", claims, out)
	}
}

// L-14: a claim in a slot counts and keeps its slot after its label was changed by hand. It does not stand for the
// launch, and the refusal shows its label.
func TestARelabelledClaimKeepsItsSlotAndCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t, limit.Limits{HardNodes: 2, SoftNodes: limit.None}, interceptor.Funcs{})
	r.apply(t, planOf(launch(0, "a")))
	var claim karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), client.ObjectKey{Name: slotName(0)}, &claim); err != nil {
		t.Fatal(err)
	}
	claim.Labels[karpenterv1.NodePoolLabelKey] = "elsewhere"
	if err := r.server.Update(t.Context(), &claim); err != nil {
		t.Fatal(err)
	}
	r.store.used = limit.Usage{}
	out := r.apply(t, planOf(launch(0, "a")))
	want := `slot 0 is taken by NodeClaim ` + slotName(0) + `, whose label karpenter.sh/nodepool is "elsewhere"`
	if len(out.Launched) != 0 || len(out.Refused) != 1 || out.Refused[0].Why != want {
		t.Fatalf("outcome %+v: want it refused: %s", out, want)
	}
	if err := r.server.Create(t.Context(), claimIn("old")); err != nil {
		t.Fatal(err)
	}
	out = r.apply(t, planOf(launch(1, "b")))
	if len(out.Refused) != 1 ||
		!strings.Contains(out.Refused[0].Why, "slot 1 is out of use: 2 NodeClaims exist, the NodePool may have 2") {
		t.Fatalf("outcome %+v: want the relabelled claim counted", out)
	}
}

// L-14: what two replicas plan alike is one claim, also when its slot was seen to be taken by it.
func TestTheSameLaunchInATakenSlotIsAdopted(t *testing.T) {
	t.Parallel()
	creates := 0
	r := newRig(t, limit.Limits{HardNodes: 2, SoftNodes: limit.None},
		interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object,
			opts ...client.CreateOption) error {
			creates++
			return c.Create(ctx, o, opts...)
		}})
	r.apply(t, planOf(launch(0, "a")))
	r.store.used = limit.Usage{}
	if out := r.apply(t, planOf(launch(0, "a"))); len(out.Launched) != 1 || creates != 1 {
		t.Fatalf("outcome %+v after %d creates: want the claim adopted without one", out, creates)
	}
}

// L-14: a plan for a pool without a limit does not rely on one look for ever. Here a limit is set after the first
// creates, and time passes as they are made.
func TestALimitSetInTheMiddleOfAPlanStopsTheRest(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*karpenterv1.NodePool){
		"limited": func(p *karpenterv1.NodePool) {
			p.Spec.HardLimits = karpenterv1.Limits{corev1.ResourceName("nodes"): resource.MustParse("1")}
		},
		"deleted": func(p *karpenterv1.NodePool) { p.Finalizers = []string{"example.com/hold"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock, creates := controllertest.NewClock(), 0
			r := newRig(t, limit.Unlimited(),
				interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object,
					opts ...client.CreateOption) error {
					if creates++; creates == 1 {
						var p karpenterv1.NodePool
						if err := c.Get(ctx, client.ObjectKey{Name: "default"}, &p); err != nil {
							return err
						}
						change(&p)
						if err := c.Update(ctx, &p); err != nil {
							return err
						}
						if name == "deleted" {
							if err := c.Delete(ctx, &p); err != nil {
								return err
							}
						}
						clock.Advance(6 * time.Second)
					}
					return c.Create(ctx, o, opts...)
				}})
			r.applier = apply.New(apply.Config{Client: r.server, Live: r.server, Store: r.store,
				Fleet: controllertest.Everything{}, Now: clock.Now, Log: logr.Discard()})
			var launches []plan.Launch
			for i := range 450 {
				launches = append(launches, launch(plan.NoSlot, fmt.Sprint("p", i)))
			}
			out := r.apply(t, planOf(launches...))
			if len(r.claims(t)) != 200 || len(out.Refused) != 250 {
				t.Fatalf("%d claims, %d refused: want those of the first 200 and no more", len(r.claims(t)),
					len(out.Refused))
			}
		})
	}
}

// What took longer than a view may be used is not created, with or without a slot.
func TestAnOldViewIsNotUsed(t *testing.T) {
	t.Parallel()
	clock := controllertest.NewClock()
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{})
	r.applier = apply.New(apply.Config{Client: r.server, Live: r.server, Store: r.store,
		Fleet: controllertest.Everything{}, Now: clock.Now, Log: logr.Discard(), Each: func(n int, do func(int)) {
			for i := range n {
				clock.Advance(10 * time.Second)
				do(i)
			}
		}})
	out := r.apply(t, planOf(launch(plan.NoSlot, "a")))
	if len(out.Refused) != 1 || !strings.Contains(out.Refused[0].Why, "too long ago") {
		t.Fatalf("outcome %+v: want it refused", out)
	}
}
