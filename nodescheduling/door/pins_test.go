package door

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

const (
	firstUID  = "00000000-0000-0000-0000-000000000001"
	secondUID = "00000000-0000-0000-0000-000000000002"
)

// each entry that names a namespace is in one state, which a metric shows as it is now, and the log has what
// needs somebody once, also at the start.
func TestA11_PinsAreCountedAndToldOnce(t *testing.T) {
	t.Parallel()
	sources := protectedSources()
	sources.Config.Groups[0].AuthorizedUsers = []string{"admin", "kube-system/a", "web/a", "web/a", "backup/a@" +
		firstUID, "namespace:logs@" + firstUID, "namespace:gone", "namespace:openshift-gone"}
	uids := map[string]string{"kube-system": firstUID, "web": firstUID, "backup": firstUID, "logs": secondUID}
	registry, told, failure := prometheus.NewRegistry(), []string{}, error(nil)
	log := funcr.New(func(_, text string) {
		if strings.Contains(text, "which namespace") {
			told = append(told, text)
		}
	}, funcr.Options{})
	s, err := NewPolicy(PolicyConfig{Sources: sources, Metrics: NewMetrics(registry), Log: log,
		Read: func(context.Context) (Live, error) { return Live{}, nil },
		Namespace: func(_ context.Context, name string) (string, bool, error) {
			uid, exists := uids[name]
			return uid, exists, failure
		}})
	if err != nil {
		t.Fatal(err)
	}
	look := func(want string) {
		t.Helper()
		if err := s.step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := states(t, registry); got != want {
			t.Errorf("the states are %s, want %s", got, want)
		}
	}
	look("dangling 1 pinned 1 replaced 1 reserved 2 unpinned 2")
	look("dangling 1 pinned 1 replaced 1 reserved 2 unpinned 2")
	if len(told) != 3 || !strings.Contains(told[0], `"entry"="web/a"`) {
		t.Errorf("the log has %q, want one line for each of three entries, also for the one that stands there twice",
			told)
	}
	uids["backup"] = secondUID
	failure = errors.New("no answer")
	look("dangling 1 pinned 1 replaced 1 reserved 2 unpinned 2") // as it was
	failure = nil
	look("dangling 1 pinned 0 replaced 2 reserved 2 unpinned 2")
	if len(told) != 4 || !strings.Contains(told[3], secondUID) {
		t.Errorf("the log has %q, want the entry that was replaced", told)
	}
}

// states reads the metric of entries: the states with their numbers, by name.
func states(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "node_scheduling_policy_entries" {
				found = append(found, fmt.Sprintf("%s %v", metric.GetLabel()[1].GetValue(),
					metric.GetGauge().GetValue()))
			}
		}
	}
	slices.Sort(found)
	return strings.Join(found, " ")
}

// the cache answers, and where it has no such namespace the API server is asked. What is kept of a namespace is
// enough.
func TestA11_NamespacesAreAskedForOnAMiss(t *testing.T) {
	t.Parallel()
	old := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "old", UID: firstUID, Labels: map[string]string{"large": "x"}},
	}
	clients := fake.NewClientset(old)
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithTransform(Slim))
	informer := factory.Core().V1().Namespaces().Informer()
	namespaces := NamespacesOf(informer, clients)
	factory.Start(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the namespaces are not listed")
	}
	if kept, found, err := informer.GetStore().GetByKey("old"); err != nil || !found ||
		kept.(*corev1.Namespace).Labels != nil {
		t.Errorf("of a namespace is kept %+v (%v)", kept, err)
	}
	live := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new", UID: secondUID}})
	namespaces.clients = live
	for name, want := range map[string]string{"old": firstUID, "new": secondUID, "none": ""} {
		if uid, exists, err := namespaces.UID(t.Context(), name); uid != want || exists != (want != "") || err != nil {
			t.Errorf("%s: %q, %t, %v, want %q", name, uid, exists, err, want)
		}
	}
	if asked := len(live.Actions()); asked != 2 {
		t.Errorf("the API server was asked %d times, want for two namespaces", asked)
	}
}
