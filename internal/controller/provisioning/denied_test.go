package provisioning_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/provisioning"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// denier is an API server that refuses the NodeClaims of some pools, and creates the others.
type denier struct {
	denies   map[string]bool
	launches []string // of the last round: the pools
	plans    int
}

func (d *denier) Begin(context.Context) error { return nil }

func (d *denier) Apply(_ context.Context, p plan.Plan) (out apply.Outcome, err error) {
	d.plans++
	for i, l := range p.Launches {
		d.launches = append(d.launches, l.Pool)
		if d.denies[l.Pool] {
			out.Refused = append(out.Refused, apply.Refused{Pool: l.Pool, Why: "policy 'claims' denied request",
				Pods: l.Pods, For: l.For, Denied: true})
			continue
		}
		out.Launched = append(out.Launched, apply.Launched{Claim: fmt.Sprintf("%s-%d", l.Pool, i), Pool: l.Pool,
			Pods: l.Pods, For: l.For})
	}
	return out, nil
}

// denialRig plans for pods of the pools "bad" and "good", which each select theirs.
type denialRig struct {
	*rig
	t      *testing.T
	server *denier
	static int64 // replicas of the pool "bad"
}

func newDenialRig(t *testing.T) *denialRig {
	r := &denialRig{rig: newRig(), t: t, server: &denier{denies: map[string]bool{"bad": true}}}
	set := metrics.New(prometheus.NewRegistry())
	r.step = provisioning.New(provisioning.Config{
		Picture: r.picture, Applier: r.server, Brake: provisioning.NewBrake(), InVain: set.Pools.InVain,
		Told: func(string) {}, Window: r.window, Events: r.tape, Metrics: set.Plans,
		Ready: func() bool { return true }, Now: r.clock.Now, Log: logr.Discard(),
	})
	return r
}

// podsOf returns pods of nearly a machine each that want nodes of a pool, "" for any.
func podsOf(pool string, names ...string) (pods []*cluster.Pod) {
	shape := &cluster.Shape{Namespace: "default", Requests: resources.Vector{1500}}
	if pool != "" {
		shape.Alternatives = []cluster.Alternative{{
			Labels: requirement.NewSet(requirement.OneOf(cluster.LabelPool, pool)),
			Names:  requirement.Any("metadata.name"),
		}}
	}
	for _, name := range names {
		pods = append(pods, &cluster.Pod{UID: "uid-" + name, Namespace: "default", Name: name, Shape: shape})
	}
	return pods
}

// round plans after a while for these pods, and returns the pools of the launches.
func (r *denialRig) round(after time.Duration, pods ...*cluster.Pod) string {
	r.t.Helper()
	r.clock.Advance(after)
	offer := catalog.NewIndex(catalog.Catalog{Types: []catalog.Type{{
		Name: "t", Capacity: resources.Amounts{"cpu": 2000, "pods": 10},
		Offerings: []catalog.Offering{{Zone: "a", CapacityType: catalog.Spot, Available: true}},
	}}}, resources.NewSpace())
	pools := []*cluster.Pool{
		{Name: "bad", UID: "b", Weight: 10, Limits: limit.Unlimited(), Catalog: offer, Static: r.static > 0,
			Replicas: r.static},
		{Name: "good", UID: "g", Limits: limit.Unlimited(), Catalog: offer},
	}
	for _, pool := range pools {
		pool.Requirements = requirement.NewSet(requirement.OneOf(cluster.LabelPool, pool.Name))
	}
	for i := range int(r.static) {
		pools[0].FreeSlots = append(pools[0].FreeSlots, i)
	}
	r.picture.snapshot = cluster.New(cluster.Snapshot{Version: r.picture.snapshot.Version + 1,
		Names: r.picture.snapshot.Names, Pools: pools, Pending: pods})
	r.server.launches = nil
	if _, err := r.step.Reconcile(r.t.Context(), reconcile.Request{}); err != nil {
		r.t.Fatal(err)
	}
	slices.Sort(r.server.launches)
	return strings.Join(r.server.launches, " ")
}

func (r *denialRig) want(want, what string, after time.Duration, pods ...*cluster.Pod) {
	r.t.Helper()
	if got := r.round(after, pods...); got != want {
		r.t.Fatalf("%s: launches %q, want %q", what, got, want)
	}
}

// P-12, P-35: a pool whose NodeClaims the API server refuses launches nothing for such pods for a while, then one node
// as a try, ever more rarely. The pods and the pool are told who refuses. Other pools are not slowed, and once a try
// is accepted, all pods get their nodes.
func TestDeniedLaunchesAreHeldBack(t *testing.T) {
	t.Parallel()
	r := newDenialRig(t)
	bad, good := podsOf("bad", "a", "b", "c"), podsOf("good", "x")
	all := slices.Concat(bad, good)
	r.want("bad bad bad good", "the first time", 0, all...)
	const told = "the API server refuses its NodeClaims: policy 'claims' denied request; that was try 1, the next"
	said := func(prefix string) bool {
		return slices.ContainsFunc(r.tape.Said(), func(s string) bool {
			return strings.HasPrefix(s, prefix) && strings.Contains(s, told)
		})
	}
	if !said("bad LaunchesInVain: ") {
		t.Errorf("said %q: want it on the pool", r.tape.Said())
	}
	r.want("good", "a second later", time.Second, all...)
	for _, pod := range bad {
		if !said(pod.Name + " FailedScheduling: LaunchesInVain: pool bad: ") {
			t.Errorf("said %q: want it on pod %s", r.tape.Said(), pod.Name)
		}
	}
	r.want("good", "just before the try", 8*time.Second, all...)
	r.want("bad good", "one try", time.Second, all...)
	r.want("good", "twice as long", 19*time.Second, all...)
	r.want("bad good", "the next try", time.Second, all...)
	for range 8 {
		r.round(5*time.Minute, all...)
	}
	r.want("good", "no longer than five minutes", 5*time.Minute-time.Second, all...)
	r.server.denies["bad"] = false
	r.want("bad good", "a try that is accepted", time.Second, all...)
	r.want("bad bad good", "then all at once", 0, slices.Concat(bad[1:], good)...)
}

// P-35: pods that another pool may have go there at once.
func TestDeniedPodsGoToAnotherPool(t *testing.T) {
	t.Parallel()
	r := newDenialRig(t)
	pods := podsOf("", "a", "b")
	r.want("bad bad", "the pool with the larger weight first", 0, pods...)
	r.want("good good", "and then the other one", time.Second, pods...)
	r.want("good good", "no try is needed when it is due", 10*time.Second, pods...)
	plans := r.server.plans
	for range 3 { // and nothing is new
		if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	if more := r.server.plans - plans; more > 0 {
		t.Errorf("%d more plans for a try that is not needed", more)
	}
}

// D-12, P-35: so it is with the nodes of a static pool. What nobody wants any more is forgotten.
func TestDeniedReplicasAreHeldBack(t *testing.T) {
	t.Parallel()
	r := newDenialRig(t)
	r.static = 3
	good := podsOf("good", "x")
	r.want("bad bad bad good", "the first time", 0, good...)
	r.want("good", "a second later", time.Second, good...)
	r.want("bad good", "one try", 10*time.Second, good...)
	r.static = 0
	r.want("good", "no replicas any more", time.Minute, good...)
	r.static = 3
	r.want("bad bad bad good", "later, anew", time.Minute, good...)
}
