package metrics_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
)

// show is what a scrape sees of a collector of gauges or counters: the value of each series by its labels.
func show(t *testing.T, collector prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			var labels []string
			for _, label := range metric.Label {
				labels = append(labels, label.GetValue())
			}
			seen[strings.Join(labels, " ")] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return seen
}

// U-10: what is shown is what a pool has now, also of a resource that comes back.
func TestAmountsFollowWhatAPoolHas(t *testing.T) {
	t.Parallel()
	usage := metrics.New(prometheus.NewRegistry()).Pools.Usage
	for _, c := range []struct {
		amounts map[string]float64
		want    map[string]float64
	}{
		{map[string]float64{"cpu": 1, "memory": 2}, map[string]float64{"a cpu": 1, "a memory": 2}},
		{map[string]float64{"memory": 3}, map[string]float64{"a memory": 3}},
		{map[string]float64{"cpu": 4, "memory": 3}, map[string]float64{"a cpu": 4, "a memory": 3}},
		{nil, map[string]float64{}},
		{map[string]float64{"cpu": 5}, map[string]float64{"a cpu": 5}},
	} {
		usage.Show("a", c.amounts)
		if got := show(t, usage); !maps.Equal(got, c.want) {
			t.Errorf("after %v a scrape sees %v, want %v", c.amounts, got, c.want)
		}
	}
}

// U-10: a limit that was taken away, and a pool that is gone, leave no series.
func TestAmountsThatAreGoneAreNotShown(t *testing.T) {
	t.Parallel()
	limit := metrics.New(prometheus.NewRegistry()).Pools.Limit
	series := func() int {
		all := make(chan prometheus.Metric, 10)
		limit.Collect(all)
		return len(all)
	}
	limit.Show("a", map[string]float64{"cpu": 1, "memory": 2})
	limit.Show("b", map[string]float64{"cpu": 3})
	limit.Show("a", map[string]float64{"cpu": 4})
	if n := series(); n != 2 {
		t.Errorf("%d series, want 2: the cpu of a and of b", n)
	}
	limit.Show("a", nil)
	if n := series(); n != 1 {
		t.Errorf("%d series after pool a is gone, want 1", n)
	}
}

// K-09: labels have values of closed sets, and a value that is not in one is other.
func TestK09_LabelsHaveKarpentersWords(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{"Empty": "empty", "Underutilized": "underutilized",
		"InstanceGone":  "garbage_collected",
		"LaunchTimeout": "launch_timeout", "Expired": "expired", "Unhealthy": "unhealthy", "somebody's": "other",
		"": "other"} {
		if got := metrics.Reason(reason); got != want {
			t.Errorf("reason %q is %q, want %q", reason, got, want)
		}
	}
	for name, want := range map[string]string{"WhenEmptyOrUnderutilized": "when_empty_or_underutilized",
		"MemoryPressure": "memory_pressure", "": ""} {
		if got := metrics.Snake(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
	if got := metrics.ResourceType("ephemeral-storage"); got != "ephemeral_storage" {
		t.Errorf("the resource is %q", got)
	}
	claim := func(grace *karpenterv1.Duration) *karpenterv1.NodeClaim {
		return &karpenterv1.NodeClaim{Spec: karpenterv1.NodeClaimSpec{TerminationGracePeriod: grace}}
	}
	for want, grace := range map[string]*karpenterv1.Duration{"graceful": nil, "eventual": {Duration: time.Minute},
		"forceful": {}} {
		if got := metrics.TerminationMode(claim(grace)); got != want {
			t.Errorf("with grace %v the mode is %q, want %q", grace, got, want)
		}
	}
	for want, command := range map[string]struct {
		reason string
		nodes  int
	}{"multi": {"Underutilized", 2}, "single": {"Underutilized", 1}, "empty": {"Empty", 3}, "": {"Drifted", 2}} {
		if got := metrics.ConsolidationType(command.reason, command.nodes); got != want {
			t.Errorf("%v is of type %q, want %q", command, got, want)
		}
	}
}

// pod is one in a phase, made at 0 s, with conditions that became true at some second.
func pod(uid, phase string, conditions map[string]int64) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: uid, UID: types.UID(uid),
		CreationTimestamp: metav1.Unix(0, 0)}}
	p.Status.Phase = corev1.PodPhase(phase)
	for kind, at := range conditions {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(kind),
			Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(at, 0)})
	}
	return p
}

// K-08: a pod is measured once: when it is bound, and when it is ready; from its creation, and from the first plan
// with a place for it. A replica that does not lead measures none.
func TestK08_PodsAreMeasuredOnce(t *testing.T) {
	t.Parallel()
	for _, leads := range []bool{true, false} {
		registry := prometheus.NewRegistry()
		times := metrics.New(registry).Pods.Times
		times.Lead(leads)
		waiting := pod("web", "Pending", nil)
		waiting.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: "Unschedulable"}}
		times.Apply(waiting, time.Unix(1, 0))
		times.Decided("web", false, time.Unix(3, 0))
		times.Decided("web", true, time.Unix(4, 0))
		if w := times.Waiting(); len(w) != 1 || w[0].Seen != time.Unix(1, 0) || w[0].Decided != time.Unix(3, 0) ||
			w[0].Placed != time.Unix(4, 0) || w[0].Bound {
			t.Errorf("it waits as %+v", w)
		}
		for range 2 {
			times.Apply(pod("web", "Pending", map[string]int64{"PodScheduled": 10}), time.Unix(11, 0))
		}
		for range 2 {
			times.Apply(pod("web", "Running", map[string]int64{"PodScheduled": 10, "Ready": 20}), time.Unix(21, 0))
		}
		times.Apply(pod("old", "Running", map[string]int64{"PodScheduled": 10, "Ready": 20}), time.Unix(21, 0))
		times.Apply(pod("gone", "Pending", nil), time.Unix(21, 0))
		times.Remove(pod("gone", "Pending", nil))
		if w := times.Waiting(); len(w) != 0 {
			t.Errorf("%+v still wait", w)
		}
		got := sums(t, registry, "karpenter_pods_")
		want := map[string]string{}
		if leads {
			want = map[string]string{"startup_duration_seconds": "1 of 20", "bound_duration_seconds": "1 of 10",
				"provisioning_bound_duration_seconds":   "1 of 6",
				"provisioning_startup_duration_seconds": "1 of 16", "scheduling_decision_duration_seconds": "1 of 2"}
		}
		if !maps.Equal(got, want) {
			t.Errorf("leads %v: measured is %v, want %v", leads, got, want)
		}
	}
}

// sums are how often something was measured and what the sum is, by name after the prefix.
func sums(t *testing.T, registry *prometheus.Registry, prefix string) map[string]string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range families {
		name, ours := strings.CutPrefix(f.GetName(), prefix)
		for _, m := range f.Metric {
			switch {
			case !ours:
			case m.Histogram != nil:
				all[name] = fmt.Sprint(m.Histogram.GetSampleCount(), " of ", m.Histogram.GetSampleSum())
			case m.Summary != nil:
				all[name] = fmt.Sprint(m.Summary.GetSampleCount(), " of ", m.Summary.GetSampleSum())
			case m.Counter != nil:
				all[name] = fmt.Sprint(m.Counter.GetValue())
			}
		}
	}
	return all
}

// K-10: a change of a condition counts once, also under the old name; a first sight of an object is no change.
func TestK10_ChangesOfConditionsAreMeasured(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	conditions := metrics.NewConditions(registry, nil, true)
	conditions.Lead(true)
	claim := func(status metav1.ConditionStatus, at int64) *karpenterv1.NodeClaim {
		c := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "1"}}
		c.Status.Conditions = []karpenterv1.Condition{{Type: "Launched", Status: status,
			LastTransitionTime: metav1.Unix(at, 0)}}
		return c
	}
	if changed := conditions.Apply(claim("Unknown", 10)); len(changed) != 0 {
		t.Errorf("what is heard of first has changed: %v", changed)
	}
	if changed := conditions.Apply(claim("True", 25)); len(changed) != 1 || changed[0].From != "Unknown" {
		t.Errorf("changed is %v", changed)
	}
	if changed := conditions.Apply(claim("True", 25)); len(changed) != 0 {
		t.Errorf("the same is told again: %v", changed)
	}
	last := claim("True", 25)
	last.DeletionTimestamp = &metav1.Time{Time: time.Unix(30, 0)}
	if !conditions.Remove(last, time.Unix(34, 0)) {
		t.Error("it was not being deleted")
	}
	want := map[string]string{}
	for _, prefix := range []string{"", "nodeclaim_"} {
		want[prefix+"status_condition_transitions_total"] = "1"
		want[prefix+"status_condition_transition_seconds"] = "1 of 15"
		want[prefix+"termination_duration_seconds"] = "1 of 4"
	}
	if got := sums(t, registry, "operator_"); !maps.Equal(got, want) {
		t.Errorf("measured is %v, want %v", got, want)
	}
}

// K-10: a step of life that is true at once has changed from Unknown, since the object's creation; one that starts as
// Unknown has not changed. Other new conditions, and all of a node's, have changed from nothing.
func TestK10_NewConditions(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	conditions := metrics.NewConditions(registry, nil, false)
	conditions.Lead(true)
	created := metav1.ObjectMeta{Name: "c", UID: "1", CreationTimestamp: metav1.Unix(10, 0)}
	conditions.Apply(&karpenterv1.NodeClaim{ObjectMeta: created})
	claim := &karpenterv1.NodeClaim{ObjectMeta: created}
	for _, c := range []struct{ kind, status string }{{"Launched", "True"}, {"Registered", "Unknown"},
		{"Drifted", "True"}} {
		claim.Status.Conditions = append(claim.Status.Conditions, karpenterv1.Condition{Type: c.kind,
			Status: metav1.ConditionStatus(c.status), LastTransitionTime: metav1.Unix(13, 0)})
	}
	got := map[string]string{}
	for _, changed := range conditions.Apply(claim) {
		got[changed.Type] = string(changed.From)
	}
	if want := map[string]string{"Launched": "Unknown", "Drifted": ""}; !maps.Equal(got, want) {
		t.Errorf("changed from %v, want %v", got, want)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "2"}}
	conditions.Apply(node)
	node = node.DeepCopy()
	node.Status.Conditions = []corev1.NodeCondition{{Type: "Ready", Status: "True"}}
	if changed := conditions.Apply(node); len(changed) != 1 || changed[0].From != "" {
		t.Errorf("of a node has changed %v", changed)
	}
	// Each series has counted once.
	want := map[string]string{"nodeclaim_status_condition_transitions_total": "1",
		"node_status_condition_transitions_total": "1", "nodeclaim_status_condition_transition_seconds": "1 of 3"}
	if got := sums(t, registry, "operator_"); !maps.Equal(got, want) {
		t.Errorf("measured is %v, want %v", got, want)
	}
}

// K-60: from the first plan on both places of bound pods have a count, so that the first pod is an increase.
func TestK60_TheShareOfBindingsIsANumber(t *testing.T) {
	t.Parallel()
	set := metrics.New(prometheus.NewRegistry())
	if got := show(t, set.Own.Bound); len(got) > 0 {
		t.Errorf("%v before the first plan, want nothing", got)
	}
	set.Plans.Begin()
	set.Own.Bound.WithLabelValues(metrics.PlaceElsewhere).Inc()
	got := show(t, set.Own.Bound)
	if len(got) != 2 || got["expected"] != 0 || got["elsewhere"] != 1 {
		t.Errorf("%v, want 0 where they were expected and 1 elsewhere", got)
	}
}
