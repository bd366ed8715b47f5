package joiner

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics/state"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
	kwokplug "github.com/joiner-autoscaler/joiner/internal/provider/kwok/plug"
)

// scraping answers scrapes of a cluster of these objects; leads says whether this replica does.
func scraping(pods *[]client.Object, leads *bool, o Observability) *scraper {
	registry := prometheus.NewRegistry()
	none := func() []client.Object { return nil }
	s := &scraper{counted: registry, options: o.served(nil), metrics: metrics.New(registry),
		leads:  func() bool { return *leads },
		synced: func() bool { return true }, picture: &still{cluster.New(cluster.Snapshot{})}, nodes: none,
		claims: none, pools: none, buffers: none,
		pods: func() []client.Object { return *pods }, now: func() time.Time {
			return time.Unix(100,
				0)
		}, log: logr.Discard()}
	if o.DisableClusterStateObservability {
		s.hidden = state.Observed()
	}
	return s
}

// gathered are how many series a scrape has, by name.
func gathered(t *testing.T, s *scraper) map[string]int {
	t.Helper()
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("a scrape is answered %d: %s", answer.Code, answer.Body)
	}
	var names []string
	for line := range strings.Lines(answer.Body.String()) {
		if name, is := strings.CutPrefix(line, "# TYPE "); is {
			names = append(names, strings.Fields(name)[0])
		}
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("the metrics are in no order, or twice there: %v", names)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]int{}
	for name, f := range families {
		series[name] = len(f.Metric)
	}
	return series
}

func podNamed(name string) client.Object {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
}

// K-13: a series goes with its object, at the next scrape; a replica that does not lead has none.
func TestK13_SeriesGoWithTheirObjects(t *testing.T) {
	t.Parallel()
	pods, leads := []client.Object{podNamed("one"), podNamed("two")}, true
	s := scraping(&pods, &leads, defaultObservability())
	if n := gathered(t, s)["karpenter_pods_state"]; n != 2 {
		t.Errorf("%d series, want 2", n)
	}
	pods = pods[:1]
	if n := gathered(t, s)["karpenter_pods_state"]; n != 1 {
		t.Errorf("%d series after a pod has gone, want 1", n)
	}
	leads = false
	series := gathered(t, s)
	if series["karpenter_pods_state"] != 0 || series["karpenter_cluster_state_synced"] != 0 ||
		series["joiner_leader"] != 1 {
		t.Errorf("a replica that does not lead shows %v", series)
	}
}

// K-12: above the most series the largest metric is left out, and that is a metric itself, until there are fewer.
func TestK12_WhatIsLeftOutIsShown(t *testing.T) {
	t.Parallel()
	var pods []client.Object
	leads, few := true, defaultObservability()
	few.MetricsMaxSeries = 50
	for i := range 100 {
		pods = append(pods, podNamed(fmt.Sprint("p", i)))
	}
	s := scraping(&pods, &leads, few)
	if series := gathered(t, s); series["karpenter_pods_state"] != 0 || series["joiner_metrics_family_dropped"] != 1 {
		t.Errorf("100 pods: %v", series)
	}
	pods = pods[:10]
	if series := gathered(t, s); series["karpenter_pods_state"] != 10 || series["joiner_metrics_family_dropped"] != 0 {
		t.Errorf("10 pods: %v", series)
	}
}

// K-08: without observability neither gauges of the state of the cluster are there nor what is counted of pods.
func TestK08_WithoutObservabilityPodsAreNotShown(t *testing.T) {
	t.Parallel()
	pods, leads, without := []client.Object{podNamed("one")}, true, defaultObservability()
	without.DisableClusterStateObservability = true
	s := scraping(&pods, &leads, without)
	s.metrics.Pods.Bound.WithLabelValues("false").Observe(1)
	s.metrics.Pools.Limit.Show("a", map[string]float64{"cpu": 1})
	s.metrics.Nodes.Created.WithLabelValues("a", "b").Inc()
	series := gathered(t, s)
	if series["karpenter_pods_state"]+series["karpenter_pods_bound_duration_seconds"]+
		series["karpenter_nodepools_limit"] != 0 || series["karpenter_nodes_created_total"] != 1 {
		t.Errorf("shown are %v", series)
	}
}

// K-08: with the provider for KWOK series of nodes have the labels that Karpenter has with its own.
func TestK08_ProvidersSayWhichLabelsTheirNodesHave(t *testing.T) {
	t.Parallel()
	kwok := kwokplug.New()
	if err := kwok.Load(); err != nil {
		t.Fatal(err)
	}
	parts, err := kwok.New(t.Context(), plugin.Deps{Registerer: prometheus.NewRegistry(), Now: time.Now,
		Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	options := defaultObservability().served([]plugin.Parts{parts})
	if !slices.Equal(options.ClassLabels, []string{"karpenter.kwok.sh/kwoknodeclass"}) {
		t.Errorf("claims name their class by %v", options.ClassLabels)
	}
	for _, f := range state.Served(options) {
		if f.Name == "karpenter_nodes_current_lifetime_seconds" && !slices.Contains(f.Labels, "instance_family") {
			t.Errorf("labels of nodes are %v", f.Labels)
		}
	}
}

// K-12: what is wrong with a flag is said with its name, its value and what is allowed.
func TestK12_WrongFlagsAreNamed(t *testing.T) {
	t.Parallel()
	wrong := Observability{MetricsDetail: "All", MetricsMaxSeries: -1, EventsQPS: -2}
	err := wrong.validate()
	for _, want := range []string{`--metrics-detail is "All": want Karpenter or Bounded`,
		"--metrics-max-series is -1", "--events-qps is -2"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("said is %v, want %s", err, want)
		}
	}
	if err := defaultObservability().validate(); err != nil {
		t.Error(err)
	}
}

// K-14: a change of a condition is an event of the leader, about objects that are ours; that one is heard of is none.
func TestK14_ChangesOfConditionsAreEvents(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	tape := &controllertest.Tape{}
	s.parts.Feed.events = tape
	s.parts.standing.lead(true)
	node := func(name, pool, status string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
			Labels: map[string]string{"karpenter.sh/nodepool": pool}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "Ready",
				Status: corev1.ConditionStatus(status), Reason: "Kubelet"}}}}
	}
	// The store has no pool of another program (see localcluster/e2e/owners_test.go): none is called b.
	s.parts.Feed.Apply(&karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "pool a"}})
	for _, status := range []string{"False", "True", "True"} {
		s.parts.Feed.Apply(node("ours", "a", status))
		s.parts.Feed.Apply(node("theirs", "b", status))
		s.parts.Feed.Apply(node("other", "", status))
	}
	gone := node("ours", "a", "True")
	gone.DeletionTimestamp = &metav1.Time{Time: s.clock.Now()}
	s.parts.Feed.Remove(gone)
	want := []string{"ours Ready: Status condition Ready was False and is True: Kubelet",
		"ours Finalized: It is gone: its last finalizer was taken off"}
	if said := tape.Said(); !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

// K-11: dashboards select by the names of controllers.
func TestK11_ControllersHaveKarpentersNames(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, c := range newStage(t).parts.Controllers {
		names[c.Name] = true
	}
	for _, want := range []string{"provisioner", "disruption", "nodeclaim.lifecycle", "nodeclaim.garbagecollection",
		"node.termination",
		"nodeoverlay.controller"} {
		if !names[want] {
			t.Errorf("controllers are %v, want %s", names, want)
		}
	}
}
