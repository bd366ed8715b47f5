package joiner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics/state"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
)

// This file answers a scrape: registered metrics, and gauges of nodes, pods and conditions. The gauges are made for
// each scrape from what the watches have shown (K-13). A replica that does not lead shows no gauges.

// Observability configures metrics and events. The fields are named like their flags.
type Observability struct {
	// DisableClusterStateObservability leaves out the gauges of nodes, pods and conditions, as in Karpenter.
	DisableClusterStateObservability bool
	MetricsDetail                    string // DetailKarpenter or DetailBounded
	MetricsMaxSeries                 int    // 0 is any number
	DeprecatedMetrics                bool   // conditions by their old names too
	ConditionEvents                  bool   // an event for each change of a condition
	EventsQPS                        int    // per second, for all reasons together; 0 is any number
}

// Values of MetricsDetail (K-12), for the state of the cluster: serve everything that Karpenter serves, or only sums,
// without names of nodes and pods.
const (
	DetailKarpenter = "Karpenter"
	DetailBounded   = "Bounded"
)

// defaultObservability returns defaults that serve what Karpenter serves.
func defaultObservability() Observability {
	return Observability{MetricsDetail: DetailKarpenter, MetricsMaxSeries: 500_000, DeprecatedMetrics: true,
		ConditionEvents: true, EventsQPS: 20}
}

func (o Observability) validate() error {
	var faults []error
	if o.MetricsDetail != DetailKarpenter && o.MetricsDetail != DetailBounded {
		faults = append(faults, fmt.Errorf("--metrics-detail is %q: want %s or %s", o.MetricsDetail, DetailKarpenter,
			DetailBounded))
	}
	if o.MetricsMaxSeries < 0 {
		faults = append(faults, fmt.Errorf("--metrics-max-series is %d: want a number of series, or 0 for any",
			o.MetricsMaxSeries))
	}
	if o.EventsQPS < 0 {
		faults = append(faults, fmt.Errorf("--events-qps is %d: want events per second, or 0 for any number",
			o.EventsQPS))
	}
	return errors.Join(faults...)
}

// served returns the options of the gauges that are made for a scrape.
func (o Observability) served(plugged []plugin.Parts) state.Options {
	options := state.Options{NodeLabels: metrics.NodeLabels(), ClassLabels: classLabels(plugged),
		Bounded:    o.MetricsDetail == DetailBounded,
		Unobserved: o.DisableClusterStateObservability, Deprecated: o.DeprecatedMetrics, MaxSeries: o.MetricsMaxSeries}
	for _, parts := range plugged {
		options.NodeLabels = append(options.NodeLabels, parts.NodeLabels...)
	}
	slices.Sort(options.NodeLabels)
	options.NodeLabels = slices.Compact(options.NodeLabels)
	return options
}

// classLabels returns the label keys by which claims and nodes name their node class, sorted.
func classLabels(plugged []plugin.Parts) (keys []string) {
	for _, parts := range plugged {
		kind := parts.Provider.NodeClass()
		keys = append(keys, kind.Group+"/"+strings.ToLower(kind.Kind))
	}
	slices.Sort(keys)
	return keys
}

// showBuild adds a metric with the version and commit of the program, as far as they are known.
func showBuild(r prometheus.Registerer) {
	version, commit := "", ""
	if info, known := debug.ReadBuildInfo(); known {
		version = info.Main.Version
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				commit = setting.Value
			}
		}
	}
	metrics.NewBuild(r).WithLabelValues(version, runtime.Version(), runtime.GOARCH, commit).Set(1)
}

// objects returns what the watches have shown of a kind, without a copy.
type objects func() []client.Object

// objectsOf returns the content of an informer of the cache.
func objectsOf(ctx context.Context, informers cache.Cache, kind client.Object) (objects, error) {
	informer, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	indexed, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("the cache of %T is a %T: it cannot be read without copies", kind, informer)
	}
	return func() (all []client.Object) {
		for _, o := range indexed.GetStore().List() {
			if object, ok := o.(client.Object); ok {
				all = append(all, object)
			}
		}
		return all
	}, nil
}

// of returns the objects that have the given type.
func of[T client.Object](list objects) (all []T) {
	for _, o := range list() {
		if object, ok := o.(T); ok {
			all = append(all, object)
		}
	}
	return all
}

// scraper serves all metrics of the process.
type scraper struct {
	counted prometheus.Gatherer // what is registered
	hidden  []string            // names of registered metrics that are left out
	options state.Options
	metrics *metrics.Set
	leads   func() bool
	synced  func() bool
	picture interface{ Snapshot() *cluster.Snapshot }

	nodes, pods, claims, pools, buffers objects

	now   func() time.Time
	began time.Time
	log   logr.Logger

	mu      sync.Mutex
	dropped []string // families that the last scrape left out
}

// watch makes the scraper read from the caches of a manager; CapacityBuffers only if buffered.
func (s *scraper) watch(ctx context.Context, informers cache.Cache, buffered bool) (err error) {
	var failures []error
	read := func(kind client.Object) objects {
		list, err := objectsOf(ctx, informers, kind)
		failures = append(failures, err)
		return list
	}
	s.nodes, s.pods = read(&corev1.Node{}), read(&corev1.Pod{})
	s.claims, s.pools = read(&karpenterv1.NodeClaim{}), read(&karpenterv1.NodePool{})
	s.buffers = func() []client.Object { return nil }
	if buffered {
		s.buffers = read(&autoscalingv1beta1.CapacityBuffer{})
	}
	return errors.Join(failures...)
}

// ServeHTTP answers a scrape.
func (s *scraper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	made := s.state() // first, since it counts too
	counted, err := s.counted.Gather()
	if err != nil {
		http.Error(w, "gathering metrics: "+err.Error(), http.StatusInternalServerError)
		return
	}
	counted = slices.DeleteFunc(counted, func(f *dto.MetricFamily) bool {
		return slices.Contains(s.hidden, f.GetName())
	})
	serve.Text(w, r, written(counted, made))
}

// written returns the families in the order of their names. Registered names and names made here differ, so nothing is
// merged.
func written(counted []*dto.MetricFamily, made []*state.Text) []io.WriterTo {
	type one struct {
		name string
		io.WriterTo
	}
	var all []one
	for _, f := range counted {
		all = append(all, one{f.GetName(), serve.Family{MetricFamily: f}})
	}
	for _, f := range made {
		all = append(all, one{f.Name, f})
	}
	slices.SortFunc(all, func(a, b one) int { return strings.Compare(a.name, b.name) })
	texts := make([]io.WriterTo, len(all))
	for i := range all {
		texts[i] = all[i].WriterTo
	}
	return texts
}

// state makes the gauges of the cluster's state; none while another replica leads.
func (s *scraper) state() []*state.Text {
	if !s.leads() {
		return nil
	}
	now := s.now()
	in := state.Input{Now: now, Nodes: of[*corev1.Node](s.nodes), Pods: of[*corev1.Pod](s.pods),
		Claims: of[*karpenterv1.NodeClaim](s.claims),
		Pools:  of[*karpenterv1.NodePool](s.pools), Buffers: of[*autoscalingv1beta1.CapacityBuffer](s.buffers),
		Waiting: s.metrics.Pods.Times.Waiting(), Running: s.metrics.Plans.Running.Plans(),
		Cost: costs(s.picture.Snapshot())}
	if !s.synced() {
		in.Unsynced = max(time.Nanosecond, now.Sub(s.began))
	}
	families, dropped := state.Families(in, s.options)
	s.tellDropped(dropped)
	return families
}

// tellDropped shows which families are left out, and logs a change once.
func (s *scraper) tellDropped(dropped []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Equal(dropped, s.dropped) {
		return
	}
	s.metrics.Own.Dropped.Reset()
	for _, family := range dropped {
		s.metrics.Own.Dropped.WithLabelValues(family).Set(1)
		if !slices.Contains(s.dropped, family) {
			s.log.Info("a metric is left out, since there are too many series", "metric", family,
				"most", s.options.MaxSeries)
		}
	}
	s.dropped = dropped
}

// costs returns, by pool, what its nodes cost in dollars per hour. Nodes without a known price are left out.
func costs(snapshot *cluster.Snapshot) map[string]float64 {
	costs := map[string]float64{}
	for _, node := range snapshot.Nodes {
		if node.Claim != "" && node.Pool != "" && node.Price != resources.Unpriced {
			costs[node.Pool] += node.Price.Dollars()
		}
	}
	return costs
}
