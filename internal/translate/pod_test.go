package translate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

func waitingPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1",
			Labels: map[string]string{"app": "web", "hash": "abc"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		}}},
	}
}

func requests(pairs ...string) corev1.ResourceRequirements {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return corev1.ResourceRequirements{Requests: list}
}

func shapeOf(t *testing.T, pod *corev1.Pod) *cluster.Shape {
	t.Helper()
	result, err := Pod(resources.NewSpace(), pod, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return result.Shape
}

func TestWhichPodsWaitForANode(t *testing.T) { // P-01
	t.Parallel()
	if !Provisionable(waitingPod()) {
		t.Fatal("a pod that the scheduler found no room for is not provisionable")
	}
	for name, change := range map[string]func(*corev1.Pod){
		"bound":          func(p *corev1.Pod) { p.Spec.NodeName = "n1" },
		"nominated":      func(p *corev1.Pod) { p.Status.NominatedNodeName = "n1" },
		"not tried yet":  func(p *corev1.Pod) { p.Status.Conditions = nil },
		"scheduled":      func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue },
		"another reason": func(p *corev1.Pod) { p.Status.Conditions[0].Reason = corev1.PodReasonSchedulingGated },
		"gated":          func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}} },
		"terminating":    func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
		"finished":       func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		"of a DaemonSet": func(p *corev1.Pod) { p.OwnerReferences = owner("apps/v1", "DaemonSet") },
		"static":         func(p *corev1.Pod) { p.OwnerReferences = owner("v1", "Node") },
		"a mirror": func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		},
		"failed by force": func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
	} {
		pod := waitingPod()
		change(pod)
		if Provisionable(pod) {
			t.Errorf("%s: provisionable", name)
		}
	}
	kept := waitingPod()
	kept.Status.NominatedNodeName = "n1"
	kept.Status.Conditions = append(kept.Status.Conditions, PlaceKept("n1", time.Unix(1, 0)))
	if !Provisionable(kept) || KeptOn(kept) != "n1" {
		t.Error("a pod for which we keep room on a node is not provisionable")
	}
	if kept.Status.NominatedNodeName = "n2"; Provisionable(kept) || KeptOn(kept) != "" {
		t.Error("a pod that kube-scheduler has nominated for another node than ours is provisionable")
	}
	pod := waitingPod()
	pod.OwnerReferences = owner("example.com/v1", "DaemonSet")
	if !Provisionable(pod) {
		t.Error("a pod of somebody else's kind named DaemonSet is not provisionable")
	}
}

func owner(version, kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "owner"}}
}

func TestRequestsByTheKubeletsRule(t *testing.T) { // P-06
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	for name, row := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"a pod counts itself": {func(*corev1.Pod) {}, "pods=1"},
		"containers add up, rounded up": {func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Resources: requests("cpu", "100.5m", "memory", "1Gi")},
				{Resources: requests("cpu", "1", "memory", "0.5")}}
		}, "cpu=1101m memory=1.0Gi pods=1"},
		"the largest init container, sidecars beside it": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = requests("cpu", "1")
			p.Spec.InitContainers = []corev1.Container{
				{Resources: requests("cpu", "500m"), RestartPolicy: &always},
				{Resources: requests("cpu", "2")},
			}
		}, "cpu=2500m pods=1"},
		"overhead and extended resources": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = requests("nvidia.com/gpu", "2", "cpu", "1")
			p.Spec.Overhead = requests("cpu", "250m").Requests
		}, "cpu=1250m pods=1 nvidia.com/gpu=2"},
		"pod-level resources win": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = requests("cpu", "1")
			r := requests("cpu", "3")
			p.Spec.Resources = &r
		}, "cpu=3 pods=1"},
		"0 of something is nothing": {
			func(p *corev1.Pod) { p.Spec.Containers[0].Resources = requests("nvidia.com/gpu", "0") }, "pods=1",
		},
		"a resize that is under way counts with the larger": {func(p *corev1.Pod) {
			p.Spec.NodeName = "n1"
			p.Spec.Containers[0].Resources = requests("cpu", "1")
			r := requests("cpu", "2")
			p.Status.ContainerStatuses = []corev1.ContainerStatus{
				{Name: "main", Resources: &r, AllocatedResources: r.Requests},
			}
		}, "cpu=2 pods=1"},
		"so does one of the whole pod": {func(p *corev1.Pod) {
			p.Spec.NodeName = "n1"
			less, more := requests("cpu", "1"), requests("cpu", "3")
			p.Spec.Resources, p.Status.Resources, p.Status.AllocatedResources = &less, &more, more.Requests
		}, "cpu=3 pods=1"},
	} {
		pod, space := waitingPod(), resources.NewSpace()
		row.change(pod)
		result, err := Pod(space, pod, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if got := space.Names().Format(result.Shape.Requests); got != row.want {
			t.Errorf("%s: requests %s; want %s", name, got, row.want)
		}
	}
}

func TestNodeSelection(t *testing.T) { // P-02
	t.Parallel()
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	term := func(list ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: list}
	}
	newer := corev1.NodeSelectorRequirement{Key: "x", Operator: "Resembles", Values: []string{"y"}}
	const nothing = "kubernetes.io/hostname: nothing"
	for name, row := range map[string]struct {
		selector map[string]string
		terms    []corev1.NodeSelectorTerm
		want     string
		err      string
	}{
		"none": {nil, nil, "", ""},
		"selector": {map[string]string{"a": "1", "beta.kubernetes.io/arch": "arm64"}, nil,
			"[a=1 kubernetes.io/arch=arm64]", ""},
		"an alias beside the name": {
			map[string]string{"kubernetes.io/arch": "amd64", "beta.kubernetes.io/arch": "arm64"}, nil,
			"[kubernetes.io/arch: nothing]", "",
		},
		"terms are alternatives": {map[string]string{"a": "1"}, []corev1.NodeSelectorTerm{
			term(in("b", "2", "3")), term(in("c", "4"), in("b", "5")),
		}, "[a=1 b=2|3][a=1 b=5 c=4]", ""},
		"an old zone": {
			nil, []corev1.NodeSelectorTerm{term(in("failure-domain.beta.kubernetes.io/zone", "z"))},
			"[topology.kubernetes.io/zone=z]", "",
		},
		"an empty term fits nothing": {nil, []corev1.NodeSelectorTerm{{}}, "[" + nothing + "]", ""},
		"a term that is not understood": {nil, []corev1.NodeSelectorTerm{term(newer), term(in("b", "2"))}, "[b=2]",
			`operator "Resembles"`},
		"only such terms": {nil, []corev1.NodeSelectorTerm{term(in("b", "2"), newer)}, "[" + nothing +
			"]", `pod shop/web: node affinity: requirement "x"`},
		"Gt without a number": {
			nil, []corev1.NodeSelectorTerm{
				term(corev1.NodeSelectorRequirement{Key: "x", Operator: "Gt", Values: []string{"many"}}),
			}, "[" + nothing + "]", "needs an integer",
		},
	} {
		pod := waitingPod()
		pod.Spec.NodeSelector = row.selector
		if row.terms != nil {
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: row.terms},
			}}
		}
		result, err := Pod(resources.NewSpace(), pod, time.Now())
		got := ""
		for _, alternative := range result.Shape.Alternatives {
			got += "[" + alternative.Labels.String() + "]"
		}
		if got != row.want {
			t.Errorf("%s: got %s; want %s", name, got, row.want)
		}
		if (err != nil) != (row.err != "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: error %v; want %q", name, err, row.err)
		}
	}
}

func TestMatchFieldsChooseNodesByName(t *testing.T) { // P-02
	t.Parallel()
	pod := waitingPod()
	field := corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn,
		Values: []string{"n2"}}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchFields: []corev1.NodeSelectorRequirement{field}},
			}},
	}}
	shape := shapeOf(t, pod)
	if !(&cluster.Node{Name: "n1"}).Admits(shape) || (&cluster.Node{Name: "n2"}).Admits(shape) {
		t.Errorf("names allowed: %s", shape.Alternatives[0].Names)
	}
	pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Key = "spec.podCIDR"
	result, err := Pod(resources.NewSpace(), pod, time.Now())
	if err == nil || (&cluster.Node{Name: "n1"}).Admits(result.Shape) {
		t.Errorf("an unknown field is taken: %v", err)
	}
}

func TestHostPorts(t *testing.T) { // P-06
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	pod := waitingPod()
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 90, Protocol: "UDP", HostIP: "0.0.0.0"},
		{HostPort: 80, HostIP: "10.0.0.1"}, {ContainerPort: 1}}
	pod.Spec.InitContainers = []corev1.Container{
		{RestartPolicy: &always, Ports: []corev1.ContainerPort{{HostPort: 70}}},
		{Ports: []corev1.ContainerPort{{HostPort: 60}}},
	}
	if got := fmt.Sprint(shapeOf(t, pod).HostPorts); got != "[{ TCP 70} {10.0.0.1 TCP 80} { UDP 90}]" {
		t.Errorf("ports %s", got)
	}
	pod.Spec.HostNetwork = true
	if got := fmt.Sprint(shapeOf(t, pod).HostPorts); got != "[{ TCP 1} { TCP 70} {10.0.0.1 TCP 80} { UDP 90}]" {
		t.Errorf("ports in the host's network %s", got)
	}
}

func TestDoNotDisruptOfPods(t *testing.T) { // V-15
	t.Parallel()
	start := metav1.NewTime(time.Unix(1000, 0))
	for value, want := range map[string]int64{"true": cluster.Never, "false": 0, "30m": 2800, "-5m": 0, "0s": 0,
		"yes": 0} {
		pod := waitingPod()
		pod.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": value}
		pod.Status.StartTime = &start
		got, err := ProtectedUntil(pod)
		bad := value == "-5m" || value == "0s" || value == "yes"
		if got != want || (err != nil) != bad {
			t.Errorf("%q: protected until %d, %v; want %d", value, got, err, want)
		}
	}
	pod := waitingPod()
	pod.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "30m"}
	if got, _ := ProtectedUntil(pod); got != cluster.Never {
		t.Errorf("before its start the pod is protected until %d", got)
	}
	pod.Status.StartTime = &start
	for now, want := range map[int64]bool{2799: true, 2800: false} {
		if result, _ := Pod(resources.NewSpace(), pod, time.Unix(now, 0)); result.DoNotDisrupt != want {
			t.Errorf("at %d: do not disrupt is %t", now, result.DoNotDisrupt)
		}
	}
}

func TestDaemonsTolerateWhatTheirControllerAdds(t *testing.T) { // P-06, P-08
	t.Parallel()
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "proxy"}}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Resources: requests("cpu", "100m")}}
	daemon, err := Daemon(resources.NewSpace(), set, Admission{}, nil)
	if err != nil || daemon.Name != "kube-system/proxy" || daemon.Shape.Requests.At(resources.CPU) != 100 {
		t.Fatalf("daemon %+v, %v", daemon, err)
	}
	taints := []cluster.Taint{
		{Key: "node.kubernetes.io/not-ready", Effect: "NoExecute"},
		{Key: "node.kubernetes.io/unschedulable", Effect: "NoSchedule"},
	}
	if taint, found := cluster.Untolerated(taints, daemon.Shape.Tolerations); found {
		t.Errorf("does not tolerate %s", taint)
	}
	network := []cluster.Taint{{Key: "node.kubernetes.io/network-unavailable", Effect: "NoSchedule"}}
	if _, found := cluster.Untolerated(network, daemon.Shape.Tolerations); !found {
		t.Error("a daemon outside the host's network tolerates a node without network")
	}
	set.Spec.Template.Spec.HostNetwork = true
	daemon, _ = Daemon(resources.NewSpace(), set, Admission{}, nil)
	if _, found := cluster.Untolerated(network, daemon.Shape.Tolerations); found {
		t.Error("a daemon in the host's network does not tolerate a node without network")
	}
	if len(set.Spec.Template.Spec.Tolerations) != 0 {
		t.Error("the DaemonSet was changed")
	}
}

// K-50: a pod's disruption cost takes precedence over its deletion cost.
func TestK50_WhatADisruptionCosts(t *testing.T) {
	t.Parallel()
	const ours, theirs = "karpenter.sh/disruption-cost", "controller.kubernetes.io/pod-deletion-cost"
	for _, row := range []struct {
		annotations map[string]string
		want        int32
	}{
		{nil, 0},
		{map[string]string{theirs: "7"}, 7},
		{map[string]string{ours: "-3", theirs: "7"}, -3},
		{map[string]string{ours: "0", theirs: "7"}, 0},
		{map[string]string{ours: "dear", theirs: "7"}, 7},
		{map[string]string{ours: "2147483648", theirs: "also"}, 0},
	} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Annotations: row.annotations},
		}
		got, err := Pod(resources.NewSpace(), pod, time.Unix(0, 0))
		if err != nil || got.DeletionCost != row.want {
			t.Errorf("%v: %d (%v), want %d", row.annotations, got.DeletionCost, err, row.want)
		}
	}
}
