package door

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

func protectedSources() evaluator.Sources {
	return evaluator.Sources{Config: &v1alpha1.NodeSchedulingPolicyConfig{Groups: []v1alpha1.SchedulingPolicyGroup{{
		Name: configv1.ControlPlane, LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"cp": ""}},
		Mode: configv1.Enable, AuthorizedUsers: []string{"admin"},
	}}}}
}

// N7, N10, N12: Scheduler's mode and list come into force at the next reading; while it cannot be read what was read
// last holds, and a cluster without one has the configuration alone.
func TestThePolicyFollowsScheduler(t *testing.T) {
	t.Parallel()
	var scheduler *configv1.Scheduler
	var failure error
	registry := prometheus.NewRegistry()
	s, err := NewPolicy(PolicyConfig{Sources: protectedSources(), Metrics: NewMetrics(registry), Log: logr.Discard(),
		Read: func(context.Context) (Live, error) {
			return Live{Source: evaluator.FromScheduler, Scheduler: scheduler}, failure
		}})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what string, mode configv1.GroupMode, entries int, ready bool) {
		t.Helper()
		if err := s.step(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := s.InForce().Effective()[0]
		if got.Mode != mode || got.Authorized != entries || s.Known() != ready {
			t.Errorf("%s: %+v, ready %t; want %s with %d entries, ready %t", what, got, s.Known(), mode, entries,
				ready)
		}
	}
	failure = errors.New("no answer")
	expect("no answer yet", configv1.Enable, 1, false)
	failure = nil
	expect("no Scheduler", configv1.Enable, 1, true)
	scheduler = &configv1.Scheduler{ObjectMeta: metav1.ObjectMeta{Name: configv1.SchedulerName, ResourceVersion: "1"}}
	scheduler.Spec.SchedulingGroups = []configv1.SchedulingGroup{
		{Name: configv1.ControlPlane, Mode: configv1.Inform, AuthorizedUsers: []string{"alice", "app/default"}},
	}
	expect("Scheduler", configv1.Inform, 3, true)
	failure, scheduler = errors.New("no answer"), nil
	expect("no answer any more", configv1.Inform, 3, true)
	failure = nil
	expect("Scheduler gone", configv1.Enable, 1, true)
}

// N60, N56: a request waits for the nodes no longer than it may take; what is kept of a node is enough to judge.
func TestThePortToTheNodes(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"cp": ""},
		Annotations: map[string]string{"large": "x"}},
		Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: "t"}}},
		Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{"i"}}}}}
	clients := fake.NewClientset(node)
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithTransform(SlimNode))
	informer := factory.Core().V1().Nodes().Informer()
	nodes, err := NodesOf(informer, protectedSources().Config)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	ports := Ports(clients, nodes, NamespacesOf(nil, clients), informer.HasSynced)
	if before := ports(short); before.Nodes.Ready() || before.Unread() != (evaluator.Unread{Nodes: true}) {
		t.Errorf("before it was started, %+v is not read", before.Unread())
	}
	factory.Start(t.Context().Done())
	cluster := ports(t.Context())
	if !cluster.Nodes.Ready() {
		t.Fatal("never ready")
	}
	got, found := cluster.Nodes.Get("n")
	if !found || !maps.Equal(got.Labels, node.Labels) || len(got.Spec.Taints) != 1 || got.Annotations != nil ||
		got.Status.Images != nil {
		t.Errorf("found %t: %+v", found, got)
	}
	if all := slices.Collect(cluster.Nodes.All()); len(all) != 1 {
		t.Errorf("%d nodes", len(all))
	}
	if members, others := slices.Collect(cluster.Members(string(configv1.ControlPlane))),
		slices.Collect(cluster.Members("Other")); len(members) != 1 || len(others) != 0 {
		t.Errorf("members %v, of another group %v", members, others)
	}
	if live, err := cluster.LiveNode("n"); err != nil || live == nil {
		t.Errorf("live: %v, %v", live, err)
	}
	if live, err := cluster.LiveNode("other"); err != nil || live != nil {
		t.Errorf("a node that does not exist: %v, %v", live, err)
	}
}

// N60: before Scheduler was read, every group counts as enabled, and its requests wait. With a malformed Scheduler at
// a start, the lists of the configuration hold, with every group enabled. A later malformed one changes nothing.
func TestASchedulerThatNobodyUnderstands(t *testing.T) {
	t.Parallel()
	sources := protectedSources()
	sources.Config.Groups[0].Mode = configv1.Inform
	var scheduler *configv1.Scheduler
	failure := errors.New("no answer")
	registry := prometheus.NewRegistry()
	s, err := NewPolicy(PolicyConfig{Sources: sources, Metrics: NewMetrics(registry), Log: logr.Discard(),
		Read: func(context.Context) (Live, error) {
			return Live{Source: evaluator.FromScheduler, Scheduler: scheduler}, failure
		}})
	if err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"cp": ""}}}
	factory := informers.NewSharedInformerFactory(fake.NewClientset(node), 0)
	nodes, err := NodesOf(factory.Core().V1().Nodes().Informer(), sources.Config)
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	listed, said := true, ""
	judged := func(pod corev1.PodSpec) string {
		t.Helper()
		if err := s.step(t.Context()); err != nil {
			t.Fatal(err)
		}
		request := evaluator.Request{Operation: evaluator.Create, Resource: "pods", Namespace: "app",
			User: evaluator.User{Name: "alice"}, Pod: &corev1.Pod{Spec: pod}}
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		known := Known{Nodes: func() bool { return listed }, LiveSource: s.Known}
		verdict := s.Judge(&request, known.Ports(nil, nodes, Namespaces{})(short))
		if len(verdict.Findings) == 0 {
			return "nothing"
		}
		said = verdict.Message
		return string(verdict.Findings[0].Decision) + " " + string(verdict.Findings[0].Reason)
	}
	expect := func(what, want, got string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	there := corev1.PodSpec{NodeName: "n"}
	expect("an ordinary pod, nothing read", "nothing", judged(corev1.PodSpec{}))
	for missing, are := range map[string]bool{
		"the live source of the policy is not read yet, so whether":                                    true,
		"neither the nodes of the cluster nor the live source of the policy are known yet, so whether": false,
	} {
		listed = are
		expect("nothing read", "deny NodesNotReady", judged(there))
		if want := "not yet ready: " + missing; !strings.Contains(said, want) {
			t.Errorf("it says %q, want %q", said, want)
		}
	}
	listed = true
	failure = fmt.Errorf("reading: %w", errMalformed)
	expect("not understood at a start", "deny NodeName", judged(there))
	expect("an ordinary pod then", "nothing", judged(corev1.PodSpec{}))
	failure = nil
	expect("mended", "inform NodeName", judged(there))
	scheduler = &configv1.Scheduler{ObjectMeta: metav1.ObjectMeta{Name: configv1.SchedulerName, ResourceVersion: "1"}}
	scheduler.Spec.SchedulingGroups = []configv1.SchedulingGroup{{Name: configv1.ControlPlane, Mode: configv1.Disable}}
	expect("read", "nothing", judged(there))
	failure = fmt.Errorf("reading: %w", errMalformed)
	expect("not understood later", "nothing", judged(there))
}
