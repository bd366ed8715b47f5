package joiner

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// still is a picture that does not change by itself.
type still struct{ snapshot *cluster.Snapshot }

func (s *still) Snapshot() *cluster.Snapshot { return s.snapshot }

type owner struct{}

func (owner) OwnsPool(*karpenterv1.NodePool) bool { return true }

// looking looks at a cluster of a script, with a NodePool object for each of these names.
func looking(t *testing.T, script string, pools ...string) (*standing, *still, *prometheus.Registry) {
	t.Helper()
	snapshot, err := enginetest.Parse(script)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := karpenterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server := fake.NewClientBuilder().WithScheme(scheme)
	for i, name := range pools {
		pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pool.Status.Conditions = []karpenterv1.Condition{
			{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready"},
		}
		if i > 0 {
			pool.Status.Conditions[0].Status = metav1.ConditionFalse
		}
		server.WithObjects(pool)
	}
	gone := metav1.Unix(1_000_000-90, 0)
	server.WithObjects(&karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "old-claim", DeletionTimestamp: &gone,
			Finalizers: []string{"karpenter.sh/termination"}}})
	registry, picture := prometheus.NewRegistry(), &still{snapshot}
	s := &standing{client: server.Build(), picture: picture, fleet: owner{}, metrics: metrics.New(registry),
		paused: func() string { return "" }, ready: func() bool { return true },
		now: func() time.Time { return time.Unix(1_000_000, 0) }, log: logr.Discard()}
	s.metrics.Plans.Latest.Set(engine.Provision(snapshot))
	return s, picture, registry
}

// scrape returns the series of joiner's own metrics with their values. Histograms and counters have the value 0. count
// includes the buckets, sums and counts of histograms.
func scrape(t *testing.T, registry *prometheus.Registry) (series map[string]float64, count int) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series = map[string]float64{}
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "joiner_") {
			continue
		}
		for _, metric := range family.GetMetric() {
			var pairs []string
			for _, label := range metric.GetLabel() {
				pairs = append(pairs, label.GetName()+"="+label.GetValue())
			}
			series[family.GetName()+"{"+strings.Join(pairs, ",")+"}"] = metric.GetGauge().GetValue()
			count++
			if h := metric.GetHistogram(); h != nil {
				count += len(h.GetBucket()) + 2 // +Inf, sum and count, of which one is counted
			}
		}
	}
	return series, count
}

const oneOfEach = `
type m cpu=4 mem=16Gi zones=a,b od=0.2 spot=0.1
pool default nodes=2
pool other
node n1  type=m zone=a pool=default capacity=on-demand drifted do-not-disrupt
node n2  type=m zone=b pool=default capacity=spot
node old type=m zone=b pool=other capacity=spot deleting
pod huge cpu=64
`

// U-10: a look shows waiting pods by cause, nodes by state, prices, limits, nodes that stay, and drains. What is gone
// at the next look is no longer shown. A replica that does not lead shows nothing.
func TestU10_HowTheClusterStandsIsShown(t *testing.T) {
	t.Parallel()
	s, picture, registry := looking(t, oneOfEach, "default", "other")
	if err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	shown, _ := scrape(t, registry)
	for series, want := range map[string]float64{
		"joiner_pods_waiting{cause=PodTooLarge,nodepool=default}":                 1,
		"joiner_nodepool_limited{limit=soft_nodes,nodepool=default}":              0,
		"joiner_price_dollars_per_hour{capacity_type=on-demand,nodepool=default}": 0.2,
		"joiner_price_dollars_per_hour{capacity_type=spot,nodepool=default}":      0.1,
		"joiner_unpriced_nodes{}": 0,
		"joiner_nodes_staying{cause=DoNotDisruptNode,nodepool=default}": 1,
		"joiner_nodes{nodepool=default,state=ready}":                    2,
		"joiner_nodes{nodepool=other,state=draining}":                   1,
		"joiner_offerings{nodepool=default}":                            4,
		"joiner_offerings_unavailable{nodepool=default}":                0,
		"joiner_nodepool_ready{nodepool=default}":                       1,
		"joiner_nodepool_ready{nodepool=other}":                         0,
		"joiner_oldest_drain_seconds{nodepool=other}":                   90,
		"joiner_standing_timestamp_seconds{}":                           1_000_000,
		"joiner_leader{}":                                               0,
	} {
		if got, has := shown[series]; !has || got != want {
			t.Errorf("%s is %v, shown %t: want %v", series, got, has, want)
		}
	}
	if t.Failed() {
		t.Logf("shown: %v", shown)
	}
	s.metrics.Own.Stages.WithLabelValues("other", metrics.StageLaunched).Observe(1)
	less, err := enginetest.Parse("type m cpu=4 mem=16Gi zones=a od=0.2\npool default\n")
	if err != nil {
		t.Fatal(err)
	}
	picture.snapshot, s.nextStay = less, time.Time{}
	if err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	shown, _ = scrape(t, registry)
	for series := range shown {
		if strings.Contains(series, "other") && !strings.Contains(series, "nodepool_ready") ||
			strings.Contains(series, "staying") || strings.Contains(series, "waiting") ||
			strings.Contains(series, "limited") {
			t.Errorf("%s is still shown", series)
		}
	}
	s.metrics.Own.Standing.Show(nil)
	shown, _ = scrape(t, registry)
	for _, own := range []string{"leader", "voluntary_disruption_paused", "takeover_grace_seconds",
		"last_plan_timestamp_seconds", "plan_duration_seconds", "plan_pods"} {
		delete(shown, "joiner_"+own+"{}")
	}
	if len(shown) > 0 {
		t.Errorf("a replica that does not lead shows %v", shown)
	}
}

// U-10: a replica says that it leads while it does, and what it shows goes with that.
func TestU10_TheLeaderShowsItself(t *testing.T) {
	t.Parallel()
	s, _, registry := looking(t, oneOfEach, "default")
	ctx, end := context.WithCancel(t.Context())
	leads := 0.0
	s.ready = func() bool {
		shown, _ := scrape(t, registry)
		leads = shown["joiner_leader{}"]
		end()
		return true
	}
	if err := s.Start(ctx); err != nil || leads != 1 || !s.NeedLeaderElection() {
		t.Errorf("joiner_leader is %v while it leads, error %v", leads, err)
	}
	shown, _ := scrape(t, registry)
	if _, still := shown["joiner_unpriced_nodes{}"]; still || shown["joiner_leader{}"] != 0 {
		t.Errorf("after that it shows %v", shown)
	}
}

// U-10, B-22: while nothing changes that the answer depends on, what stays is not asked again, for ten minutes.
func TestU10_WhatStaysIsAskedOnce(t *testing.T) {
	t.Parallel()
	s, picture, registry := looking(t, oneOfEach, "default")
	now, before := time.Unix(1_000_000, 0), *picture.snapshot
	s.now = func() time.Time { return now }
	staying := func() bool {
		if err := s.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		shown, _ := scrape(t, registry)
		return shown["joiner_nodes_staying{cause=DoNotDisruptNode,nodepool=default}"] == 1
	}
	free, err := enginetest.Parse(strings.ReplaceAll(oneOfEach, " drifted do-not-disrupt", ""))
	if err != nil {
		t.Fatal(err)
	}
	same, later := *free, *free
	same.Version, later.Version = before.Version, before.Version+1
	for i, step := range []struct {
		after    time.Duration
		snapshot *cluster.Snapshot
		want     bool
	}{
		{0, &before, true}, {time.Minute, &before, true}, {time.Minute, &later, false}, {time.Minute, &before, true},
		{time.Minute, &same, true}, {stayFor, &same, false},
	} {
		now = now.Add(step.after)
		if picture.snapshot = step.snapshot; staying() != step.want {
			t.Errorf("step %d: the node is counted: %t, want %t", i, !step.want, step.want)
		}
	}
}

// U-10: what takes long is not asked again at once.
func TestU10_WhatStaysIsAskedRarely(t *testing.T) {
	t.Parallel()
	s, picture, registry := looking(t, oneOfEach, "default")
	now := time.Unix(1_000_000, 0)
	s.now = func() time.Time { now = now.Add(2 * time.Second); return now } // each question takes two seconds
	if err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rest := s.nextStay.Sub(now); rest != 40*time.Second {
		t.Errorf("it is asked again after %s, want 20 times what it took", rest)
	}
	picture.snapshot = cluster.New(cluster.Snapshot{})
	if err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if shown, _ := scrape(t, registry); shown["joiner_nodes_staying{cause=DoNotDisruptNode,nodepool=default}"] != 1 {
		t.Error("what stays is forgotten before it is asked again")
	}
}

// U-10: the number of series is bounded, with every cause, state, capacity type, stage, decision and kind in use: 300,
// 60 for each pool, and one for each pool and cause in use. No label has the name of a pod, a node or a claim.
func TestU10_TheSeriesAreBounded(t *testing.T) {
	t.Parallel()
	const pools = 40
	registry := prometheus.NewRegistry()
	set, requests := metrics.New(registry), metrics.NewRequests(registry)
	n, used := view.Numbers{Waiting: map[view.CauseOfPool]int{}, Limited: map[view.PoolLimit]bool{},
		Staying: map[view.CauseOfPool]int{}, Nodes: map[view.PoolState]int{}, Offers: map[string]view.Offers{},
		Hard: map[string]view.HardLimit{}}, 0
	var rows []metrics.Row
	for i := range pools {
		pool := fmt.Sprint("pool-", i)
		for _, code := range cause.WaitingCodes() {
			n.Waiting[view.CauseOfPool{Cause: code, Pool: pool}],
				n.Staying[view.CauseOfPool{Cause: code, Pool: pool}] = 1, 1
			used += 2
		}
		for _, state := range view.NodeStates() {
			n.Nodes[view.PoolState{Pool: pool, State: state}] = 1
		}
		for _, which := range []string{"cpu", "memory", "nvidia.com/gpu", view.LimitSoftNodes, view.LimitHardNodes} {
			n.Limited[view.PoolLimit{Pool: pool, Limit: which}] = true
		}
		n.Offers[pool], n.Hard[pool] = view.Offers{All: 1}, view.HardLimit{Most: 1}
		for _, stage := range []string{metrics.StageLaunched, metrics.StageRegistered, metrics.StageInitialized} {
			set.Own.Stages.WithLabelValues(pool, stage).Observe(1)
		}
		for _, family := range []metrics.Family{metrics.NodepoolReady, metrics.OldestDrain} {
			rows = append(rows, metrics.Row{Family: family, Labels: []string{pool}})
		}
		for _, capacity := range []string{"spot", "on-demand", "reserved"} {
			rows = append(rows, metrics.Row{Family: metrics.Price, Labels: []string{pool, capacity}})
		}
	}
	set.Own.Standing.Show(append(rows, rowsOf(n)...))
	for _, d := range everyDecision() {
		set.Own.Decisions.WithLabelValues(string(d.Verb), d.Cause, string(d.Outcome)).Inc()
	}
	for _, call := range usualCalls() {
		verb, kind := (&counting{kinds: kindsCalled()}).callOf(call)
		requests.WithLabelValues(verb, kind).Inc()
	}
	_, count := scrape(t, registry)
	if bound := 300 + 60*pools + used; count > bound || count < 50*pools {
		t.Errorf("%d series of %d pools and %d causes in use, want at most %d", count, pools, used, bound)
	}
}

// everyDecision has all that can be told.
func everyDecision() (all []apply.Decision) {
	reasons := []string{string(plan.Empty), string(plan.Underutilized), string(plan.Drifted), string(plan.Expired),
		string(plan.NodeLimitExceeded), string(plan.ReplicasExceeded), string(plan.ReplacementAbandoned), "Other"}
	for _, reason := range reasons {
		for _, outcome := range []apply.Result{apply.Planned, apply.Done, apply.TakenBack} {
			all = append(all, apply.Decision{Verb: apply.Remove, Cause: reason, Outcome: outcome})
		}
	}
	for _, outcome := range []apply.Result{apply.Done, apply.NotHeld, apply.Failed} {
		for _, why := range []string{apply.CausePending, apply.CauseReplicas} {
			all = append(all, apply.Decision{Verb: apply.Launch, Cause: why, Outcome: outcome})
		}
		for _, reason := range reasons {
			all = append(all, apply.Decision{Verb: apply.Replace, Cause: reason, Outcome: outcome})
		}
	}
	return all
}

// usualCalls are what the controllers do at most: all kinds are listed and watched, and read and written one by one.
func usualCalls() (calls []*http.Request) {
	for resource := range kindsCalled() {
		for _, call := range []string{"GET /apis/g/v1/%s", "GET /apis/g/v1/%s?watch=true", "GET /apis/g/v1/%s/x",
			"PATCH /apis/g/v1/%s/x"} {
			method, path, _ := strings.Cut(fmt.Sprintf(call, resource), " ")
			calls = append(calls, httptest.NewRequest(method, path, nil))
		}
	}
	return calls
}

// U-10: a call counts by what it does and to what; what no controller of ours works with makes no series of its own.
func TestU10_CallsAreCounted(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	registry := prometheus.NewRegistry()
	config := countingCalls(&rest.Config{Host: server.URL}, metrics.NewRequests(registry))
	through, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]string{
		"GET /api/v1/nodes":                                                "kind=Node,verb=list",
		"GET /api/v1/nodes/n1":                                             "kind=Node,verb=get",
		"GET /api/v1/pods?watch=true":                                      "kind=Pod,verb=watch",
		"GET /api/v1/namespaces":                                           "kind=Namespace,verb=list",
		"GET /api/v1/namespaces/a":                                         "kind=Namespace,verb=get",
		"POST /api/v1/namespaces/a/pods/p/eviction":                        "kind=Eviction,verb=create",
		"PATCH /apis/karpenter.sh/v1/nodeclaims/c/status":                  "kind=NodeClaim,verb=patch",
		"DELETE /apis/karpenter.sh/v1/nodeclaims/d":                        "kind=NodeClaim,verb=delete",
		"PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l": "kind=Lease,verb=update",
		"GET /apis/acme.com/v1/namespaces/a/rockets/r":                     "kind=other,verb=get",
		"GET /openapi/v3":                                                  "kind=other,verb=list",
	} {
		method, path, _ := strings.Cut(call, " ")
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := through.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if shown, _ := scrape(t, registry); len(shown) == 0 {
			t.Fatalf("%s is not counted", call)
		} else if _, counted := shown["joiner_api_requests_total{"+want+"}"]; !counted {
			t.Errorf("%s is not counted as %s: %v", call, want, shown)
		}
	}
}
