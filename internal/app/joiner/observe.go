package joiner

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/foretell"
	"github.com/joiner-autoscaler/joiner/internal/kube"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// This file is --observe-only (K-26): the process plans beside whatever program acts in the cluster, and writes
// nothing. Its client drops what controllers write, and a transport below refuses all other writes.

const (
	// gather is how long pods are gathered before a plan: less than Karpenter's second, so that they are still
	// waiting.
	gather       = 400 * time.Millisecond
	observeEvery = time.Second      // how often to check whether something is due
	disruptEvery = 10 * time.Second // how often to look for nodes to remove, at most
	restEvery    = 30 * time.Second // how often to simulate the cluster to its end, at most
)

// readsOnly refuses every request other than get, list and watch.
type readsOnly struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r readsOnly) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Method != http.MethodGet && q.Method != http.MethodHead {
		return nil, fmt.Errorf("%s %s is not sent: this process only observes", q.Method, q.URL.Path)
	}
	return r.next.RoundTrip(q)
}

// WrappedRoundTripper is how client-go finds the transport below.
func (r readsOnly) WrappedRoundTripper() http.RoundTripper { return r.next }

// onlooker is a client that drops writes and reports success: a controller does not repeat a write until it sees a
// change.
type onlooker struct{ client.Client }

func (onlooker) Create(context.Context, client.Object, ...client.CreateOption) error { return nil }
func (onlooker) Update(context.Context, client.Object, ...client.UpdateOption) error { return nil }
func (onlooker) Delete(context.Context, client.Object, ...client.DeleteOption) error { return nil }
func (onlooker) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return nil
}
func (onlooker) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return nil
}
func (onlooker) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return nil
}
func (onlooker) Status() client.SubResourceWriter { return unsent{} }
func (o onlooker) SubResource(name string) client.SubResourceClient {
	return onlookerOf{o.Client.SubResource(name), unsent{}}
}

// unsent drops writes of subresources.
type unsent struct{}

func (unsent) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return nil
}
func (unsent) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return nil
}
func (unsent) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return nil
}
func (unsent) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return nil
}

type onlookerOf struct {
	client.SubResourceReader
	unsent
}

// onlooking returns the controllers of a process that only observes: those of NodePools and NodeOverlays, since they
// bring the catalogues, those of providers that write nothing, and the one that notes pending pods.
func (c *composition) onlooking() []kube.Controller {
	pods := kube.Controller{Name: Provisioning, Workers: 1, Start: true, Reconciler: c.pending}
	return append(append(c.pools(), pods),
		slices.DeleteFunc(c.provided(), func(each kube.Controller) bool { return !each.Looks })...)
}

// pendingPods is a step function that reports launches some time after it was woken.
type pendingPods struct {
	now   func() time.Time
	ready func() bool
	tell  func() // set before the first step
	due   time.Time
}

// Reconcile implements reconcile.Reconciler. It must have one worker only.
func (p *pendingPods) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	now := p.now()
	switch {
	case !p.ready():
		return reconcile.Result{RequeueAfter: gather}, nil
	case p.due.IsZero():
		p.due = now.Add(gather)
	}
	if left := p.due.Sub(now); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	p.due = time.Time{}
	p.tell()
	return reconcile.Result{}, nil
}

// observer logs and counts what Joiner would do.
type observer struct {
	client   client.Client // reads from a cache
	kinds    []client.Object
	store    *world.Store
	fleet    world.Owners
	standing *standing
	settings Settings
	picture  world.Config // what the store was made with
	metrics  metrics.Observed
	ready    func() bool
	now      func() time.Time
	log      logr.Logger

	// planned has what a launch was logged for: pending pods by UID, and missing replicas of static pools. going has
	// the removals that were logged and still stand, by claim and reason.
	planned, going          map[string]bool
	nextDisrupted, nextRest time.Time
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: an observer needs no leader.
func (*observer) NeedLeaderElection() bool { return false }

// Start looks until ctx ends.
func (o *observer) Start(ctx context.Context) error {
	ticker := time.NewTicker(observeEvery)
	defer ticker.Stop()
	for {
		if o.ready() {
			if err := o.look(ctx); err != nil && ctx.Err() == nil {
				o.log.Info("could not observe", "reason", err.Error())
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// look logs what is new among the launches and removals, and from time to time where they would lead.
func (o *observer) look(ctx context.Context) error {
	snapshot := o.store.Snapshot()
	if now := o.now(); !now.Before(o.nextDisrupted) {
		if err := o.removals(ctx, snapshot); err != nil {
			return err
		}
		done := o.now()
		o.nextDisrupted = done.Add(max(disruptEvery, stayShare*done.Sub(now)))
	}
	if now := o.now(); !now.Before(o.nextRest) {
		if err := o.rest(ctx); err != nil {
			return err
		}
		done := o.now()
		o.nextRest = done.Add(max(restEvery, stayShare*done.Sub(now)))
	}
	return nil
}

// launches logs each launch for pods that had none logged before. It misses pods that get a node before it looks.
func (o *observer) launches() {
	snapshot := o.store.Snapshot()
	told := map[string]bool{}
	for _, pod := range slices.Concat(snapshot.Pending, snapshot.Buffers) {
		if o.planned[pod.UID] {
			told[pod.UID] = true
		}
	}
	replicas := map[string]int{}
	for _, launch := range engine.Launches(snapshot).Launches {
		cause, about := apply.CausePending, make([]string, 0, len(launch.Pods))
		for _, pod := range launch.Pods {
			about = append(about, pod.UID)
		}
		if len(about) == 0 && len(launch.Buffers) > 0 {
			cause = apply.CauseBuffer
			for _, pod := range launch.Buffers {
				about = append(about, pod.UID)
			}
		}
		if len(about) == 0 { // of a pool's own number: the first missing node, the second one ...
			if cause = apply.CauseReplicas; slices.Contains(launch.For, plan.AskFloor) {
				cause = apply.CauseFloor
			}
			about = []string{fmt.Sprintf("%s %d", launch.Pool, replicas[launch.Pool])}
			replicas[launch.Pool]++
		}
		fresh := false
		for _, each := range about {
			fresh = fresh || !o.planned[each]
			told[each] = true
		}
		if !fresh {
			continue
		}
		o.metrics.Launches.WithLabelValues(launch.Pool, cause).Inc()
		o.log.Info("would launch", "observed", true, "cause", cause, "pool", launch.Pool,
			"pods", len(launch.Pods), "types", launch.Types[:min(len(launch.Types), 3)],
			"pricePerHour", priceOf(launch.Cheapest.Price.OfNode()))
	}
	o.planned = told
}

// removals logs each node that a method would remove now, within the budgets.
func (o *observer) removals(ctx context.Context, snapshot *cluster.Snapshot) error {
	var pools karpenterv1.NodePoolList
	if err := o.client.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing NodePools: %w", err)
	}
	terms := o.standing.terms(snapshot, pools.Items, o.now())
	going := map[string]bool{}
	plans := []plan.Plan{engine.Trim(snapshot, terms.Budgets)}
	for _, method := range engine.Methods() {
		plans = append(plans, method.Plan(snapshot, terms))
	}
	for _, p := range plans {
		for _, r := range p.Removes {
			key := r.Claim + " " + string(r.Reason)
			if going[key] = true; o.going[key] {
				continue
			}
			o.metrics.Removals.WithLabelValues(r.Pool, string(r.Reason)).Inc()
			o.log.Info("would remove", "observed", true, "cause", r.Reason, "pool", r.Pool, "claim", r.Claim,
				"node", r.Node, "replacements", len(p.Launches), "pricePerHour", priceOf(r.Price.OfNode()), "why",
				r.Why)
		}
	}
	o.going = going
	return nil
}

func priceOf(price resources.Money) any {
	if price == resources.Unpriced {
		return "unknown"
	}
	return price.Dollars()
}

// rest simulates the cluster until nothing changes, and shows how many nodes each pool has then and what they cost.
func (o *observer) rest(ctx context.Context) error {
	var objects []client.Object
	for _, kind := range o.kinds {
		some, err := o.list(ctx, kind)
		if err != nil {
			return err
		}
		objects = append(objects, some...)
	}
	config := o.picture
	config.Commitments = o.store.Snapshot().Commitments // their file may be another one than at the start
	stage, err := foretell.New(foretell.Input{Objects: objects, Offers: o.store.Catalogs(), Fleet: o.fleet,
		Now: o.now(), Config: config, MinSaving: o.settings.MinSaving,
		MinSavingPercent: o.settings.MinSavingPercent, SpotToSpot: o.settings.SpotToSpot})
	if err != nil {
		return fmt.Errorf("foretelling: %w", err)
	}
	stage.Plan()
	stage.Settle()
	nodes, prices := map[string]int{}, map[string]resources.Money{}
	snapshot := stage.Snapshot()
	for _, pool := range snapshot.Pools {
		nodes[pool.Name] = 0
	}
	for _, node := range snapshot.Nodes {
		if _, ours := nodes[node.Pool]; !ours {
			continue
		}
		if nodes[node.Pool]++; node.Price != resources.Unpriced {
			prices[node.Pool] += node.Price
		}
	}
	o.metrics.Nodes.Reset()
	o.metrics.Cost.Reset()
	for pool, n := range nodes {
		o.metrics.Nodes.WithLabelValues(pool).Set(float64(n))
		o.metrics.Cost.WithLabelValues(pool).Set(prices[pool].Dollars())
		o.log.Info("would come to rest", "observed", true, "pool", pool, "nodes", n, "pricePerHour",
			prices[pool].Dollars(), "waiting", len(stage.Unplaced()), "atRest", stage.Record().Quiet)
	}
	return nil
}

// list returns all objects of a kind.
func (o *observer) list(ctx context.Context, kind client.Object) ([]client.Object, error) {
	gvk, err := apiutil.GVKForObject(kind, o.client.Scheme())
	if err != nil {
		return nil, err
	}
	made, err := o.client.Scheme().New(schema.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind +
		"List"})
	if err != nil {
		return nil, err
	}
	list, is := made.(client.ObjectList)
	if !is {
		return nil, fmt.Errorf("%T is no list of objects", made)
	}
	if err := o.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing %ss: %w", gvk.Kind, err)
	}
	var objects []client.Object
	return objects, meta.EachListItem(list, func(each runtime.Object) error {
		if object, is := each.(client.Object); is {
			objects = append(objects, object)
		}
		return nil
	})
}
