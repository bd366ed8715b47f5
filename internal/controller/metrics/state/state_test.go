package state_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics/state"
)

func list(pairs ...string) corev1.ResourceList {
	amounts := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		amounts[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return amounts
}

func options() state.Options {
	return state.Options{NodeLabels: metrics.NodeLabels(), ClassLabels: []string{"karpenter.kwok.sh/kwoknodeclass"},
		Deprecated: true}
}

// node is one of 4 CPUs, made at 100 s.
func node(name, pool string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(100, 0),
		Labels: map[string]string{
			karpenterv1.NodePoolLabelKey: pool, corev1.LabelTopologyZone: "a",
			karpenterv1.CapacityTypeLabelKey: "spot",
			corev1.LabelInstanceTypeStable:   "m", corev1.LabelArchStable: "amd64"}},
		Status: corev1.NodeStatus{Capacity: list("cpu", "4500m", "memory", "5Gi"), Allocatable: list("cpu", "4",
			"memory", "4Gi", "ephemeral-storage", "1Gi"),
			Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True", Reason: "KubeletReady",
				LastTransitionTime: metav1.Unix(150, 0)}}}}
}

func pod(name, node, owner string) *corev1.Pod {
	controls := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name,
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: owner, Name: "web", Controller: &controls}}}}
	p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("cpu", "500m"),
		Limits: list("cpu", "1", "memory", "1Gi")}}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

// one is a cluster with a node, a pod, a daemon, and a pod that waits.
func one() state.Input {
	finished := pod("done", "n", "Job")
	finished.Status.Phase = corev1.PodSucceeded
	waits := pod("later", "", "ReplicaSet")
	waits.Status.Phase, waits.Status.Conditions = corev1.PodPending, nil
	claim := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c",
		DeletionTimestamp: &metav1.Time{Time: time.Unix(190, 0)},
		Labels: map[string]string{karpenterv1.NodePoolLabelKey: "p",
			"karpenter.kwok.sh/kwoknodeclass": "k"}}}
	claim.Status.Conditions = []karpenterv1.Condition{{Type: "Launched", Status: "True", Reason: "Launched",
		LastTransitionTime: metav1.Unix(120, 0)}}
	return state.Input{Now: time.Unix(200, 0), Nodes: []*corev1.Node{node("n", "p")},
		Pods:   []*corev1.Pod{pod("web", "n", "ReplicaSet"), pod("agent", "n", "DaemonSet"), finished, waits},
		Claims: []*karpenterv1.NodeClaim{claim},
		Waiting: []metrics.PodTime{
			{Namespace: "x", Name: "later", Created: time.Unix(180, 0), Seen: time.Unix(185, 0)},
		},
		Running: map[string]metrics.RunningPlan{"provisioner": {Pods: 1, Since: time.Unix(195, 0)}},
		Cost:    map[string]float64{"p": .5}}
}

// parsed reads families as Prometheus' own parser does.
func parsed(families []*state.Text) map[string]*dto.MetricFamily {
	var text bytes.Buffer
	for _, f := range families {
		if _, err := f.WriteTo(&text); err != nil {
			panic(err)
		}
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	read, err := parser.TextToMetricFamilies(&text)
	if err != nil {
		panic(err)
	}
	for _, f := range families {
		if got := len(read[f.Name].GetMetric()); got != f.Series {
			panic(fmt.Sprintf("%s has %d series, and says that it has %d", f.Name, got, f.Series))
		}
	}
	return read
}

// lines writes series as the text format has them, in order.
func lines(families []*state.Text, prefix string) (all []string) {
	for _, f := range parsed(families) {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			if line := fmt.Sprintf("%s{%s} %v", f.GetName(), strings.Join(labels, ","),
				m.Gauge.GetValue()); strings.HasPrefix(line, prefix) {
				all = append(all, line)
			}
		}
	}
	slices.Sort(all)
	return all
}

// K-08, K-09: series of nodes and pods have Karpenter's labels and units: cores, bytes, seconds, the owner as a path.
func TestK09_SeriesOfNodesAndPods(t *testing.T) {
	t.Parallel()
	families, _ := state.Families(one(), options())
	const where = "arch=amd64,capacity_type=spot,instance_type=m,managed=true,"
	of := func(resource string) string {
		return where + "node_name=n,nodepool=p,os=,phase=,region=," + resource + "windows_build=,zone=a"
	}
	for prefix, want := range map[string][]string{
		"karpenter_nodes_allocatable{": {of("resource_type=cpu,") + "} 4", of("resource_type=ephemeral_storage,") +
			"} 1.073741824e+09",
			of("resource_type=memory,") + "} 4.294967296e+09"},
		"karpenter_nodes_total_pod_requests{": {of("resource_type=cpu,") + "} 1", of("resource_type=pods,") +
			"} 2"},
		"karpenter_nodes_total_daemon_requests{": {of("resource_type=cpu,") + "} 0.5", of("resource_type=pods,") +
			"} 1"},
		"karpenter_nodes_total_pod_limits{": {of("resource_type=cpu,") + "} 2", of("resource_type=memory,") +
			"} 2.147483648e+09",
			of("resource_type=pods,") + "} 2"},
		"karpenter_nodes_current_lifetime_seconds{": {of("") + "} 100"},
		"karpenter_cluster_utilization_percent{": {"resource_type=cpu} 25", "resource_type=ephemeral_storage} 0",
			"resource_type=memory} 0"},
		"karpenter_cluster_state_":                     {"node_count{} 1", "synced{} 1", "unsynced_time_seconds{} 0"},
		"karpenter_nodepools_cost_total{":              {"nodepool=p} 0.5"},
		"karpenter_scheduler_unfinished_work_seconds{": {"controller=provisioner,scheduling_id=} 5"},
		"karpenter_pods_state{": {
			where +
				"name=agent,namespace=x,node=n,nodepool=p,owner=/apis/apps/v1/namespaces/x/daemonsets/web," +
				"phase=Running,ready=true,scheduled=true,zone=a} 1",
			where +
				"name=done,namespace=x,node=n,nodepool=p,owner=/apis/apps/v1/namespaces/x/jobs/web,phase=Succeeded," +
				"ready=true,scheduled=true,zone=a} 1",
			where +
				"name=web,namespace=x,node=n,nodepool=p,owner=/apis/apps/v1/namespaces/x/replicasets/web," +
				"phase=Running,ready=true,scheduled=true,zone=a} 1",
			"arch=,capacity_type=,instance_type=,managed=false,name=later,namespace=x,node=,nodepool=," +
				"owner=/apis/apps/v1/namespaces/x/replicasets/web," +
				"phase=Pending,ready=false,scheduled=false,zone=} 1"},
		"karpenter_pods_unbound_time_seconds{": {
			"dynamic_resources=false,name=later,namespace=x} 20",
		},
		"karpenter_pods_unstarted_time_seconds{":                         {"name=later,namespace=x} 20"},
		"karpenter_pods_provisioning_scheduling_undecided_time_seconds{": {"name=later,namespace=x} 15"},
		"karpenter_pods_provisioning_unbound_time_seconds{":              nil,
	} {
		got := lines(families, prefix)
		slices.Sort(want)
		for i := range want {
			want[i] = prefix + want[i]
		}
		if !slices.Equal(got, want) {
			t.Errorf("series are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// K-10: conditions stand with their times, also by the old names, of NodeClaims and NodePools; of nodes by the new
// only.
func TestK10_ConditionsAsTheyStand(t *testing.T) {
	t.Parallel()
	families, _ := state.Families(one(), options())
	got := lines(families, "operator_")
	const class = "karpenter_kwok_sh_kwoknodeclass="
	want := []string{
		"operator_node_status_condition_count{" + class +
			",karpenter_sh_initialized=,karpenter_sh_nodepool=p,name=n,namespace=,reason=KubeletReady,status=True,type=Ready} 1",
		"operator_node_status_condition_current_status_seconds{" + class +
			",karpenter_sh_initialized=,karpenter_sh_nodepool=p,name=n,namespace=,reason=KubeletReady,status=True,type=Ready} 50",
		"operator_nodeclaim_status_condition_count{" + class +
			"k,karpenter_sh_nodepool=p,name=c,namespace=,reason=Launched,status=True,type=Launched} 1",
		"operator_nodeclaim_status_condition_current_status_seconds{" + class +
			"k,karpenter_sh_nodepool=p,name=c,namespace=,reason=Launched,status=True,type=Launched} 80",
		"operator_nodeclaim_termination_current_time_seconds{" + class +
			"k,karpenter_sh_nodepool=p,name=c,namespace=} 10",
		"operator_status_condition_count{group=karpenter.sh,kind=NodeClaim,name=c,namespace=,reason=Launched,status=True,type=Launched} 1",
		"operator_status_condition_current_status_seconds{group=karpenter.sh,kind=NodeClaim,name=c,namespace=," +
			"reason=Launched,status=True,type=Launched} 80",
		"operator_termination_current_time_seconds{group=karpenter.sh,kind=NodeClaim,name=c,namespace=} 10",
	}
	if !slices.Equal(got, want) {
		t.Errorf("series are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	without := options()
	without.Deprecated = false
	families, _ = state.Families(one(), without)
	if got := lines(families, "operator_"); len(got) != 5 {
		t.Errorf("without the old names there are\n%s", strings.Join(got, "\n"))
	}
}

// K-10: conditions of CapacityBuffers stand by both names, with the group that is theirs.
func TestK10_ConditionsOfCapacityBuffers(t *testing.T) {
	t.Parallel()
	buffer := &autoscalingv1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "spare"}}
	buffer.Status.Conditions = []metav1.Condition{{Type: "Provisioning", Status: "True", Reason: "RequiresNewCapacity",
		LastTransitionTime: metav1.Unix(150, 0)}}
	families, _ := state.Families(state.Input{Now: time.Unix(200, 0), Buffers: []*autoscalingv1beta1.CapacityBuffer{
		buffer,
	}}, options())
	const of = "name=spare,namespace=x,reason=RequiresNewCapacity,status=True,type=Provisioning} "
	want := []string{"operator_capacitybuffer_status_condition_count{" + of + "1",
		"operator_capacitybuffer_status_condition_current_status_seconds{" + of + "50",
		"operator_status_condition_count{group=autoscaling.x-k8s.io,kind=CapacityBuffer," + of + "1",
		"operator_status_condition_current_status_seconds{group=autoscaling.x-k8s.io,kind=CapacityBuffer," + of + "50"}
	if got := lines(families, "operator_"); !slices.Equal(got, want) {
		t.Errorf("series are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// K-12: Bounded has no series with a name of a pod or node, and sums instead.
func TestK12_BoundedServesSums(t *testing.T) {
	t.Parallel()
	bounded := options()
	bounded.Bounded = true
	families, _ := state.Families(one(), bounded)
	if got := slices.Concat(lines(families, "karpenter_pods_"), lines(families, "karpenter_nodes_")); len(got) != 0 {
		t.Errorf("served are %v", got)
	}
	got := lines(families, "joiner_")
	want := []string{"joiner_nodes_by_type{capacity_type=spot,instance_type=m,nodepool=p,zone=a} 1",
		"joiner_pods{nodepool=,phase=Pending,scheduled=false} 1",
		"joiner_pods{nodepool=p,phase=Running,scheduled=true} 2",
		"joiner_pods{nodepool=p,phase=Succeeded,scheduled=true} 1"}
	if !slices.Equal(got, want) {
		t.Errorf("sums are %v, want %v", got, want)
	}
	if got := lines(families, "karpenter_cluster_utilization"); len(got) == 0 {
		t.Error("the cluster's utilization is left out")
	}
}

// K-12: above the most series the largest families with names are left out whole, and no others.
func TestK12_TooManySeriesLeaveOutTheLargestFamily(t *testing.T) {
	t.Parallel()
	in := one()
	for i := range 100 {
		in.Pods = append(in.Pods, pod(fmt.Sprint("p", i), "n", "ReplicaSet"))
	}
	few := options()
	few.MaxSeries = 100
	families, dropped := state.Families(in, few)
	if !slices.Equal(dropped, []string{"karpenter_pods_state"}) {
		t.Errorf("left out are %v", dropped)
	}
	if got := lines(families, "karpenter_pods_state"); len(got) != 0 {
		t.Errorf("served is %v", got[0])
	}
	few.MaxSeries = 1
	if families, _ = state.Families(in, few); len(lines(families, "karpenter_cluster_state_synced")) != 1 {
		t.Error("what has no names is left out")
	}
}

// K-08: --disable-cluster-state-observability leaves out what it leaves out of Karpenter.
func TestK08_WithoutObservability(t *testing.T) {
	t.Parallel()
	without := options()
	without.Unobserved = true
	families, _ := state.Families(one(), without)
	names := map[string]bool{}
	for _, f := range families {
		names[f.Name] = true
	}
	want := map[string]bool{"karpenter_cluster_state_node_count": true, "karpenter_cluster_state_synced": true,
		"karpenter_cluster_state_unsynced_time_seconds": true, "karpenter_scheduler_queue_depth": true,
		"karpenter_scheduler_unfinished_work_seconds": true}
	if !maps.Equal(names, want) {
		t.Errorf("served are %v, want %v", names, want)
	}
}

// K-09: what a label or a description may have is read as it was.
func TestK09_ValuesAreWrittenAsTheyAre(t *testing.T) {
	t.Parallel()
	in := one()
	const odd = "a\\b\"c\nd=e,{}é"
	in.Nodes[0].Labels[corev1.LabelTopologyZone] = odd
	families, _ := state.Families(in, options())
	for _, name := range []string{"karpenter_pods_state", "karpenter_nodes_allocatable"} {
		found := false
		for _, l := range parsed(families)[name].GetMetric()[0].GetLabel() {
			found = found || l.GetName() == "zone" && l.GetValue() == odd
		}
		if !found {
			t.Errorf("%s has no zone %q", name, odd)
		}
	}
	if help := parsed(families)["karpenter_pods_state"].GetHelp(); help != "1 for each pod." {
		t.Errorf("it is described as %q", help)
	}
}
