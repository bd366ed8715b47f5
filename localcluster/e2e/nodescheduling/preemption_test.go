package nodescheduling

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/deploy"
)

// preempting has two nodes of a zone: a full one of the control plane, and one that is too small for the new pod.
const preempting = `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
`

// urgent is a pod of alice with a high priority that fits both nodes, apart from its size.
const urgent = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "urgent", "namespace": "app"}, "spec": {"priorityClassName": "urgent",
	"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a13"]}]}]}}},
	"containers": [{"name": "main", "image": "image", "resources": {"requests": {"cpu": "1"}}}]}}`

// a pod that may not be on a protected node is refused when it is bound. On a member without a taint, the
// scheduler has already preempted another pod for it: the victim goes. The gauge and the audit warn of that before. On
// a member with a taint that the pod does not tolerate, nobody goes.
func TestA13_ATaintKeepsTheSchedulerFromMakingRoom(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		if err := g.Apply(t.Context(), preempting+"---\n"+string(deploy.Audit()["audit.yaml"])+"---\n"+
			binding); err != nil {
			t.Fatal(err)
		}
		taint := corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}
		g.sized(t, "cp13", "1", map[string]string{"node-role.kubernetes.io/control-plane": ""}, taint)
		g.sized(t, "w13", "100m", nil)
		g.Expect(t, "allow", "system:admin create pod ops/victim node=cp13 cpu=800m")
		if _, err := g.Kubectl(t.Context(), urgent, as("create", "-f", "-")...); err != nil {
			t.Fatal(err)
		}
		events := func() (string, error) {
			return g.Kubectl(t.Context(), "", "get", "events", "--namespace=app", "-o",
				`jsonpath={range .items[*]}{.involvedObject.name} {.reason} {.message}{"\n"}{end}`)
		}
		eventuallySees(t, "events of the pod", events, "urgent FailedScheduling 0/")
		victim, err := g.Clients.CoreV1().Pods("ops").Get(t.Context(), "victim", metav1.GetOptions{})
		if err != nil || victim.DeletionTimestamp != nil {
			t.Fatalf("with a taint the victim has gone: %+v (%v)", victim.ObjectMeta, err)
		}

		if _, err := g.Clients.CoreV1().Nodes().Patch(t.Context(), "cp13", types.MergePatchType,
			[]byte(`{"spec": {"taints": null}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		g.sees(t, `node_scheduling_policy_nodes{group="ControlPlane",tainted="false"} 1`)
		eventuallySees(t, "the victim", func() (string, error) {
			now, err := g.Clients.CoreV1().Pods("ops").Get(t.Context(), "victim", metav1.GetOptions{})
			if apierrors.IsNotFound(err) || err == nil && now.DeletionTimestamp != nil {
				return "gone", nil
			}
			return "there", err
		}, "gone")
		eventuallySees(t, "events of the pod", events, "NodeSchedulingPolicy [ControlPlane/Binding]: pod \"urgent\"")
		if pod, err := g.Clients.CoreV1().Pods("app").Get(t.Context(), "urgent", metav1.GetOptions{}); err != nil ||
			pod.Spec.NodeName != "" {
			t.Errorf("the pod is on %q (%v)", pod.Spec.NodeName, err)
		}
		if _, report := g.audit(t); len(report.Bare) != 1 || report.Bare[0].Node != "cp13" {
			t.Errorf("the audit finds %+v, want the node without a taint", report.Bare)
		}
	})
}

// sized makes a node of the zone with so much CPU, until the test ends.
func (g guarded) sized(t *testing.T, name, cpu string, labels map[string]string, taints ...corev1.Taint) {
	t.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{corev1.LabelHostname: name, "zone": "a13"}},
		Spec: corev1.NodeSpec{Taints: slices.Clone(taints)}}
	for key, value := range labels {
		node.Labels[key] = value
	}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("10")}
	node.Status.Capacity = node.Status.Allocatable
	if _, err := g.Clients.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Clients.CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), name,
			metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	eventuallySees(t, "node "+name, func() (string, error) {
		now, err := g.Clients.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		seen := ""
		for _, c := range now.Status.Conditions {
			seen += fmt.Sprintf("%s=%s %s ", c.Type, c.Status, now.Status.Allocatable.Cpu())
		}
		return seen, nil
	}, "Ready=True "+node.Status.Allocatable.Cpu().String()+" ")
}
