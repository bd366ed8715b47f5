package disruption_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/disruption"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// limitedFleet returns a pool with a hard limit and nodes that are never removed for being empty. Their claims have
// the finalizer, so that deleted ones stay visible.
func limitedFleet(limit string, names ...string) []client.Object {
	objects := fleet("0", names...)
	pool := objects[0].(*karpenterv1.NodePool)
	pool.Spec.HardLimits = karpenterv1.Limits{"nodes": resource.MustParse(limit)}
	pool.Spec.Disruption.ConsolidateAfter.Duration = nil
	for _, o := range objects {
		if claim, ok := o.(*karpenterv1.NodeClaim); ok {
			claim.Finalizers = []string{karpenterv1.TerminationFinalizer}
		}
	}
	return objects
}

// state counts the claims that are marked, and those that are being deleted.
func (r *rig) state(t *testing.T) (marked, deleting []string) {
	t.Helper()
	var list karpenterv1.NodeClaimList
	if err := r.server.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Items {
		switch {
		case c.DeletionTimestamp != nil:
			deleting = append(deleting, c.Name)
		case slices.ContainsFunc(c.Status.Conditions, func(c karpenterv1.Condition) bool {
			return c.Type == karpenterv1.ConditionTypeDisruptionReason
		}):
			marked = append(marked, c.Name)
		}
	}
	return marked, deleting
}

func (r *rig) setLimit(t *testing.T, limit string) {
	t.Helper()
	var pool karpenterv1.NodePool
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, &pool); err != nil {
		t.Fatal(err)
	}
	pool.Spec.HardLimits = karpenterv1.Limits{"nodes": resource.MustParse(limit)}
	if err := r.server.Update(t.Context(), &pool); err != nil {
		t.Fatal(err)
	}
	r.sync(t)
}

// L-40, L-44: above the limit nodes go at once, whatever the budgets say, and pool and claims are told why.
func TestNodesAboveTheLimitGo(t *testing.T) {
	t.Parallel()
	r := newRig(t, limitedFleet("3", "a", "b", "c", "d", "e")...)
	r.reconcile(t)
	if marked, deleting := r.state(t); len(marked) != 2 || len(deleting) != 0 || !r.tainted(t, marked[0]) {
		t.Fatalf("marked %v, deleting %v: want two marked and tainted", marked, deleting)
	}
	r.restart() // L-42: the intents are all that is left
	r.sync(t)
	for range 3 {
		r.reconcile(t)
		r.sync(t)
	}
	if marked, deleting := r.state(t); len(marked) != 0 || len(deleting) != 2 {
		t.Fatalf("marked %v, deleting %v: want two deleted and not one more", marked, deleting)
	}
	said := strings.Join(r.tape.Said(), "\n")
	for _, want := range []string{
		"default NodeLimitExceeded: 5 nodes, limit 3 (hard limit): removing 2",
		"a NodeLimitExceeded: The node is removed, its NodePool has too many: 5 nodes, limit 3 (hard limit)",
		"b NodeLimitExceeded: ",
		"a DisruptionTerminating: The node is removed: NodeLimitExceeded",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("said:\n%s\nwant %s", said, want)
		}
	}
}

// L-42: the limit is raised while nodes go. Deletions continue, nodes only chosen stay, and nothing else is chosen.
func TestARaisedLimitTakesChoicesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, limitedFleet("1", "a", "b", "c")...)
	r.reconcile(t)
	r.setLimit(t, "2")
	for range 3 {
		r.reconcile(t)
		r.sync(t)
	}
	if marked, deleting := r.state(t); len(marked) != 0 || len(deleting) != 1 {
		t.Fatalf("marked %v, deleting %v: want one taken back and one deleted", marked, deleting)
	}
	r.setLimit(t, "3")
	for range 3 {
		r.reconcile(t)
		r.sync(t)
	}
	if marked, deleting := r.state(t); len(marked) != 0 || len(deleting) != 1 {
		t.Fatalf("marked %v, deleting %v: want no change", marked, deleting)
	}
}

// K-52: nothing is trimmed in a paused pool, and nodes only chosen stay. Afterwards trimming goes on.
func TestK52_APausedPoolKeepsItsNodes(t *testing.T) {
	t.Parallel()
	r := newRig(t, limitedFleet("1", "a", "b", "c")...)
	r.reconcile(t)
	if marked, _ := r.state(t); len(marked) != 2 {
		t.Fatalf("marked %v, want two", marked)
	}
	pause := func(annotations map[string]string) {
		t.Helper()
		r.change(t, func(p *karpenterv1.NodePool) { p.Annotations = annotations })
		for range 3 {
			r.reconcile(t)
			r.sync(t)
		}
	}
	pause(map[string]string{karpenterv1.PausedAnnotationKey: karpenterv1.PausedDisrupt})
	if marked, deleting := r.state(t); len(marked) != 0 || len(deleting) != 0 || r.tainted(t, "a") {
		t.Fatalf("marked %v, deleting %v: want all to stay", marked, deleting)
	}
	pause(map[string]string{karpenterv1.PausedAnnotationKey: karpenterv1.PausedLaunch})
	if marked, deleting := r.state(t); len(marked) != 0 || len(deleting) != 2 {
		t.Fatalf("marked %v, deleting %v: want two to go when launching alone is paused", marked, deleting)
	}
}

// pausing is an API server on which something else happens after a list and before its answer is used, and before
// writes of its owner (see second).
type pausing struct {
	client.Reader
	meanwhile func()
}

func (p *pausing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := p.Reader.List(ctx, list, options...)
	p.meanwhile()
	return err
}

// second returns another process on the same API server; both believe they lead.
func second(t *testing.T, r *rig, live *pausing) *rig {
	t.Helper()
	writes := interceptor.NewClient(r.server, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			live.meanwhile()
			return c.Delete(ctx, o, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch,
			options ...client.SubResourcePatchOption) error {
			live.meanwhile()
			return c.SubResource(sub).Patch(ctx, o, patch, options...)
		},
	})
	other := &rig{server: r.server, clock: r.clock, tape: &controllertest.Tape{}}
	other.store = world.New(world.Config{Now: r.clock.Now})
	other.step = disruption.New(disruption.Config{
		Client: r.server, Live: live, Picture: other.store, Fleet: controllertest.Everything{}, Events: other.tape,
		Metrics: metrics.New(prometheus.NewRegistry()),
		Applier: apply.New(apply.Config{Client: writes, Live: r.server, Store: other.store,
			Fleet: controllertest.Everything{}, Now: r.clock.Now, Log: logr.Discard()}),
		Ready: func() bool { return true }, Now: r.clock.Now, Log: logr.Discard(),
	})
	other.sync(t)
	return other
}

// L-42: two controllers with old snapshots and interleaved steps delete the excess and not one node more.
func TestTwoControllersDeleteTheExcessOnly(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		source := rand.New(rand.NewPCG(seed, 0))
		a := newRig(t, limitedFleet("5", "a", "b", "c", "d", "e")...)
		var b *rig
		depth := 0
		live := &pausing{Reader: a.server, meanwhile: func() {
			if depth > 0 || source.IntN(2) == 0 {
				return
			}
			depth++
			defer func() { depth-- }()
			for range source.IntN(3) {
				_, _ = a.step.Reconcile(t.Context(), reconcile.Request{}) // a conflict is tried again
				if source.IntN(2) == 0 {
					a.sync(t)
				}
			}
		}}
		b = second(t, a, live)
		// the two see different loads, and so choose different nodes
		for i, name := range []string{"a", "b", "c", "d", "e"} {
			if i < 3 {
				pod := podOn(name)
				pod.Name, pod.UID = name, types.UID(name)
				if err := a.store.Apply(pod); err != nil {
					t.Fatal(err)
				}
			}
		}
		limit := 2
		a.setLimit(t, fmt.Sprint(limit))
		b.sync(t)
		for range 30 {
			r := []*rig{a, b}[source.IntN(2)]
			_, _ = r.step.Reconcile(t.Context(), reconcile.Request{})
			if source.IntN(2) == 0 {
				[]*rig{a, b}[source.IntN(2)].sync(t)
			}
			if _, deleting := a.state(t); len(deleting) > 3 {
				t.Fatalf("seed %d: %v are deleted, 3 of 5 are too many", seed, deleting)
			}
		}
		for range 10 {
			for _, r := range []*rig{a, b} {
				r.sync(t)
				_, _ = r.step.Reconcile(t.Context(), reconcile.Request{})
			}
		}
		if marked, deleting := a.state(t); len(deleting) != 3 || len(marked) != 0 {
			t.Fatalf("seed %d: %v are deleted, %v marked; want 3 and none in the end", seed, deleting, marked)
		}
	}
}

// L-34: the event has its own words, and a metric counts the same.
func TestTheHardLimitIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	pool := newPool("100%")
	r.step.ReportHardLimit(pool, plan.Underutilized)
	want :=
		"default DisruptionBlocked: No allowed disruptions for disruption reason Underutilized due to node hard limit"
	if !slices.Contains(r.tape.Said(), want) {
		t.Errorf("said %q; want %q", r.tape.Said(), want)
	}
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "karpenter_nodepools_disruptions_blocked_by_node_limit_total" &&
			family.GetMetric()[0].GetCounter().GetValue() == 1 {
			return
		}
	}
	t.Errorf("the metric does not say 1: %v", families)
}
